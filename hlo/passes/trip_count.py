"""Trip counts of simple counted loops, noted on the loop as XLA notes them (`known_trip_count` in backend_config)."""

from __future__ import annotations

import re

from ..attributes import Raw
from ..ir import Computation, Instruction, Module, rewrite
from ..opclasses import control_computations
from ..opcodes import Op
from .rewriting import rebuild, with_attributes

_KNOWN = re.compile(r'\\?"known_trip_count\\?":\s*\{\s*\\?"n\\?":\s*\\?"(\d+)\\?"')


def known_trip_count(loop: Instruction) -> int | None:
    """The count noted on a loop, if any."""
    config = loop.attributes.get("backend_config")
    found = _KNOWN.search(config.text if isinstance(config, Raw) else config) if config is not None else None
    return int(found[1]) if found else None


def note_trip_counts(module: Module) -> Module:
    """Find the count of each loop of the form `for (i = a; i < b; i += c)` with constant a, b, c, and note it."""
    return rebuild(module, _note, control_computations(module))


def _note(computation: Computation) -> Computation:
    changed = False

    def change(i: Instruction) -> Instruction | None:
        nonlocal changed
        if i.opcode is not Op.WHILE or "backend_config" in i.attributes:
            return None
        count = trip_count(i)
        if count is None:
            return None
        changed = True
        return with_attributes(i, backend_config=Raw(f'{{"known_trip_count":{{"n":"{count}"}}}}'))

    new = rewrite(computation, change)
    return new if changed else computation


def trip_count(loop: Instruction) -> int | None:
    """How often the body runs, where counter, bound and step are constants; None where that is not plain."""
    condition, body = loop.attributes["condition"], loop.attributes["body"]
    test = condition.root
    if test.opcode is not Op.COMPARE or test.attributes.get("direction") not in ("LT", "LE"):
        return None
    counter, bound = test.operands
    number = _carried(counter, condition)
    limit = _constant(bound)
    if number is None or limit is None or loop.operands[0].opcode is not Op.TUPLE or body.root.opcode is not Op.TUPLE:
        return None
    start = _constant(loop.operands[0].operands[number])
    step = _increment(body.root.operands[number], number, body)
    if start is None or step is None or step <= 0:
        return None
    count = max(0, -(-(limit + (test.attributes["direction"] == "LE") - start) // step))
    bits = counter.shape.dtype.bits - counter.shape.dtype.is_signed
    return count if start + count * step < 2**bits else None


def _carried(i: Instruction, computation: Computation) -> int | None:
    """The element of the loop's state that an instruction reads."""
    if i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] is computation.parameters[0] and i.shape.dtype.is_integer:
        return i.attributes["index"]
    return None


def _constant(i: Instruction) -> int | None:
    if i.opcode is Op.CONSTANT and i.shape.dtype.is_integer and not i.shape.dims:
        return int(i.literal.array)
    return None


def _increment(i: Instruction, number: int, body: Computation) -> int | None:
    if i.opcode is not Op.ADD:
        return None
    for counter, step in (i.operands, i.operands[::-1]):
        if _carried(counter, body) == number:
            return _constant(step)
    return None
