"""Which comparators of sorts order by one integer or float, and that number as an integer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opclasses import COSMETIC_ATTRIBUTES
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Value
from ..core.elements import Scalar, decode, encode
from ..core.graph import Body, Buffer, Node, reachable
from ..loops.elemental import Elemental
from ..numerics.elementwise import EMIT

KEYED_FLOATS = frozenset({DType.F64, DType.F32, DType.BF16, DType.F16})

SCALAR = EMIT.keys() | {Op.SELECT, Op.COPY, Op.CONSTANT, Op.BROADCAST, Op.RESHAPE, Op.BITCAST_CONVERT, Op.BITCAST}
"""Nodes that a key may be computed by."""


@dataclass(frozen=True, slots=True)
class Keys:
    """A comparator that is less(key(left), key(right)), or greater.

    key: the buffer in `body`, the comparator, that is the left element's key. In the total order −0 is before 0. In the
    other, `partial`, they are equal, as are subnormals where a comparison flushes them, and NaNs, which no comparison
    orders, are where the total order has them.
    """

    body: Body
    key: Buffer
    greater: bool
    partial: bool

    @property
    def bits(self) -> int:
        return 8 * self.key.dtype.bytes

    def type(self, e: Elemental) -> ir.Type:
        return e.b.types.integer(self.bits)

    def unsigned(self, e: Elemental, element: Sequence[Scalar]) -> Value:
        """The key of an element, given raw, as an unsigned integer: the smaller, the earlier it comes."""
        b, dtype, top = e.b, self.key.dtype, 1 << (self.bits - 1)
        raw = self.raw(e, element)
        if dtype in KEYED_FLOATS:
            if self.partial:
                # Subnormals of f16 are compared as normal f32; those of others count as zero on the host.
                flushed = not (b.strict or b.by_element or dtype is DType.F16)
                least = b.constant(2 << ml_dtypes.finfo(dtype.numpy).nmant if flushed else 1, raw.type)
                none = b.compare_integers("ult", b.binary("shli", raw, 1), least)
                raw = b.select(none, b.constant(0, raw.type), raw)
            negative = b.binary("shrsi", raw, self.bits - 1)
            raw = b.binary("xori", raw, b.binary("ori", negative, top))
        elif dtype.is_signed:
            raw = b.binary("xori", raw, top)
        return b.binary("xori", raw, -1) if self.greater else raw

    def raw(self, e: Elemental, element: Sequence[Scalar]) -> Value:
        """The bits of the key of an element, sign- or zero-extended if they are less than a byte."""
        b, dtype = e.b, self.key.dtype
        for number, parameter in enumerate(self.body.parameters):
            if self.key is parameter:
                value = element[number // 2]
                return self.bits_of(e, value if dtype in KEYED_FLOATS else encode(b, dtype, decode(b, dtype, value)))
        pairs = zip(self.body.parameters[::2], element, strict=True)
        operands = [value for p, raw in pairs for value in [decode(b, p.dtype, raw)] * 2]
        (value,) = e.apply(Body(self.body.parameters, [self.key]), operands)
        return self.bits_of(e, encode(b, dtype, value))

    def bits_of(self, e: Elemental, raw: Scalar) -> Value:
        assert not isinstance(raw, tuple)
        return e.b.bitcast(raw, self.type(e))


def keys_of(body: Body) -> Keys | None:
    """The keys that a comparator compares; None where it does not compare the same key of both elements."""
    node = body.outputs[0].writer
    while node is not None and node.opcode is Op.COPY:
        node = node.inputs[0].writer
    if node is None or node.opcode is not Op.COMPARE or node.attributes["direction"] not in ("LT", "GT"):
        return None
    first, second = node.inputs
    dtype = first.dtype
    if second.dtype is not dtype or not (dtype in KEYED_FLOATS or dtype.is_integer or dtype is DType.PRED):
        return None
    turned = not _same_of_other(body, first, second)
    if turned and not _same_of_other(body, second, first):
        return None
    greater, partial = node.attributes["direction"] == "GT", node.attributes.get("type") != "TOTALORDER"
    return Keys(body, second if turned else first, greater != turned, partial)


def _same_of_other(body: Body, left: Buffer, right: Buffer) -> bool:
    """Whether `left` depends on left elements only, and `right` is this function of right ones."""
    numbers = {parameter: n for n, parameter in enumerate(body.parameters)}
    left_to_do, done, reads = [(left, right)], set(), False
    while left_to_do:
        x, y = pair = left_to_do.pop()
        if pair in done:
            continue
        done.add(pair)
        if x.writer is None or y.writer is None:
            if x not in numbers or numbers[x] % 2 or numbers.get(y) != numbers[x] + 1:
                return False
            reads = True
        elif _same_op(x.writer, y.writer):
            left_to_do += zip(x.writer.inputs, y.writer.inputs, strict=True)
        else:
            return False
    return reads


def _same_op(x: Node, y: Node) -> bool:
    """Whether two nodes are one function of their operands."""
    if x.opcode is not y.opcode or x.opcode not in SCALAR or x.bodies or y.bodies:
        return False
    if x.output.shape != y.output.shape or len(x.inputs) != len(y.inputs) or _meaning(x) != _meaning(y):
        return False
    if x.literal is None or y.literal is None:
        return x.literal is y.literal
    return x.literal.array.tobytes() == y.literal.array.tobytes()


def meaning_of(body: Body) -> str:
    """What a comparator of such nodes computes, whatever its values are called."""
    numbers: dict[Buffer, int] = {}
    for parameter in body.parameters:
        numbers[parameter] = len(numbers)
    lines = [f"{x.shape}" for x in body.parameters]
    for node in reversed(list(reachable(body.outputs))):
        numbers.update((x, len(numbers) + n) for n, x in enumerate(node.outputs))
    for node in reversed(list(reachable(body.outputs))):
        literal = "" if node.literal is None else node.literal.array.tobytes().hex()
        told = sorted((name, str(value)) for name, value in _meaning(node).items())
        places = [numbers[x] for x in (*node.outputs, *node.inputs)]
        lines.append(f"{node.opcode.value} {node.output.shape} {places} {told} {literal}")
    return "\n".join([*lines, *(str(numbers[x]) for x in body.outputs)])


def _meaning(node: Node) -> dict[str, Any]:
    return {name: value for name, value in node.attributes.items() if name not in COSMETIC_ATTRIBUTES}
