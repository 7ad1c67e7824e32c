"""Give elementwise ops on large arrays the layout of what they read, where the module's text has another one, and all
users do as well with either.

JAX calls functions, such as the variance, whose parameters are row-major; a transposed array is of another layout. Once
the call is inlined, its first op would turn the array around, for nothing. The layouts of inputs, results, loops and
library calls stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ...hlo.ir import Computation, Instruction, Module
from ...hlo.layouts import is_alias
from ...hlo.opclasses import CONTROL_PREDECESSORS, ELEMENTWISE, control_computations
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..fusion.orders import LARGE_TRANSPOSE, WITHOUT_ORDER, order
from ..rewriting import rebuild


def follow_layouts(module: Module) -> Module:
    """Give elementwise ops the layout of what they read, in every computation that the host program runs."""
    return rebuild(module, _follow, control_computations(module))


def _follow(computation: Computation) -> Computation:
    followers = [i for i in computation.instructions if _may_follow(i, computation)]
    if all(order(o.shape) == order(i.shape) for i in followers for o in _read(i)):
        return computation
    kept: set[Instruction] = set()
    while True:
        shapes = _shapes(followers, kept)
        refused = {i for i in shapes if not all(_takes(u, i, shapes, computation) for u in computation.users[i])}
        if not refused:
            break
        kept |= refused
    return _changed(computation, shapes) if shapes else computation


def _may_follow(i: Instruction, computation: Computation) -> bool:
    if i.opcode not in ELEMENTWISE - {Op.COPY} and i.opcode is not Op.TRANSPOSE:
        return False
    free = i is not computation.root and i.name not in computation.pinned and CONTROL_PREDECESSORS not in i.attributes
    return free and i.shape.size > LARGE_TRANSPOSE and not i.shape.is_dynamic


def _read(i: Instruction) -> list[Instruction]:
    """The operands that have an order of memory which the result's could be."""
    if i.opcode is Op.TRANSPOSE:
        return []
    return [o for o in i.operands if o.shape.dims == i.shape.dims and o.opcode not in WITHOUT_ORDER]


def _shapes(followers: list[Instruction], kept: Set[Instruction]) -> dict[Instruction, Shape]:
    """The shapes of the instructions that get another layout. kept: those that do not."""
    shapes: dict[Instruction, Shape] = {}
    for i in followers:
        if i in kept:
            continue
        if i.opcode is Op.TRANSPOSE:
            (operand,) = i.operands
            new = shapes.get(operand)
            if new is not None and is_alias(i):
                shapes[i] = i.shape.with_layout(tuple(i.dimensions.index(d) for d in new.minor_to_major))
            continue
        read = [shapes.get(o, o.shape) for o in _read(i)]
        if len({order(x) for x in read}) == 1 and order(read[0]) != order(i.shape):
            shapes[i] = i.shape.with_layout(read[0].minor_to_major)
    return shapes


def _takes(user: Instruction, i: Instruction, shapes: Mapping[Instruction, Shape], computation: Computation) -> bool:
    """Whether a user needs no more copies or tiles for the new layout of `i` than for the present one."""
    if user.opcode is Op.REDUCE:
        return len({order(shapes.get(o, o.shape)) for o in user.operands if o.shape.dims == i.shape.dims}) == 1
    if user.opcode is Op.TRANSPOSE:
        return user in shapes or not is_alias(user) or is_alias(user.replace(operands=(i.replace(shape=shapes[i]),)))
    if user.opcode in ELEMENTWISE:
        return order(shapes.get(user, user.shape)) == order(shapes[i])
    return False


def _changed(computation: Computation, shapes: Mapping[Instruction, Shape]) -> Computation:
    new: dict[Instruction, Instruction] = {}
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        made = old if operands == old.operands else old.replace(operands=operands)
        new[old] = made if old not in shapes else made.replace(shape=shapes[old])
    return Computation(computation.name, tuple(new.values()), new[computation.root], computation.attributes)
