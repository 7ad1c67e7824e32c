"""Building blocks of wrappers: the kernel's function, loops with constant bounds, strided copies, calls of symbols."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.library.lapack import LETTERS
from ...planning.allocation import POOL_ALIGNMENT
from ...planning.plan import KernelRequest

POINTER = ir.PointerType()
I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
FLOATS: dict[DType, ir.Type] = {DType.F32: ir.FloatType(), DType.F64: ir.DoubleType()}
VOID = ir.VoidType()

Number: TypeAlias = ir.Value | int
"""An i64: a compile-time constant or an SSA value."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A strided array in memory. argument: the kernel argument that it is in (-1: none), to detect shared memory.
    strides: in elements.
    """

    pointer: ir.Value
    argument: int
    dtype: DType
    dims: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        size = 1
        for d in self.dims:
            size *= d
        return size


def dense(dims: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a dense column-major array."""
    strides, step = [], 1
    for size in dims:
        strides.append(step)
        step *= size
    return tuple(strides)


def element_type(dtype: DType) -> ir.Type:
    """An LLVM type with the size of one element, for moving it."""
    return ir.VectorType(I64, 2) if dtype.bytes == 16 else ir.IntType(8 * dtype.bytes)


class Frame:
    """The function of one kernel while it is being emitted. fused: products and sums may contract. ranged: it takes
    ranges. helpers: LLVM IR of the functions of other modules that it calls, by symbol.
    """

    def __init__(self, module: ir.Module, request: KernelRequest, fused: bool = True, ranged: bool = False):
        self.module, self.request, self.fused = module, request, fused
        self.function = _declare(module, request, ranged)
        self.range = tuple(self.function.args[len(request.arguments) :])
        self.helpers: dict[str, str] = {}
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))

    def finish(self) -> None:
        self.b.ret_void()

    # --- numbers -----------------------------------------------------------------------------------------------------

    def add(self, x: Number, y: Number) -> Number:
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if x == 0 or y == 0:
            return y if isinstance(x, int) else x
        return self.b.add(self.value(x), self.value(y))

    def times(self, x: Number, factor: int) -> Number:
        if isinstance(x, int):
            return x * factor
        return x if factor == 1 else 0 if factor == 0 else self.b.mul(x, I64(factor))

    @staticmethod
    def value(x: Number) -> ir.Value:
        return I64(x) if isinstance(x, int) else x

    def constant(self, type_: ir.Type, text: str, key: str) -> ir.Value:
        """The address of a constant of the module, for arguments that are passed by reference. Equal keys share a
        constant.
        """
        name = f"constant.{key}"
        found = self.module.globals.get(name)
        if found is None:
            found = ir.GlobalVariable(self.module, type_, name)
            found.initializer = ir.FormattedConstant(type_, text)
            found.linkage, found.global_constant, found.unnamed_addr, found.align = "private", True, True, 8
        return self.b.gep(found, [I64(0)], source_etype=I8)

    def integer(self, value: int) -> ir.Value:
        """The address of a 32-bit integer constant."""
        return self.constant(I32, str(value), f"i32.{value}")

    def character(self, value: str) -> ir.Value:
        return self.constant(I8, str(ord(value)), f"i8.{ord(value)}")

    def real(self, dtype: DType, value: float) -> ir.Value:
        """The address of a real constant, rounded to dtype."""
        exact = struct.unpack("f", struct.pack("f", value))[0] if dtype is DType.F32 else value
        text = f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
        return self.constant(FLOATS[dtype], text, f"{dtype.value}.{text}")

    def one(self, dtype: DType) -> ir.Value:
        """The address of the constant 1 of a real or complex dtype."""
        real = FLOATS[dtype.component]
        if not dtype.is_complex:
            return self.constant(real, "1.0", f"one.{LETTERS[dtype]}")
        return self.constant(ir.ArrayType(real, 2), f"[{real} 1.0, {real} 0.0]", f"one.{LETTERS[dtype]}")

    # --- memory ------------------------------------------------------------------------------------------------------

    def argument(self, number: int) -> ir.Value:
        return self.function.args[number]

    def work_space(self, size: int) -> ir.Value:
        """The kernel's scratch argument, or else `size` bytes on the stack. Call it in the kernel's entry block."""
        if self.request.scratch >= 0:
            return self.argument(self.request.scratch)
        return self.stack(size)

    def stack(self, size: int) -> ir.Value:
        """`size` bytes on the stack that are valid until the kernel returns."""
        with self.b.goto_entry_block():
            place = self.b.alloca(ir.ArrayType(I8, max(size, 1)))
        place.align, place.type = POOL_ALIGNMENT, POINTER
        return place

    def offset(self, pointer: ir.Value, elements: Number, bytes_: int) -> ir.Value:
        """The address `elements` elements of `bytes_` bytes behind a pointer."""
        distance = self.times(elements, bytes_)
        return pointer if distance == 0 else self.b.gep(pointer, [self.value(distance)], source_etype=I8)

    def at(self, part: Part, index: Sequence[Number]) -> ir.Value:
        """The address of the element of a part at an index."""
        place: Number = 0
        for position, stride in zip(index, part.strides, strict=True):
            place = self.add(place, self.times(position, stride))
        return self.offset(part.pointer, place, part.dtype.bytes)

    def load(self, address: ir.Value, type_: ir.Type) -> ir.Value:
        return self.b.load(address, typ=type_, align=_align(type_))

    def store(self, value: ir.Value, address: ir.Value) -> None:
        self.b.store(value, address, align=_align(value.type))

    # --- loops -------------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, count: int) -> Iterator[Number]:
        """A loop whose body runs with the index 0, 1, … count - 1."""
        if count == 1:
            yield 0
            return
        with self.walk(0, count) as index:
            yield index

    @contextmanager
    def walk(self, begin: Number, end: Number, step: int = 1) -> Iterator[ir.Value]:
        """A loop whose body runs with the index begin, begin + step, … below `end`."""
        before = self.b.block
        head, body, after = (self.function.append_basic_block(name) for name in ("head", "body", "after"))
        self.b.branch(head)
        self.b.position_at_end(head)
        index = self.b.phi(I64)
        index.add_incoming(self.value(begin), before)
        self.b.cbranch(self.b.icmp_unsigned("<", index, self.value(end)), body, after)
        self.b.position_at_end(body)
        yield index
        index.add_incoming(self.b.add(index, I64(step)), self.b.block)
        self.b.branch(head)
        self.b.position_at_end(after)

    def nest(self, dims: Sequence[int], body: Callable[[list[Number]], None]) -> None:
        """A loop nest over all dimensions, the last one innermost."""
        self._nest(list(dims), [], body)

    def _nest(self, dims: list[int], index: list[Number], body: Callable[[list[Number]], None]) -> None:
        if len(index) == len(dims):
            body(index)
            return
        with self.loop(dims[len(index)]) as position:
            self._nest(dims, [*index, position], body)

    @contextmanager
    def when(self, condition: ir.Value) -> Iterator[None]:
        with self.b.if_then(condition):
            yield

    # --- whole parts -------------------------------------------------------------------------------------------------

    def copy(self, source: Part, target: Part) -> None:
        """Copy all elements. Emits nothing if both parts are the same memory."""
        if source.argument == target.argument and source.argument >= 0 and source.strides == target.strides:
            return
        if not target.size:
            return
        if _same_order(source, target):
            self.b.call(self._memcpy(), [target.pointer, source.pointer, I64(target.size * target.dtype.bytes), _FALSE])
            return
        type_ = element_type(target.dtype)
        order = sorted(range(len(target.dims)), key=lambda d: -target.strides[d])

        def move(positions: list[Number]) -> None:
            index: list[Number] = [0] * len(order)
            for d, position in zip(order, positions):
                index[d] = position
            self.store(self.load(self.at(source, index), type_), self.at(target, index))

        dims, across = [target.dims[d] for d in order], _across(source, order)
        if across is None:
            self.nest(dims, move)
        else:
            self._tiles(dims, across, move)

    def _tiles(self, dims: list[int], across: int, body: Callable[[list[Number]], None]) -> None:
        """As `nest`, in squares of the last dimension and another, so that what is read is whole lines."""
        index: list[Number] = [0] * len(dims)
        sides = (across, len(dims) - 1)
        with ExitStack() as loops:
            for d, size in enumerate(dims):
                if d not in sides:
                    index[d] = loops.enter_context(self.loop(size))
            starts = [loops.enter_context(self.walk(0, dims[d], _TILE)) for d in sides]
            for d, start in zip(sides, starts, strict=True):
                end = self.b.add(start, I64(_TILE))
                if dims[d] % _TILE:
                    end = self.b.select(self.b.icmp_unsigned("<", end, I64(dims[d])), end, I64(dims[d]))
                index[d] = loops.enter_context(self.walk(start, end))
            body(index)

    def _memcpy(self) -> ir.Function:
        return self.declare("llvm.memcpy.p0.p0.i64", VOID, [POINTER, POINTER, I64, ir.IntType(1)])

    def zero(self, part: Part) -> None:
        """Set all bytes of a part without gaps to zero."""
        if part.size:
            memset = self.declare("llvm.memset.p0.i64", VOID, [POINTER, I8, I64, ir.IntType(1)])
            self.b.call(memset, [part.pointer, I8(0), I64(part.size * part.dtype.bytes), _FALSE])

    # --- calls -------------------------------------------------------------------------------------------------------

    def declare(self, symbol: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        found = self.module.globals.get(symbol)
        if found is None:
            found = ir.Function(self.module, ir.FunctionType(result, parameters), symbol)
        return found

    def outside(self, symbol: str) -> ir.Value:
        """The address of data that the loader resolves."""
        found = self.module.globals.get(symbol)
        if found is None:
            found = ir.GlobalVariable(self.module, I8, symbol)
            found.linkage = "external"
        return found


_FALSE = ir.IntType(1)(0)

_LINE, _TILE = 64, 16
"""Bytes of a line of the cache; elements along each side of a square that is copied at a time."""


def _across(source: Part, order: Sequence[int]) -> int | None:
    """The place, among dimensions in the order of a copy, of the one along which the source's elements are nearest in
    memory, if the copy's last one crosses lines of it.
    """
    long = [k for k, d in enumerate(order) if source.dims[d] > 1]
    if not long or long[-1] != len(order) - 1 or source.strides[order[-1]] * source.dtype.bytes < _LINE:
        return None
    across = min(long, key=lambda k: source.strides[order[k]])
    return across if across != long[-1] else None


def _align(type_: ir.Type) -> int:
    """The alignment, in bytes, that every element has, however the caller's array is aligned."""
    if isinstance(type_, ir.IntType):
        return max(1, min(type_.width // 8, 4))
    return 4


def _same_order(a: Part, b: Part) -> bool:
    """Whether both parts are dense and have the same order of dimensions."""
    kept = [(s, u, n) for s, u, n in zip(a.strides, b.strides, b.dims) if n != 1]
    if any(s != u for s, u, _ in kept):
        return False
    kept.sort()
    return (not kept or kept[0][0] == 1) and all(y[0] == x[0] * x[2] for x, y in pairwise(kept))


def _declare(module: ir.Module, request: KernelRequest, ranged: bool) -> ir.Function:
    types = [*[POINTER] * len(request.arguments), *[I64] * 2 * ranged]
    function = ir.Function(module, ir.FunctionType(VOID, types), request.name)
    function.attributes.add("nounwind")
    for number, (argument, parameter) in enumerate(zip(request.arguments, function.args)):
        parameter.name = f"arg{number}"
        parameter.add_attribute("noalias")
        if not argument.written:
            set.add(parameter.attributes, "readonly")
        parameter.attributes.align = argument.alignment
        parameter.attributes.dereferenceable = argument.slice.size
    return function
