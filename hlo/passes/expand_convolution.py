"""Convolution → dot: the pieces of the input that meet each kernel position, side by side, times the kernel.

First to one form: input [batch, spatial…, feature], kernel [spatial…, in, out]. Depthwise kernels become products and
sums of elements; kernels of many positions a loop of dots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from ..attributes import ConvolutionDims, PadDim, SliceDim, Window
from ..dtypes import DType
from ..ir import Instruction, Module
from ..opcodes import Op
from ..shapes import array
from .building import Builder
from .expand_reduce_window import padding_of, position_of
from .expansion import expand_ops

MOST_POSITIONS = 64
"""Kernel positions up to which their pieces of the input are laid side by side."""

MOST_ELEMENTS = 1 << 26
"""Elements of the input's pieces, side by side, up to which they are stored."""


def expand_convolution(module: Module) -> Module:
    """Replace every convolution outside kernels."""
    return expand_ops(module, {Op.CONVOLUTION: convolution_dot})


@dataclass(eq=False)
class Canonical:
    """A convolution in one form. x: padded [batch, spatial…, feature]; kernel: [spatial…, in, out]."""

    x: Instruction
    kernel: Instruction
    window: Window
    counts: tuple[int, ...]
    feature_groups: int
    batch_groups: int
    dtype: DType

    @property
    def positions(self) -> int:
        return math.prod(w.size for w in self.window.dims)


def convolution_dot(i: Instruction, b: Builder) -> Instruction | None:
    dims: ConvolutionDims = i.attributes["dim_labels"]
    if not i.shape.size or not i.operands[0].shape.size or not i.operands[1].shape.size:
        return b.constant(0, i.shape.dtype, i.shape.dims)
    c = canonical(i, b, dims)
    inputs = c.kernel.shape.dims[-2]
    stored = c.x.shape.dims[0] * math.prod(c.counts) * c.positions * c.x.shape.dims[-1]
    few = c.positions <= MOST_POSITIONS
    if inputs == 1 and c.batch_groups == 1 and few and c.feature_groups > 1:
        out = _depthwise(b, c)
    elif few and stored <= MOST_ELEMENTS:
        out = _product(b, c, _side_by_side(b, c), _rows_of_kernel(b, c))
    else:
        out = _loop(b, c)
    order = (dims.output_batch, *dims.output_spatial, dims.output_feature)
    return b.transpose(out, [order.index(d) for d in range(len(order))])


def canonical(i: Instruction, b: Builder, dims: ConvolutionDims) -> Canonical:
    window = i.attributes.get("window", Window(()))
    x = b.transpose(b.plain(i.operands[0]), (dims.input_batch, *dims.input_spatial, dims.input_feature))
    order = (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature)
    kernel = b.transpose(b.plain(i.operands[1]), order)
    x = b.pad(x, b.constant(0, x.shape.dtype), [PadDim(0, 0), *padding_of(window), PadDim(0, 0)])
    features, batches = (i.attributes.get(k, 1) for k in ("feature_group_count", "batch_group_count"))
    counts = tuple(i.shape.dims[d] for d in dims.output_spatial)
    return Canonical(x, kernel, window, counts, features, batches, i.shape.dtype)


def _pieces(b: Builder, c: Canonical) -> list[Instruction]:
    """For each kernel position, row-major, what it meets: [batch, counts…, feature]."""
    found = []
    for position in product(*[range(w.size) for w in c.window.dims]):
        taken: list[SliceDim | None] = [None]
        for w, p, n in zip(c.window.dims, position, c.counts, strict=True):
            at = (w.size - 1 - p if w.reverse else p) * w.rhs_dilate
            taken.append(SliceDim(at, at + (n - 1) * w.stride + 1, w.stride))
        found.append(b.slice(c.x, [*taken, None]))
    return found


