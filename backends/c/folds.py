"""Opcodes whose element combines many: reduce, reduce-window, dot and convolution, by loops around one combination."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ...hlo.analysis.windows import single_op, taps, window_of
from ...hlo.attributes import ConvolutionDims, Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from .code import Code, Place, Var
from .elemental import At, Elemental, ElementRule, Value
from .scalars import convert, decode
from .sums import Sum, is_summed
from .types import NARROW, c_type


class Fold:
    """What reduce and reduce-window keep of the elements so far: a sum, or a variable for each operand."""

    def __init__(self, e: Elemental, i: Instruction, inits: Sequence[Var], length: int):
        self.e, self.region, self.many = e, i.called()[0], i.shape.is_tuple
        self.dtypes = [o.shape.dtype for o in i.operands[: len(inits)]]
        self.sum: Sum | None = None
        if single_op(i) is Op.ADD and not e.strict and is_summed(self.dtypes[0], length):
            self.sum = Sum.start(e.code, self.dtypes[0], inits[0].text)
        else:
            self.names = [e.code.variable(c_type(d), v.text) for d, v in zip(self.dtypes, inits, strict=True)]

    def add(self, values: Sequence[Var]) -> None:
        if self.sum is not None:
            self.sum.add(values[0].text)
            return
        code = self.e.code
        old = self._read()
        new = self.e.apply(self.region, [*old, *values])
        for name, value in zip(self.names, new if isinstance(new, tuple) else (new,), strict=True):
            code.line(f"{name} = {value};")

    def values(self) -> list[Var]:
        """The results so far."""
        if self.sum is not None:
            return [self.sum.close()]
        return self._read()

    def _read(self) -> list[Var]:
        code, named = self.e.code, zip(self.dtypes, self.names, strict=True)
        return [code.local(code.variable(f"const {c_type(dtype)}", name)) for dtype, name in named]

    def close(self) -> Value:
        values = self.values()
        return tuple(values) if self.many else values[0]


def _reduce(e: Elemental, i: Instruction, at: At) -> Value:
    many = len(i.operands) // 2
    source, dims = i.operands[0].shape, set(i.dimensions)
    fold = Fold(e, i, [e.scalar(o) for o in i.operands[many:]], math.prod(source.dims[d] for d in dims))
    if all(source.dims[d] for d in dims):
        kept = iter(at)
        places: list[Place] = [0 if d in dims else next(kept) for d in range(source.rank)]
        with ExitStack() as loops:
            for d in source.minor_to_major[::-1]:
                if d in dims:
                    places[d] = loops.enter_context(e.code.span(source.dims[d]))
            fold.add([e.single(o, tuple(places)) for o in i.operands[:many]])
    return fold.close()


def window_places(
    code: Code, axes: Sequence[tuple[int, WindowDim]], at: At, inside: Callable[[list[Place], list[Place]], None]
) -> None:
    """Call `inside` (positions in the input, in the window) within loops over the window, where the input has an
    element. axes: size of the input, and window, for each dimension.
    """
    places: list[Place] = []
    window: list[Place] = []
    conditions: list[str] = []
    with ExitStack() as loops:
        for position, (size, w) in zip(at, axes, strict=True):
            tap = loops.enter_context(code.span(w.size))
            window.append(tap)
            seen = code.subtract(w.size - 1, tap) if w.reverse else tap
            reached = code.add(code.multiply(position, w.stride), code.multiply(seen, w.rhs_dilate))
            place = code.subtract(reached, w.pad_low)
            last = (size - 1) * w.lhs_dilate
            if w.pad_low > 0 or w.pad_high > 0 or w.lhs_dilate > 1 or isinstance(place, int):
                conditions.append(f"(uint64_t)({place}) <= {last}")
            if w.lhs_dilate > 1:
                conditions.append(f"{place} % {w.lhs_dilate} == 0")
                place = code.declare("int64_t", f"{place} / {w.lhs_dilate}", place)
            places.append(place)
        if conditions:
            loops.enter_context(code.block(f"if ({' && '.join(conditions)})", barrier=True))
        inside(places, window)


def _reduce_window(e: Elemental, i: Instruction, at: At) -> Value:
    many = len(i.operands) // 2
    fold = Fold(e, i, [e.scalar(o) for o in i.operands[many:]], taps(i))
    source = i.operands[0].shape
    if source.size and all(w.size for w in window_of(i)):
        axes = list(zip(source.dims, window_of(i), strict=True))
        window_places(
            e.code, axes, at, lambda places, _: fold.add([e.single(o, tuple(places)) for o in i.operands[:many]])
        )
    return fold.close()


class Products:
    """A sum of `length` products of two operands, in the type of the result of `i`."""

    def __init__(self, e: Elemental, i: Instruction, length: int):
        self.e, self.result = e, i.shape.dtype
        self.sources = [o.shape.dtype for o in i.operands[:2]]
        self.dtype = _inner([*self.sources, self.result])
        self.sum: Sum | None = None
        if is_summed(self.dtype, length) and not e.strict:
            zero = f"tb_make_{self.dtype.value}(0, 0)" if self.dtype.is_complex else from_number(self.dtype)
            self.sum = Sum.start(e.code, self.dtype, zero)
            return
        zero, self.type = "0", "uint64_t"
        if self.dtype.is_complex:
            zero, self.type = f"tb_make_{self.dtype.value}(0, 0)", c_type(self.dtype)
        elif self.dtype.is_float:
            self.type = "double" if self.dtype is DType.F64 else "float"
        self.name = e.code.variable(self.type, zero)

    def add(self, a: Var, b: Var) -> None:
        code, dtype = self.e.code, self.dtype
        if dtype.is_float:
            x, y = (_real(s, v.text) for s, v in zip(self.sources, (a, b), strict=True))
        else:
            x, y = (convert(s, dtype, v.text) for s, v in zip(self.sources, (a, b), strict=True))
        if self.sum is not None:
            self.sum.add_wide(*self._wide(x, y))
        elif dtype.is_complex:
            code.line(f"{self.name} = tb_add_{dtype.value}({self.name}, tb_mul_{dtype.value}({x}, {y}));")
        elif dtype.is_float:
            code.line(f"{self.name} += ({self.type}){x} * ({self.type}){y};")
        elif dtype is DType.PRED:
            code.line(f"{self.name} |= {x} & {y};")
        else:
            code.line(f"{self.name} += (uint64_t){x} * (uint64_t){y};")

    def _wide(self, x: str, y: str) -> list[str]:
        """The parts of a product, as doubles."""
        if not self.dtype.is_complex:
            return [f"(double){x} * (double){y}"]
        p, q, r, s = f"(double){x}.re", f"(double){x}.im", f"(double){y}.re", f"(double){y}.im"
        return [f"{p} * {r} - {q} * {s}", f"{p} * {s} + {q} * {r}"]

    def close(self) -> Var:
        code, found = self.e.code, self._total()
        if self.result is self.dtype:
            return found
        text = convert(self.dtype, self.result, found.text)
        return code.local(code.variable(f"const {c_type(self.result)}", text))

    def _total(self) -> Var:
        """The sum in the type in which it is made."""
        code, dtype = self.e.code, self.dtype
        if self.sum is not None:
            return self.sum.close()
        if dtype.is_complex:
            text = self.name
        elif dtype.is_float:
            text = convert(DType.F64 if dtype is DType.F64 else DType.F32, dtype, self.name)
        else:
            text = f"{self.name} != 0" if dtype is DType.PRED else convert(DType.U64, dtype, self.name)
        return code.local(code.variable(f"const {c_type(dtype)}", text))


THROUGH_F16 = frozenset({DType.F8E5M2, DType.F8E4M3FN})
"""Types whose products XLA computes in f16, so that they are rounded twice."""


def _inner(dtypes: Sequence[DType]) -> DType:
    """The type of the sum: of operands and result the result's, unless another is a float or complex and it is not."""
    result = dtypes[-1]
    double = any(d in (DType.F64, DType.C128) for d in dtypes)
    if any(d.is_complex for d in dtypes):
        return result if result.is_complex else (DType.C128 if double else DType.C64)
    if result in THROUGH_F16:
        return DType.F16
    if any(d.is_float for d in dtypes):
        return result if result.is_float else (DType.F64 if double else DType.F32)
    return result


