"""Rewrite dots to one form, (batch, M, K) by (batch, K, N), for targets that support no other.

Each group of dimensions becomes one; a batch, M or N of size 1 is dropped. A reshape merges adjacent dimensions, which
moves no bytes of a row-major array. The order of M and K, and of K and N, stays as in memory, so that only interleaved
groups are transposed. In no pipeline: both stacks read any dimension numbers group by group and gain nothing from this
form.
"""

from __future__ import annotations

import math

from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from ..expansion import expand_ops
from ..rewriting import with_attributes
from .dot import SIDES, free_dimensions, numbers, sort_contracting_dims

Groups = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The numbers of the batch, free and contracted dimensions of a side."""


def matrix_dots(module: Module) -> Module:
    """Rewrite every dot outside kernels, except sparse ones, as (batch, M, K) by (batch, K, N)."""
    return expand_ops(module, {Op.DOT: as_matrices})


def as_matrices(i: Instruction, b: Builder) -> Instruction | None:
    """The dot in matrix form, reshaped to its shape; None if it has that form already or is sparse."""
    if len(i.operands) != 2 or all(_is_matrix(i, side) for side in SIDES):
        return None
    i = sort_contracting_dims(i)
    named: dict[str, object] = {}
    operands, frees = [], []
    for side, operand in zip(SIDES, i.operands, strict=True):
        made, free, contracted, batched = _matrix(operand, groups_of(i, side), side, b)
        operands.append(made)
        frees += free
        named[f"{side}_batch_dims"] = (0,) if batched else None
        named[f"{side}_contracting_dims"] = (contracted,)
    batch = [operands[0].shape.dims[0]] if named["lhs_batch_dims"] else []
    shape = array(i.shape.dtype, *batch, *frees)
    dot = with_attributes(i, **named).replace(name=b.names.fresh(i.name), operands=tuple(operands), shape=shape)
    return b.op(Op.RESHAPE, i.shape, b.add(dot))


def groups_of(dot: Instruction, side: str) -> Groups:
    """The groups of a side's dimensions."""
    batch, contracted = numbers(dot, side)
    return tuple(batch), tuple(free_dimensions(dot, side)), tuple(contracted)


def _is_matrix(dot: Instruction, side: str) -> bool:
    """Whether a side has one contracted and at most one batch and one free dimension, the latter two larger than 1."""
    batch, free, contracted = groups_of(dot, side)
    dims = dot.operands[SIDES.index(side)].shape.dims
    short = any(dims[d] == 1 for d in (*batch, *free))
    return len(contracted) == 1 and batch in ((), (0,)) and len(free) <= 1 and not short


def _matrix(x: Instruction, groups: Groups, side: str, b: Builder) -> tuple[Instruction, list[int], int, bool]:
    """(the operand, [size of M or N] unless 1, the contracted dimension, whether there is a batch dimension)."""
    dims = x.shape.dims
    batch, free, contracted = groups
    sizes = [math.prod(dims[d] for d in group) for group in groups]
    forms: dict[bool, Groups] = {False: (batch, free, contracted), True: (batch, contracted, free)}
    wanted = side == "rhs"
    inner_first = next((first for first in (wanted, not wanted) if _lies(forms[first], dims)), wanted)
    if not _lies(forms[inner_first], dims):
        x = b.transpose(x, [d for group in forms[inner_first] for d in group])
    outer, between = ([n] if n != 1 else [] for n in sizes[:2])
    shape = [*outer, sizes[2], *between] if inner_first else [*outer, *between, sizes[2]]
    return b.reshape(x, shape), between, len(outer) if inner_first else len(shape) - 1, bool(outer)


def _lies(form: Groups, dims: tuple[int, ...]) -> bool:
    """Whether the dimensions are in this order already, ignoring those of size 1."""
    order = [d for group in form for d in group if dims[d] != 1]
    return order == sorted(order)
