"""Trip counts of simple counted loops, `for (i = a; i < b; i += c)` with constants a, b, c, in any direction.

They are derived from the loop itself, also through fusions; a `known_trip_count` in the text is not trusted.
"""

from __future__ import annotations

import operator

from ..ir import Computation, Instruction
from ..opcodes import Op

Term = tuple[Instruction, Instruction | None]
"""An instruction and the fusion whose body contains it (None outside fusions)."""


def trip_count(loop: Instruction) -> int | None:
    """How often the body runs if start, limit and step of the counter are constants; None if that is not known.

    None too if the counter would overflow its type.
    """
    condition, body, init = loop.attributes["condition"], loop.attributes["body"], loop.operands[0]
    test = _inside(condition.root)
    if test[0].opcode is Op.CONSTANT:
        return None if bool(test[0].literal.array) else 0
    if test[0].opcode is not Op.COMPARE:
        return None
    direction, (counter, bound) = test[0].attributes["direction"], _operands(test)
    if _constant(bound) is None:
        direction, counter, bound = MIRRORED[direction], bound, counter
    number, limit = _carried(counter, condition), _constant(bound)
    if number is None or limit is None or init.opcode is not Op.TUPLE:
        return None
    start = _constant((init.operands[number], None))
    if start is None or not COMPARE[direction](start, limit):
        return None if start is None else 0
    step = _increment(_inside(body.root.operands[number]), number, body) if body.root.opcode is Op.TUPLE else None
    if not step or (count := _count(direction, limit - start, step)) is None:
        return None
    dtype = counter[0].shape.dtype
    least, most = (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1)) if dtype.is_signed else (0, 2**dtype.bits)
    return count if least <= start + count * step < most else None


def counters_of(loop: Instruction) -> dict[int, tuple[int, int]]:
    """State element → (start, step), for elements that start at a constant and add a constant in each iteration."""
    body, init = loop.attributes["body"], loop.operands[0]
    if init.opcode is not Op.TUPLE or body.root.opcode is not Op.TUPLE:
        return {}
    found: dict[int, tuple[int, int]] = {}
    for n, (before, after) in enumerate(zip(init.operands, body.root.operands, strict=True)):
        start, step = _constant((before, None)), _increment(_inside(after), n, body)
        if start is not None and step is not None:
            found[n] = start, step
    return found


MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}
"""The direction of the same comparison with its operands exchanged."""

COMPARE = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq,
           "NE": operator.ne}  # fmt: skip


def _count(direction: str, distance: int, step: int) -> int | None:
    """Iterations until the comparison fails, given that it holds at the start; None if it fails only by overflow.

    distance: limit minus start.
    """
    if direction == "EQ":
        return 1
    if direction in ("GT", "GE"):
        direction, distance, step = MIRRORED[direction], -distance, -step
    if direction == "NE":
        return distance // step if distance % step == 0 and distance // step > 0 else None
    return -(-(distance + (direction == "LE")) // step) if step > 0 else None


def _inside(i: Instruction) -> Term:
    """The instruction, or for the result of a fusion the instruction of its body that computes it."""
    if i.opcode is Op.FUSION:
        return i.called()[0].root, i
    if i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0].opcode is Op.FUSION:
        fusion = i.operands[0]
        root = fusion.called()[0].root
        return (root.operands[i.attributes["index"]], fusion) if root.opcode is Op.TUPLE else (i, None)
    return i, None


def _operands(term: Term) -> list[Term]:
    instruction, fusion = term
    found: list[Term] = []
    for o in instruction.operands:
        if fusion is not None and o.opcode is Op.PARAMETER:
            found.append((fusion.operands[o.parameter_number], None))
        else:
            found.append((o, fusion))
    return found


def _carried(term: Term, computation: Computation) -> int | None:
    """The index of the state element that an integer term reads; None if it is something else."""
    i = term[0]
    if i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] is computation.parameters[0] and i.shape.dtype.is_integer:
        return i.attributes["index"]
    return None


def _constant(term: Term) -> int | None:
    i = _inside(term[0])[0] if term[1] is None else term[0]
    if i.opcode is Op.CONSTANT and i.shape.dtype.is_integer and not i.shape.dims:
        return int(i.literal.array)
    return None


def _increment(term: Term, number: int, body: Computation) -> int | None:
    if term[0].opcode not in (Op.ADD, Op.SUBTRACT):
        return None
    a, b = _operands(term)
    if term[0].opcode is Op.SUBTRACT:
        taken = _constant(b)
        return -taken if taken is not None and _carried(a, body) == number else None
    for counter, step in ((a, b), (b, a)):
        if _carried(counter, body) == number:
            return _constant(step)
    return None
