"""Comparators of sorts that compare one integer or float key: what radix sorts and selections need to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opclasses import COSMETIC_ATTRIBUTES
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field
from ..core.registers import Register
from ..loops.elemental import Elemental
from ..numerics.convert import OWN_BITS, bits_of
from ..numerics.elementwise import EMIT

FLOATS = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})

PURE = EMIT.keys() | {Op.PARAMETER, Op.CONSTANT, Op.BROADCAST, Op.RESHAPE, Op.BITCAST, Op.BITCAST_CONVERT}
"""Opcodes that may compute a key."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order of keys: key(left) < key(right), or > if it is `descending`.

    key: computes the key of a left element from the comparator's parameters; root: its root. total: floats have the
    total order; else zeros of both signs are equal, with them subnormals where comparisons take them for zeros, and a
    NaN, of which the comparator says nothing, stands where the total order has it.
    """

    root: Instruction
    key: Computation = field(compare=False)
    descending: bool
    total: bool

    @property
    def dtype(self) -> DType:
        return self.root.shape.dtype

    @property
    def type(self) -> ir.IntType:
        """Of the integers that `of` gives."""
        return ir.IntType(8 * self.dtype.bytes)

    def of(self, e: Elemental, element: Sequence[Register]) -> ir.Value:
        """A signed integer that is the smaller, the earlier an element comes. element: a value of each operand."""
        b, dtype, type_ = e.code.b, self.dtype, self.type
        value = e.apply(self.key, [value for value in element for _ in range(2)])
        if dtype in FLOATS:
            bits = bits_of(e.code, dtype, value)
            if not self.total:
                bits = b.select(b.icmp_unsigned("<", b.shl(bits, type_(1)), type_(self._zeros(e))), type_(0), bits)
            key = b.xor(bits, b.lshr(b.ashr(bits, type_(type_.width - 1)), type_(1)))
        elif dtype is DType.PRED:
            key = b.zext(value, type_)
        else:
            key = value if dtype.is_signed else b.xor(value, type_(-1 << (type_.width - 1)))
        return b.not_(key) if self.descending else key

    def _zeros(self, e: Elemental) -> int:
        """Magnitudes below it, shifted by one bit, compare as 0. A subnormal f16 is compared as a normal f32;
        devices that keep subnormals compare them as they are.
        """
        kept = e.view.strict or e.view.by_element or self.dtype is DType.F16
        return 1 if kept else 2 << OWN_BITS[self.dtype].mantissa


def key_order(comparator: Computation) -> KeyOrder | None:
    """The order of keys that a comparator decides; None where it is not known to be one."""
    root = comparator.root
    if root.opcode is not Op.COMPARE or root.attributes["direction"] not in ("LT", "GT"):
        return None
    left, right = root.operands
    dtype = left.shape.dtype
    if right.shape.dtype is not dtype or not (dtype in FLOATS or dtype.is_integer or dtype is DType.PRED):
        return None
    swapped, instructions = False, _mirrored(left, right)
    if instructions is None:
        swapped, instructions = True, _mirrored(right, left)
    if instructions is None:
        return None
    used = tuple(i for i in comparator.instructions if i in instructions)
    key = Computation(f"{comparator.name}.key", used, right if swapped else left)
    descending = (root.attributes["direction"] == "GT") != swapped
    return KeyOrder(key.root, key, descending, root.attributes.get("type") == "TOTALORDER")


def flushing_order(comparator: Computation) -> KeyOrder | None:
    """The order of keys where a float comparison decides it whose selection is an instruction of x86: minimum and
    maximum, which LLVM makes of both, would move a subnormal as 0.
    """
    order = key_order(comparator)
    return order if order is not None and not order.total and order.dtype in (DType.F32, DType.F64) else None


def structure(computation: Computation) -> str:
    """What a computation of operations without others computes, whatever its instructions are called."""
    numbers = {i: n for n, i in enumerate(computation.instructions)}
    lines = []
    for i in computation.instructions:
        literal = i.literal.array.tobytes().hex() if i.opcode is Op.CONSTANT else ""
        meaning = sorted((name, str(value)) for name, value in _meaning(i).items())
        lines.append(f"{i.opcode.value} {i.shape} {[numbers[o] for o in i.operands]} {meaning} {literal}")
    return "\n".join([*lines, str(numbers[computation.root])])


def _mirrored(left: Instruction, right: Instruction) -> set[Instruction] | None:
    """What computes `left` from left elements, if `right` computes the same from right ones; else None."""
    pairs, seen = [(left, right)], set()
    while pairs:
        pair = x, y = pairs.pop()
        if pair in seen:
            continue
        seen.add(pair)
        if x.opcode is not y.opcode or x.shape != y.shape or x.opcode not in PURE:
            return None
        if x.opcode is Op.PARAMETER:
            if x.parameter_number % 2 or y.parameter_number != x.parameter_number + 1:
                return None
        elif x.opcode is Op.CONSTANT:
            if x.literal.array.tobytes() != y.literal.array.tobytes():
                return None
        elif x.called() or _meaning(x) != _meaning(y):
            return None
        pairs += zip(x.operands, y.operands, strict=True)
    found = {x for x, _ in seen}
    return found if any(x.opcode is Op.PARAMETER for x in found) else None


def _meaning(i: Instruction) -> dict[str, Any]:
    return {name: value for name, value in i.attributes.items() if name not in COSMETIC_ATTRIBUTES}
