"""The maximum or minimum of neighbours in memory as a function that kernels share: rows of a softmax have one each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Pointer, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Buffer
from ..core.slots import Slots
from ..loops.fetch import DISTANCE_BYTES
from ..loops.helper import call_helper, memory_types
from .extremum import advance_column, advance_three, close_column, close_three, open_three

LANES = 64
"""Accumulators side by side."""

ELEMENTS_TOGETHER = 4
"""Elements that each takes together."""

FEWEST = LANES * ELEMENTS_TOGETHER
"""Minimum elements for which the function is called. The last ones are taken twice if they are no multiple of these."""


@dataclass(frozen=True, slots=True)
class ExtremumRun:
    """fetches: what lies ahead is fetched."""

    op: Op
    dtype: DType
    fetches: bool

    @property
    def name(self) -> str:
        return f"mlir.{self.op.value}.{self.dtype.value}{'.a' * self.fetches}"

    @property
    def fma(self) -> bool:
        return False

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of the elements and of the result, the elements' offset and number."""
        return [*memory_types(b, [raw_type(b.types, self.dtype)] * 2), b.types.i64, b.types.i64]

    def call(self, b: Builder, place: Pointer, count: int) -> Value:
        """The extremum of elements in memory, FEWEST or more."""
        element = raw_type(b.types, self.dtype)
        result = b.alloca(element, 1, self.dtype.bytes)
        call_helper(b, self, [place, result], [count], 1)
        return b.load(result, element, self.dtype.bytes)

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        source, result, start, count = parameters
        element, bytes_ = raw_type(b.types, self.dtype), self.dtype.bytes
        first = b.constant(-math.inf if self.op is Op.MAXIMUM else math.inf, element)
        openings = open_three(b, first)[:2]
        slots = Slots.for_values(b, openings, LANES)
        with b.loop(0, LANES, unroll=Unroll.VECTORIZED) as lane:
            slots.write(lane.index, openings)
        with b.loop(0, count, FEWEST, unroll=Unroll.NONE) as turn:
            at = b.add(start, b.least(turn.index, b.sub(count, FEWEST)))
            if self.fetches:
                for k in range(0, FEWEST, b.processor.line_bytes // bytes_):
                    b.prefetch(b.pointer(source, b.add(at, DISTANCE_BYTES // bytes_ + k), element))
            with b.loop(0, LANES, unroll=Unroll.VECTORIZED) as lane:
                places = [b.add(at, b.add(lane.index, k * LANES)) for k in range(ELEMENTS_TOGETHER)]
                found = [b.load(b.pointer(source, place, element), element, bytes_) for place in places]
                slots.write(lane.index, advance_column(b, self.op, slots.read(lane.index), found))
        with b.loop(0, LANES, 1, open_three(b, first), Unroll.VECTORIZED) as lane:
            lane.next = advance_three(b, self.op, lane.carried, close_column(b, slots.read(lane.index)))
        b.store(close_three(b, lane.values), b.pointer(result, 0, element), bytes_)


def run_of(facts: Facts, source: Buffer, count: int) -> Buffer | None:
    """The buffer in memory of which the function computes an extremum of `count` neighbours, at the offsets of
    `source`; None if it does not.
    """
    if count < FEWEST or facts.by_element or source.dtype not in (DType.F32, DType.F64):
        return None
    while source.writer is not None and source.writer.opcode in (Op.RESHAPE, Op.BITCAST):
        (before,) = source.writer.inputs
        if not (source.shape.is_row_major and before.shape.is_row_major) or before.dtype is not source.dtype:
            return None
        source = before
    return source if source.writer is None and source.argument >= 0 else None
