"""Trip counts of simple counted loops, `for (i = a; i < b; i += c)` with constants a, b, c.

Found by looking at the loop, also through fusions; a `known_trip_count` in the text is not trusted.
"""

from __future__ import annotations

from .ir import Computation, Instruction
from .opcodes import Op

Term = tuple[Instruction, Instruction | None]
"""An instruction, and the fusion that it stands in (None outside fusions)."""


def trip_count(loop: Instruction) -> int | None:
    """How often the body runs, where counter, bound and step are constants; None where that is not plain."""
    condition, body, init = loop.attributes["condition"], loop.attributes["body"], loop.operands[0]
    test = _inside(condition.root)
    direction = test[0].attributes.get("direction")
    if test[0].opcode is not Op.COMPARE or direction not in ("LT", "LE"):
        return None
    counter, bound = _operands(test)
    number, limit = _carried(counter, condition), _constant(bound)
    if number is None or limit is None or init.opcode is not Op.TUPLE or body.root.opcode is not Op.TUPLE:
        return None
    start = _constant((init.operands[number], None))
    step = _increment(_inside(body.root.operands[number]), number, body)
    if start is None or step is None or step <= 0:
        return None
    count = max(0, -(-(limit + (direction == "LE") - start) // step))
    dtype = counter[0].shape.dtype
    return count if start + count * step < 2 ** (dtype.bits - dtype.is_signed) else None


def _inside(i: Instruction) -> Term:
    """The instruction, or what computes it inside the fusion."""
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
    """The element of the loop's state that a term reads."""
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
    if term[0].opcode is not Op.ADD:
        return None
    a, b = _operands(term)
    for counter, step in ((a, b), (b, a)):
        if _carried(counter, body) == number:
            return _constant(step)
    return None
