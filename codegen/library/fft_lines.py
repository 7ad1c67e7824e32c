"""Writes the LLVM IR of a function on blocks of rows: loops, vectors, whose lanes are rows, and complex numbers.

A complex number is (re, im), two vectors; hlo/library/transforms.py says how a block holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from llvmlite import ir

from ...hlo.library.transforms import LINE
from .frame import I8, I32, I64, VOID, Number

Complex: TypeAlias = tuple[ir.Value, ir.Value]

HALF = LINE // 2
REAL = {"f": ir.FloatType(), "d": ir.DoubleType()}


class Lines:
    """A function while its body is written. letter: of the real type; fused: products and sums may contract."""

    def __init__(self, module: ir.Module, name: str, parameters: Sequence[ir.Type], letter: str, fused: bool):
        self.function = ir.Function(module, ir.FunctionType(VOID, parameters), name)
        for attribute in ("nounwind", "willreturn"):
            set.add(self.function.attributes, attribute)
        for parameter in self.function.args:
            if isinstance(parameter.type, ir.PointerType):
                parameter.add_attribute("captures(none)")
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.real = REAL[letter]
        self.bytes = 4 if letter == "f" else 8
        self.lanes = HALF // self.bytes
        self.vector = ir.VectorType(self.real, self.lanes)
        self.flags = ("contract",) if fused else ()

    # --- places and loops

    @contextmanager
    def loop(self, count: Number, begin: Number = 0, step: int = 1) -> Iterator[ir.Value]:
        """The body runs at least once, with begin, begin + step, … below `count`."""
        before, body = self.b.block, self.function.append_basic_block("body")
        self.b.branch(body)
        self.b.position_at_end(body)
        index = self.b.phi(I64)
        index.add_incoming(_number(begin), before)
        yield index
        following = self.b.add(index, I64(step), flags=["nuw", "nsw"])
        index.add_incoming(following, self.b.block)
        after = self.function.append_basic_block("after")
        self.b.cbranch(self.b.icmp_unsigned("<", following, _number(count)), body, after)
        self.b.position_at_end(after)

    def at(self, pointer: ir.Value, count: Number, bytes_: Number = 1) -> ir.Value:
        """The address `count` times `bytes_` bytes behind a pointer."""
        if isinstance(count, int) and isinstance(bytes_, int):
            distance: ir.Value = I64(count * bytes_)
        else:
            distance = _number(count) if bytes_ == 1 else self.b.mul(_number(count), _number(bytes_))
        return self.b.gep(pointer, [distance], source_etype=I8)

    # --- vectors

    def load(self, pointer: ir.Value, align: int = HALF) -> ir.Value:
        return self.b.load(pointer, typ=self.vector, align=align)

    def store(self, value: ir.Value, pointer: ir.Value, align: int = HALF) -> None:
        self.b.store(value, pointer, align=align)

    def spread(self, pointer: ir.Value) -> ir.Value:
        """A vector whose lanes are all the real number in memory."""
        return self.splat(self.b.load(pointer, typ=self.real, align=self.bytes))

    def splat(self, value: ir.Value) -> ir.Value:
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.b.insert_element(undefined, value, I32(0))
        return self.shuffle(first, undefined, [0] * self.lanes)

    def constant(self, value: float) -> ir.Value:
        return self.splat(ir.Constant(self.real, value))

    def shuffle(self, x: ir.Value, y: ir.Value, lanes: Sequence[int]) -> ir.Value:
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))

    def add(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.fadd(x, y, flags=self.flags)

    def sub(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.fsub(x, y, flags=self.flags)

    def mul(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.fmul(x, y, flags=self.flags)

    def transposed(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """The columns of n vectors of n lanes, by steps within 16 bytes and a last one between them."""
        values, wide = list(rows), 16 // self.bytes
        span = 1
        while span < wide:
            low = [g + u for g in range(0, self.lanes, wide) for u in _woven(wide, span, 0, self.lanes)]
            high = [g + u for g in range(0, self.lanes, wide) for u in _woven(wide, span, 1, self.lanes)]
            values = self._paired(values, span, low, high)
            span *= 2
        low = [*range(wide), *range(self.lanes, self.lanes + wide)]
        values = self._paired(values, wide, low, [lane + wide for lane in low])
        return (
            values if wide == 2 else [values[n] for g in range(0, self.lanes, wide) for n in (g, g + 2, g + 1, g + 3)]
        )

    def _paired(self, values: list[ir.Value], span: int, low: list[int], high: list[int]) -> list[ir.Value]:
        """Replace the values at n and n + span, for each n without that bit, by two shuffles of them."""
        result = list(values)
        for n in range(len(values)):
            if not n & span:
                x, y = values[n], values[n + span]
                result[n], result[n + span] = self.shuffle(x, y, low), self.shuffle(x, y, high)
        return result

    # --- complex numbers

    def get(self, place: ir.Value) -> Complex:
        return self.load(place), self.load(self.at(place, HALF))

    def put(self, value: Complex, place: ir.Value) -> None:
        self.store(value[0], place)
        self.store(value[1], self.at(place, HALF))

    def spread_complex(self, pointer: ir.Value) -> Complex:
        return self.spread(pointer), self.spread(self.at(pointer, self.bytes))

    def plus(self, x: Complex, y: Complex) -> Complex:
        return self.add(x[0], y[0]), self.add(x[1], y[1])

    def minus(self, x: Complex, y: Complex) -> Complex:
        return self.sub(x[0], y[0]), self.sub(x[1], y[1])

    def scaled(self, x: Complex, factor: ir.Value) -> Complex:
        return self.mul(x[0], factor), self.mul(x[1], factor)

    def times(self, x: Complex, y: Complex) -> Complex:
        re = self.sub(self.mul(x[0], y[0]), self.mul(x[1], y[1]))
        return re, self.add(self.mul(x[0], y[1]), self.mul(x[1], y[0]))

    def less_turned(self, x: Complex, y: Complex) -> Complex:
        """x - i · y."""
        return self.add(x[0], y[1]), self.sub(x[1], y[0])

    def plus_turned(self, x: Complex, y: Complex) -> Complex:
        """x + i · y."""
        return self.sub(x[0], y[1]), self.add(x[1], y[0])


def _woven(wide: int, span: int, half: int, lanes: int) -> list[int]:
    """Lanes of 16 bytes of two vectors: groups of `span` of the first half, or the second, of one and of the other."""
    groups = range(half * wide // 2, (half + 1) * wide // 2, span)
    return [vector * lanes + g + n for g in groups for vector in (0, 1) for n in range(span)]


def _number(x: Number) -> ir.Value:
    return I64(x) if isinstance(x, int) else x