def from_number(dtype: DType) -> str:
    """Zero in a float type."""
    return "0u" if dtype in NARROW else "0"


def _real(source: DType, x: str) -> str:
    """A factor as a C number: the real part counts."""
    return f"{x}.re" if source.is_complex else decode(source, x)


def _dot(e: Elemental, i: Instruction, at: At) -> Value:
    left, right = i.operands[:2]
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    lb, rb, lc, rc = (tuple(i.attributes.get(name, ())) for name in names)
    a: list[Place] = [0] * left.shape.rank
    b: list[Place] = [0] * right.shape.rank
    positions = iter(at)
    for d, k in zip(lb, rb, strict=True):
        a[d] = b[k] = next(positions)
    for places, taken in ((a, (*lb, *lc)), (b, (*rb, *rc))):
        for d in range(len(places)):
            if d not in taken:
                places[d] = next(positions)
    products = Products(e, i, math.prod(left.shape.dims[d] for d in lc))
    if all(left.shape.dims[d] for d in lc):
        with ExitStack() as loops:
            for d, k in zip(lc, rc, strict=True):
                a[d] = b[k] = loops.enter_context(e.code.span(left.shape.dims[d]))
            products.add(e.single(left, tuple(a)), e.single(right, tuple(b)))
    return products.close()


