"""Sums of few columns whose rows follow each other in memory: as one run, by a function that kernels share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..hlo.dtypes import DType
from .ahead import streams
from .builder import Index, Unroll
from .elemental import Elemental, Indices
from .elements import flatten, raw_type
from .graph import Node
from .long_sums import LANES, are_float_sums
from .ranges import Steps, outer_loops
from .sum_run import Form, SumRun, is_run, stored_of


def emit_columns_of_run(
    e: Elemental, node: Node, finish: Callable[[Indices], None], inside: Sequence[int], steps: Steps | None
) -> bool:
    """Emit a sum over columns, each result followed by `finish` with its value bound; False if no function does it.

    inside: the operand's dimensions that the steps number.
    """
    b, operand, initial = e.b, node.inputs[0], node.inputs[-1]
    reduced, rank = sorted(node.attributes["dimensions"]), len(operand.dims)
    if len(node.outputs) != 1 or operand.dtype not in (DType.F32, DType.F64) or not are_float_sums(node):
        return False
    if reduced != list(range(reduced[0], reduced[-1] + 1)) or not operand.shape.is_row_major:
        return False
    outer, columns = list(range(reduced[0])), list(range(reduced[-1] + 1, rank))
    width, source = math.prod(operand.dims[d] for d in columns), stored_of(operand)
    count = math.prod(operand.dims[d] for d in reduced) * width
    fits = 1 < width <= LANES and width & (width - 1) == 0 and node.output.shape.is_row_major and is_run(b, count)
    if source is None or not fits or any(d >= len(outer) for d in inside):
        return False
    element = raw_type(b.types, operand.dtype)
    (start,) = flatten(e.value(initial, ()))
    helper = SumRun(Form.PLAIN, operand.dtype, bool(streams([operand], operand)), width)
    with outer_loops(b, steps, inside, operand.dims, outer, Unroll.NONE) as places:
        first: Index = 0
        for d in outer:
            first = b.add(first, b.mul(places.get(d, 0), operand.strides[d]))
        sums = helper.call_into(b, [b.pointer(e.pointers[source.argument], first, element)], count)
        with b.loop(0, width) as column:
            index: list[Index] = [places.get(d, 0) for d in outer]
            left: Index = column.index
            for d in columns:
                inner = math.prod(operand.dims[d + 1 :])
                index.append(b.div(left, inner) if operand.dims[d] != 1 else 0)
                left = b.rem(left, inner) if operand.dims[d] != 1 else left
            value = b.load(b.pointer(sums, column.index, element), element, operand.dtype.bytes)
            b.remember((node.output, tuple(index), False), b.op("arith.addf", start, value))
            finish(tuple(index))
    return True
