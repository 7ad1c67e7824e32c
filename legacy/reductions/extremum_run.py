"""The maximum or minimum of neighbours in memory, as a function that the kernels of all programs call."""

from __future__ import annotations

import math

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Code, Unroll
from ..core.helper import call, declared
from ..core.registers import I64, POINTER, memory_type, real_constant
from ..core.stack import StackArray, alloca
from ..core.view import View
from ..loops.fetch import AHEAD
from ..loops.linear import source_of
from ..loops.memory import Pointer, prefetch
from .extremum import close_chains, close_pair, combine_chains, combine_rows, open_chains, open_pair

LANES, ROWS = 64, 4
"""Accumulators side by side, and elements that each takes together."""

LEAST = LANES * ROWS
"""Minimum elements for which the function is called. If they are no multiple, it takes some of the last ones twice."""


@dataclass(frozen=True, slots=True)
class Run:
    """ahead: what follows is fetched."""

    op: Op
    dtype: DType
    ahead: bool

    @property
    def name(self) -> str:
        return f"legacy.{self.op.value}.{self.dtype.value}{'a' * self.ahead}"

    def call(self, code: Code, first: ir.Value, count: int) -> ir.Value:
        """The extremum of `count` elements, LEAST or more."""
        type_ = memory_type(self.dtype)
        result = alloca(code, type_, 1)
        call(code.b, self, [first, I64(count), result])
        return code.b.load(result, typ=type_, align=self.dtype.bytes)

    def declare(self, module: ir.Module) -> ir.Function:
        return declared(module, self.name, [POINTER, I64, POINTER], [True, False], (0, 2))

    def define(self, module: ir.Module) -> None:
        function = self.declare(module)
        code, (source, count, result) = Code(module, function), function.args
        type_, bytes_ = memory_type(self.dtype), self.dtype.bytes
        first = real_constant(type_, -math.inf if self.op is Op.MAXIMUM else math.inf)
        lanes = [StackArray(code, value, LANES) for value in open_pair(code, first)]
        for array, value in zip(lanes, open_pair(code, first), strict=True):
            with code.loop(LANES, unroll=Unroll.VECTORS) as i:
                array.write(i, value)
        with code.loop(count, step=LEAST, unroll=Unroll.NEVER) as turn:
            start = code.minimum(turn, code.subtract(count, LEAST))
            at = code.b.gep(source, [code.value(start)], source_etype=type_)
            if self.ahead:
                for k in range(0, LEAST * bytes_, code.view.processor.line_bytes):
                    prefetch(code, Pointer(at), self.dtype, (AHEAD + k) // bytes_)
            with code.loop(LANES, unroll=Unroll.VECTORS) as n:
                values = []
                for row in range(ROWS):
                    place = code.b.gep(at, [code.value(code.add(n, row * LANES))], source_etype=type_)
                    values.append(code.b.load(place, typ=type_, align=bytes_))
                pair = combine_rows(code, self.op, [array.read(n) for array in lanes], values)
                for array, value in zip(lanes, pair, strict=True):
                    array.write(n, value)
        loop = code.loop(LANES, carried=open_chains(code, first), unroll=Unroll.VECTORS)
        best = close_pair(code, [array.read(loop.index) for array in lanes])
        chains = loop.close(combine_chains(code, self.op, list(loop.carried), best))
        code.b.store(close_chains(code, list(chains)), result, align=bytes_)
        code.b.ret_void()


def source_of_run(view: View, operand: Instruction, count: int) -> Instruction | None:
    """What is in memory and has the elements of an operand at the same offsets, if the function computes an extremum
    of `count` neighbours of it.
    """
    if count < LEAST or view.by_element or operand.shape.dtype not in (DType.F32, DType.F64):
        return None
    return source_of(operand, view.leaves)
