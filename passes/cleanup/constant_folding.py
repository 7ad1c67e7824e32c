"""Constant folding: the evaluator computes pure instructions of constants, up to a size limit.

This is the only pass that runs the oracle; it calls `evaluate` like any other caller. Passes that need a value ask this
module (`value_of`). A comparison with XLA is the only check that finds an evaluator error in a folded constant, because
the stacks copy the constant.

Results above the limit are computed at run time, because a large constant must be read from memory. A splat (all
elements equal) is folded as one scalar and broadcast again.
"""

from __future__ import annotations

import math

import numpy as np

from ...hlo.errors import TestbedError
from ...hlo.ir import Computation, Instruction, Literal, Module, expand
from ...hlo.opclasses import CONTROL, CONTROL_PREDECESSORS, COSMETIC_ATTRIBUTES, ELEMENTWISE, IMPURE
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..fuel import spend
from ..rewriting import Names, callees_first, rebuild

MOST_RESULT = 1024
"""Maximum number of elements of a folded result."""

MOST_OPERANDS = 1 << 16
"""Maximum number of elements of all operands of a folded instruction."""

MOST_WORK = 1 << 20
"""Maximum number of multiplications of a folded dot or convolution."""

KEPT = IMPURE | CONTROL | {Op.CONSTANT, Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.OPT_BARRIER, Op.ADD_DEPENDENCY, Op.AFTER_ALL,
                           Op.DOMAIN, Op.FUSION, Op.RNG_BIT_GENERATOR, Op.BITCAST, Op.COPY}  # fmt: skip
"""Never folded: these have side effects, carry control or layout, or are constants already."""

SPREADING = frozenset({Op.BROADCAST, Op.IOTA})
"""Folded only to one element: computing their elements is cheaper than reading them from memory."""

_KNOWN = frozenset({Op.CONSTANT, Op.BROADCAST})
"""Opcodes that operands of a folded instruction may have."""


def fold_constants(module: Module) -> Module:
    """Evaluate instructions that depend only on small constants."""
    names = Names.of(module)
    return rebuild(module, lambda c: _fold(c, names))


def _fold(computation: Computation, names: Names) -> Computation:
    pinned = computation.pinned
    changed = False

    def change(i: Instruction, add) -> Instruction | None:
        nonlocal changed
        if i.opcode in KEPT or not _KNOWN.issuperset([o.opcode for o in i.operands]):
            return None
        if i.name in pinned or CONTROL_PREDECESSORS in i.attributes or not _is_plain(i):
            return None
        made = _folded(i) or _folded_splat(i, add, names)
        changed = changed or made is not None
        return made

    result = expand(computation, change)
    return result if changed else computation


def _is_plain(i: Instruction) -> bool:
    shapes = (i.shape, *(o.shape for o in i.operands))
    return all(s.is_array and not s.is_dynamic for s in shapes) and not any(
        i.opcode in KEPT - {Op.CONSTANT, Op.TUPLE}
        for c in i.called()
        for i in c.instructions
        if i.opcode is not Op.PARAMETER
    )


def _folded(i: Instruction) -> Instruction | None:
    """The instruction as a constant, if all its operands are constants and it is within the limits; else None."""
    if not all(o.opcode is Op.CONSTANT and not o.literal.is_elided for o in i.operands):
        return None
    if i.shape.size > (1 if i.opcode in SPREADING else MOST_RESULT) or (not i.operands and i.opcode is not Op.IOTA):
        return None
    if sum(o.shape.size for o in i.operands) > MOST_OPERANDS or _work(i) > MOST_WORK:
        return None
    value = value_of(i)
    return constant(i, value) if value is not None and spend("fold-constants/constant") else None


def _work(i: Instruction) -> int:
    if i.opcode in (Op.DOT, Op.CONVOLUTION):
        return i.shape.size * max(math.prod(o.shape.dims) for o in i.operands)
    return 0


def _folded_splat(i: Instruction, add, names: Names) -> Instruction | None:
    """An elementwise op whose operands are splats, computed once as a scalar and broadcast; else None."""
    if i.opcode not in ELEMENTWISE or not i.operands or not i.shape.rank:
        return None
    if i.opcode is Op.BITCAST_CONVERT and i.shape.rank != i.operands[0].shape.rank:
        return None  # one element becomes several, or several become one
    numbers = [splat_of(o) for o in i.operands]
    if any(n is None for n in numbers):
        return None
    scalar = array(i.shape.dtype)
    once = i.replace(shape=scalar, operands=tuple(numbers))
    value = value_of(once)
    if value is None or not spend("fold-constants/splat"):
        return None
    number = add(constant(once.replace(name=names.fresh(f"{i.name}.number")), value))
    return Instruction(Op.BROADCAST, i.name, i.shape, (number,), {"dimensions": ()}, i.location)


def splat_of(x: Instruction) -> Instruction | None:
    """The scalar constant that x is or is a broadcast of; None if there is none."""
    if x.opcode is Op.BROADCAST:
        x = x.operands[0]
    if x.opcode is not Op.CONSTANT or x.shape.dims or not x.shape.is_array or x.literal.is_elided:
        return None
    return x


def number_of(x: Instruction) -> np.generic | None:
    """The number that every element of x equals, if x is a constant scalar or a broadcast of one; else None."""
    scalar = splat_of(x)
    return None if scalar is None else scalar.literal.array.flat[0]


def value_of(i: Instruction) -> np.ndarray | None:
    """The evaluator's result for an instruction whose operands are constants; None where it has no rule."""
    from ...evaluator.evaluator import evaluate

    used = dict.fromkeys(i.operands)
    entry = Computation("fold", (*used, i), i)
    try:
        return evaluate(Module("fold", callees_first(entry), entry), [])[0]
    except TestbedError:
        return None


def constant(i: Instruction, value: np.ndarray) -> Instruction:
    """A constant that replaces an instruction, with its name and shape."""
    value = np.array(value, dtype=i.shape.dtype.numpy).reshape(i.shape.dims)
    value.setflags(write=False)
    kept = {k: v for k, v in i.attributes.items() if k in COSMETIC_ATTRIBUTES}
    return Instruction(Op.CONSTANT, i.name, i.shape, (), kept | {"literal": Literal(i.shape, value)}, i.location)
