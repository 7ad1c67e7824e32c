"""Expand the three batch normalisation ops into elementwise ops and reductions over all but the feature dimension.

Types narrower than f32 compute in f32 and round once. The variance is the mean of squared distances from the mean. This
reads the operand once more than E[x²] - E[x]² would, which loses precision if the mean is large.
"""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..building import Builder
from ..expansion import expand_ops


def expand_batch_norm(module: Module) -> Module:
    """Replace batch-norm-training, -inference and -grad outside kernels by reductions and elementwise ops."""
    return expand_ops(
        module,
        {Op.BATCH_NORM_TRAINING: training, Op.BATCH_NORM_INFERENCE: inference, Op.BATCH_NORM_GRAD: gradients},
    )


@dataclass(frozen=True)
class Present:
    """The valid part of an array with dynamic dimensions.

    elements: a pred array of the elements that count (None: all). count: valid elements per feature, an s64 scalar.
    """

    elements: Instruction | None
    count: Instruction


class _Features:
    """Arrays of one shape in the type used for computing, and vectors with one element per feature."""

    def __init__(self, i: Instruction, b: Builder, present: Present | None = None):
        shape = i.operands[0].shape
        self.b, self.dims, self.feature = b, shape.dims, i.attributes["feature_index"]
        self.wide = shape.dtype if shape.dtype in (DType.F32, DType.F64) else DType.F32
        self.others = tuple(d for d in range(shape.rank) if d != self.feature)
        full = math.prod(shape.dims[d] for d in self.others)
        self.count = full if present is None else b.convert(present.count, self.wide)
        self.elements = None if present is None else present.elements
        self.epsilon = i.attributes.get("epsilon", 0.0)

    def widen(self, x: Instruction) -> Instruction:
        return self.b.convert(self.b.plain(x), self.wide)

    def spread(self, vector: Instruction) -> Instruction:
        return self.b.broadcast(vector, self.dims, (self.feature,))

    def sum(self, x: Instruction) -> Instruction:
        if self.elements is not None:
            x = self.b.select(self.elements, x, self.b.constant(0, self.wide, self.dims))
        return self.b.reduce(x, Op.ADD, 0.0, self.others)

    def mean(self, x: Instruction) -> Instruction:
        return self.b.binary(Op.DIVIDE, self.sum(x), self.count)

    def centred(self, x: Instruction, mean: Instruction) -> Instruction:
        return self.b.binary(Op.SUBTRACT, x, self.spread(mean))

    def inverse(self, variance: Instruction) -> Instruction:
        """1 / √(variance + ε)."""
        return self.b.unary(Op.RSQRT, self.b.binary(Op.ADD, variance, self.epsilon))

    def normalised(self, x: Instruction, mean: Instruction, variance: Instruction) -> Instruction:
        return self.b.binary(Op.MULTIPLY, self.centred(x, mean), self.spread(self.inverse(variance)))

    def scaled(self, x: Instruction, scale: Instruction, offset: Instruction) -> Instruction:
        scaled = self.b.binary(Op.MULTIPLY, x, self.spread(scale))
        return self.b.binary(Op.ADD, scaled, self.spread(offset))


def training(i: Instruction, b: Builder, present: Present | None = None) -> Instruction:
    """Returns (normalised, mean, variance)."""
    f = _Features(i, b, present)
    x, scale, offset = map(f.widen, i.operands)
    mean = f.mean(x)
    centred = f.centred(x, mean)
    variance = f.mean(b.binary(Op.MULTIPLY, centred, centred))
    result = f.scaled(f.normalised(x, mean, variance), scale, offset)
    return b.tuple([b.convert(r, s.dtype) for r, s in zip((result, mean, variance), i.shape.elements, strict=True)])


def inference(i: Instruction, b: Builder, present: Present | None = None) -> Instruction:
    f = _Features(i, b, present)
    x, scale, offset, mean, variance = map(f.widen, i.operands)
    return b.convert(f.scaled(f.normalised(x, mean, variance), scale, offset), i.shape.dtype)


def gradients(i: Instruction, b: Builder, present: Present | None = None) -> Instruction:
    """Returns the gradients (of the operand, of the scale, of the offset)."""
    f = _Features(i, b, present)
    x, scale, mean, variance, upstream = map(f.widen, i.operands)
    normalised = f.normalised(x, mean, variance)
    by_offset = f.sum(upstream)
    by_scale = f.sum(b.binary(Op.MULTIPLY, upstream, normalised))
    pulled = b.binary(Op.MULTIPLY, normalised, f.spread(by_scale))
    total = b.binary(Op.SUBTRACT, b.binary(Op.MULTIPLY, upstream, f.count), f.spread(by_offset))
    factor = b.binary(Op.DIVIDE, b.binary(Op.MULTIPLY, scale, f.inverse(variance)), f.count)
    by_operand = b.binary(Op.MULTIPLY, f.spread(factor), b.binary(Op.SUBTRACT, total, pulled))
    results = (by_operand, by_scale, by_offset)
    return b.tuple([b.convert(r, s.dtype) for r, s in zip(results, i.shape.elements, strict=True)])