def _convolution(e: Elemental, i: Instruction, at: At) -> Value:
    left, right = i.operands[:2]
    code, dims = e.code, i.attributes["dim_labels"]
    assert isinstance(dims, ConvolutionDims)
    features, batches = (i.attributes.get(f"{n}_group_count", 1) for n in ("feature", "batch"))
    groups = max(features, batches)
    ins = right.shape.dims[dims.kernel_input_feature]
    outs = right.shape.dims[dims.kernel_output_feature] // groups
    feature = at[dims.output_feature]
    group = code.divide(feature, outs) if groups > 1 else 0
    window: Window = i.attributes.get("window", Window(()))
    axes = [(left.shape.dims[d], w) for d, w in zip(dims.input_spatial, window.dims, strict=True)]
    products = Products(e, i, ins * math.prod(w.size for w in window.dims))
    if not (left.shape.size and right.shape.size):
        return products.close()
    a: list[Place] = [0] * left.shape.rank
    b: list[Place] = [0] * right.shape.rank
    b[dims.kernel_output_feature] = feature
    a[dims.input_batch] = at[dims.output_batch]
    if batches > 1:
        a[dims.input_batch] = code.add(code.multiply(group, i.shape.dims[dims.output_batch]), at[dims.output_batch])

    def inside(places: list[Place], taps_: list[Place]) -> None:
        for n, (place, tap) in enumerate(zip(places, taps_, strict=True)):
            a[dims.input_spatial[n]], b[dims.kernel_spatial[n]] = place, tap
        with code.span(ins) as k:
            a[dims.input_feature] = code.add(code.multiply(group, ins), k) if batches == 1 else k
            b[dims.kernel_input_feature] = k
            products.add(e.single(left, tuple(a)), e.single(right, tuple(b)))

    window_places(code, axes, tuple(at[d] for d in dims.output_spatial), inside)
    return products.close()


FOLDS: dict[Op, ElementRule] = {
    Op.CONVOLUTION: _convolution,
    Op.DOT: _dot,
    Op.REDUCE: _reduce,
    Op.REDUCE_WINDOW: _reduce_window,
}