def _side_by_side(b: Builder, c: Canonical) -> Instruction:
    """[batch, counts…, feature groups, positions · features of a group]."""
    grouped = []
    for piece in _pieces(b, c):
        dims = piece.shape.dims
        grouped.append(b.reshape(piece, (*dims[:-1], c.feature_groups, dims[-1] // c.feature_groups)))
    return b.concatenate(grouped, grouped[0].shape.rank - 1)


def _rows_of_kernel(b: Builder, c: Canonical) -> Instruction:
    """[positions · in, out]."""
    dims = c.kernel.shape.dims
    return b.reshape(c.kernel, (math.prod(dims[:-1]), dims[-1]))


def _product(b: Builder, c: Canonical, pieces: Instruction, kernel: Instruction) -> Instruction:
    """pieces [batch, counts…, groups, K] times kernel [K, out]: [batch / batch groups, counts…, out]."""
    groups = max(c.feature_groups, c.batch_groups)
    depth, outs = kernel.shape.dims
    batch = pieces.shape.dims[0] // c.batch_groups
    rows = batch * math.prod(c.counts)
    if groups == 1:
        flat = b.reshape(pieces, (rows, depth))
        shape = array(c.dtype, rows, outs)
        out = b.op(Op.DOT, shape, flat, kernel, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
        return b.reshape(out, (batch, *c.counts, outs))
    if c.batch_groups > 1:
        left = b.reshape(pieces, (groups, rows, depth))
    else:
        left = b.transpose(b.reshape(pieces, (rows, groups, depth)), (1, 0, 2))
    right = b.transpose(b.reshape(kernel, (depth, groups, outs // groups)), (1, 0, 2))
    out = b.op(
        Op.DOT, array(c.dtype, groups, rows, outs // groups), left, right,
        lhs_batch_dims=(0,), rhs_batch_dims=(0,), lhs_contracting_dims=(2,), rhs_contracting_dims=(1,),
    )  # fmt: skip
    return b.reshape(b.transpose(out, (1, 0, 2)), (batch, *c.counts, outs))


def wide_type(dtype: DType) -> DType:
    """The type in which sums of a type are made."""
    return dtype if dtype in (DType.F64, DType.C64, DType.C128) or dtype.is_integer else DType.F32


def _depthwise(b: Builder, c: Canonical) -> Instruction:
    """One input feature a group: products of elements, summed over the positions."""
    wide, groups = wide_type(c.dtype), c.feature_groups
    many = c.kernel.shape.dims[-1] // groups
    kernel = b.reshape(_rows_of_kernel(b, c), (c.positions, groups, many))
    total = None
    for number, piece in enumerate(_pieces(b, c)):
        dims = (*piece.shape.dims, many)
        weights = b.reshape(b.slice_in(kernel, 0, number, number + 1), (groups, many))
        left = b.broadcast(b.convert(piece, wide), dims, range(piece.shape.rank))
        right = b.broadcast(b.convert(weights, wide), dims, (len(dims) - 2, len(dims) - 1))
        part = b.binary(Op.MULTIPLY, left, right)
        total = part if total is None else b.binary(Op.ADD, total, part)
    assert total is not None
    dims = total.shape.dims
    return b.convert(b.reshape(total, (*dims[:-2], groups * many)), c.dtype)


def _loop(b: Builder, c: Canonical) -> Instruction:
    """One dot a kernel position, summed."""
    wide, dims, kernel_dims = wide_type(c.dtype), c.x.shape.dims, c.kernel.shape.dims
    reach = [(n - 1) * w.stride + 1 for n, w in zip(c.counts, c.window.dims, strict=True)]
    strided = [SliceDim(0, n, w.stride) for n, w in zip(reach, c.window.dims, strict=True)]

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        x, kernel, total = values
        zero = b.constant(0, DType.S32)
        starts = position_of(b, k, c.window)
        piece = b.dynamic_slice(x, [zero, *starts, zero], (dims[0], *reach, dims[-1]))
        piece = b.slice(piece, [None, *strided, None])
        piece = b.reshape(piece, (*piece.shape.dims[:-1], c.feature_groups, dims[-1] // c.feature_groups))
        weights = b.reshape(b.dynamic_slice(kernel, [k, zero, zero], (1, *kernel_dims[-2:])), kernel_dims[-2:])
        part = b.convert(_product(b, c, piece, weights), wide)
        return [x, kernel, b.binary(Op.ADD, total, part)]

    kernel = b.reshape(c.kernel, (c.positions, *kernel_dims[-2:]))
    start = b.constant(0, wide, (dims[0] // c.batch_groups, *c.counts, kernel_dims[-1]))
    return b.convert(b.counted(c.positions, [c.x, kernel, start], step)[2], c.dtype)
