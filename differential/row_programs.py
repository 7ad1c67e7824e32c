"""Programs for a row of the ledger: HLO text in which one unit works on one class of element types.

CASES are small and of odd sizes, for comparison; WORKLOADS are larger, for timing. Both are functions of a type and a
number, so that a row's programs are the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..hlo.dtypes import DType
from ..hlo.opcodes import Op
from ..hlo.opset import OPSET
from ..hlo.opset_rows import Family
from ..migration.units import CLASSES, ELEMENTAL

Make = Callable[[DType, int], str]
"""A type and a number → HLO text."""

LENGTHS = (7, 1, 16, 33, 130, 64, 3, 257)
MATRICES = ((4, 3), (1, 17), (16, 16), (5, 64), (33, 2), (9, 40), (64, 17), (2, 1))


def cases_of(unit: str, dtypes: str, count: int) -> list[str]:
    """`count` small programs of a row, over the types of its class in turn."""
    types = sorted(CLASSES[dtypes], key=lambda d: d.value)
    return [CASES[unit](types[n % len(types)], n // len(types)) for n in range(count)]


def workloads_of(unit: str, dtypes: str) -> list[str]:
    """The timed programs of a row."""
    return [make(dtype, size) for make in WORKLOADS[unit] for dtype in TIMED[dtypes] for size in (0, 1)]


TIMED = {
    "float": (DType.F32,),
    "half": (DType.BF16,),
    "narrow": (DType.F8E4M3FN,),
    "complex": (DType.C64,),
    "integer": (DType.S32,),
}
"""The type that a class is timed with."""


def module(lines: Sequence[str], computations: str = "") -> str:
    """A module whose entry holds the lines."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule row\n\n{computations}ENTRY e {{\n{body}\n}}\n"


def region(name: str, expression: str, dtype: DType) -> str:
    """A computation on two scalars x and y."""
    t = dtype.value
    return f"{name} {{\n  x = {t}[] parameter(0)\n  y = {t}[] parameter(1)\n  ROOT r = {t}[] {expression}\n}}\n\n"


def folding(dtype: DType, n: int) -> tuple[str, str]:
    """(opcode, neutral element) of a fold; n picks one."""
    if dtype is DType.PRED:
        return (("and", "true"), ("or", "false"))[n % 2]
    if dtype.is_complex:
        return "add", "(0, 0)"
    return (("add", "0"), ("maximum", "0"), ("minimum", "0" if dtype is DType.S1 else "1"), ("add", "0"))[n % 4]


def fold(dtype: DType, n: int) -> tuple[str, str]:
    """(computation `fold`, its neutral element)."""
    opcode, start = folding(dtype, n)
    return region("fold", f"{opcode}(x, y)", dtype), start


# -- the elemental graph ----------------------------------------------------------------------------------------------
OTHER_RESULT = frozenset({Op.IS_FINITE, Op.REAL, Op.IMAG, Op.COMPARE, Op.COMPLEX, Op.ABS})
"""Opcodes whose result may have another type than their operands."""
WITH_ATTRIBUTES = frozenset({Op.REDUCE_PRECISION, Op.STOCHASTIC_CONVERT, Op.CONVERT, Op.BITCAST_CONVERT})


def elementwise_ops(dtype: DType) -> list[Op]:
    """Unary and binary opcodes of a type, whose result has that type."""
    return [
        op
        for op, row in OPSET.items()
        if row.elementwise and row.family in (Family.UNARY, Family.BINARY) and dtype in row.dtypes
        if op not in OTHER_RESULT | WITH_ATTRIBUTES
    ]


def elemental(dtype: DType, n: int) -> str:
    """Three elementwise ops and one movement of data."""
    t, (a, b) = dtype.value, MATRICES[n % len(MATRICES)]
    ops = elementwise_ops(dtype)
    picked = [ops[(3 * n + i) % len(ops)] for i in range(3)] if ops else []
    lines = [f"p = {t}[{a},{b}] parameter(0)", f"q = {t}[{a},{b}] parameter(1)"]
    for i, op in enumerate(picked):
        lines.append(f"r{i} = {t}[{a},{b}] {op.value}(p{', q' if OPSET[op].low == 2 else ''})")
    moved = MOVEMENT[n % len(MOVEMENT)](t, a, b)
    order = "EQ" if dtype.is_complex or dtype is DType.PRED else "LT"
    lines += [f"c = pred[{a},{b}] compare(p, q), direction={order}", f"s = {t}[{a},{b}] select(c, p, q)", *moved]
    results = ", ".join([*(f"r{i}" for i in range(len(picked))), "s", "m"])
    return module([*lines, f"ROOT t = tuple({results})"])


TAKEN_ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
MOVEMENT: tuple[Callable[[str, int, int], list[str]], ...] = (
    lambda t, a, b: [f"m = {t}[{b},{a},2] broadcast(p), dimensions={{1,0}}"],
    lambda t, a, b: [f"m = {t}[{a * b}] reshape(p)"],
    lambda t, a, b: [f"m = {t}[{(a + 1) // 2},{b}] slice(p), slice={{[0:{a}:2], [0:{b}]}}"],
    lambda t, a, b: [f"m = {t}[{a},{b}] reverse(p), dimensions={{0,1}}"],
    lambda t, a, b: [f"z = {t}[] constant({zero(t)})", f"m = {t}[{a + 3},{2 * b - 1}] pad(p, z), padding=1_2x0_0_1"],
    lambda t, a, b: [
        "i = s32[] parameter(2)",
        "k = s32[] constant(0)",
        f"m = {t}[1,{b}] dynamic-slice(p, i, k), dynamic_slice_sizes={{1,{b}}}",
    ],
    lambda t, a, b: [
        "i = s32[5] parameter(2)",
        f"m = {t}[5,{b}] gather(p, i), {TAKEN_ROWS}, slice_sizes={{1,{b}}}",
    ],
)


def zero(t: str) -> str:
    return {"pred": "false", "c64": "(0, 0)", "c128": "(0, 0)"}.get(t, "0")


def chain(dtype: DType, size: int) -> str:
    """A fusion of a few ops that the type has."""
    t, count = dtype.value, (1000, 250_000)[size]
    shape = f"{t}[{count}]"
    if dtype in CLASSES["narrow"]:
        lines = [f"w = f32[{count}] convert(p)", f"v = f32[{count}] multiply(w, w)", f"ROOT r = {shape} convert(v)"]
    elif dtype in CLASSES["integer"]:
        lines = [f"w = {shape} multiply(p, q)", f"v = {shape} xor(w, p)", f"ROOT r = {shape} maximum(v, q)"]
    else:
        lines = [f"w = {shape} multiply(p, q)", f"v = {shape} tanh(w)", f"ROOT r = {shape} add(v, p)"]
    return module([f"p = {shape} parameter(0)", f"q = {shape} parameter(1)", *lines])


def plain(dtype: DType, size: int) -> str:
    """A fusion of movement and selection only."""
    t, (a, b) = dtype.value, ((20, 50), (500, 500))[size]
    order = "EQ" if dtype.is_complex or dtype is DType.PRED else "LT"
    return module(
        [
            f"p = {t}[{a},{b}] parameter(0)",
            f"q = {t}[{b}] parameter(1)",
            f"w = {t}[{a},{b}] broadcast(q), dimensions={{1}}",
            f"c = pred[{a},{b}] compare(p, w), direction={order}",
            f"v = {t}[{a},{b}] reverse(p), dimensions={{0}}",
            f"ROOT r = {t}[{a},{b}] select(c, w, v)",
        ]
    )


# -- unnested ops -----------------------------------------------------------------------------------------------------
def reduction(dtype: DType, n: int) -> str:
    a, b = MATRICES[n % len(MATRICES)]
    return reduction_of(dtype, n, a, b, ("0", "1", "0,1")[n % 3])


def reduction_of(dtype: DType, n: int, a: int, b: int, dimensions: str) -> str:
    t, (computation, start) = dtype.value, fold(dtype, n)
    kept = {"0": f"{b}", "1": f"{a}", "0,1": ""}[dimensions]
    lines = [f"p = {t}[{a},{b}] parameter(0)", f"z = {t}[] constant({start})"]
    root = f"ROOT r = {t}[{kept}] reduce(p, z), dimensions={{{dimensions}}}, to_apply=fold"
    return module([*lines, root], computation)


def rows_folded(dtype: DType, size: int) -> str:
    return reduction_of(dtype, 0, *((16, 64), (256, 1024))[size], "1")


def columns_folded(dtype: DType, size: int) -> str:
    return reduction_of(dtype, 0, *((64, 16), (1024, 256))[size], "0")


def windowed(dtype: DType, n: int) -> str:
    a, b = MATRICES[n % len(MATRICES)]
    return windowed_of(dtype, n, a + 2, b + 2, stride=1 + n % 2)


def windowed_of(dtype: DType, n: int, a: int, b: int, stride: int) -> str:
    t, (computation, start) = dtype.value, fold(dtype, n)
    sizes = [(side - 1) // stride + 1 for side in (a, b)]
    window = f"{{size=3x3 stride={stride}x{stride} pad=1_1x1_1}}"
    lines = [f"p = {t}[{a},{b}] parameter(0)", f"z = {t}[] constant({start})"]
    root = f"ROOT r = {t}[{sizes[0]},{sizes[1]}] reduce-window(p, z), window={window}, to_apply=fold"
    return module([*lines, root], computation)


def pooled(dtype: DType, size: int) -> str:
    return windowed_of(dtype, 1, *((32, 32), (256, 256))[size], stride=2)


def product(dtype: DType, n: int) -> str:
    a, b = MATRICES[n % len(MATRICES)]
    return product_of(dtype, a, b, LENGTHS[n % len(LENGTHS)], n % 3)


def product_of(dtype: DType, a: int, b: int, c: int, form: int = 0) -> str:
    """form: 0 a plain product, 1 its first operand is transposed, 2 two of them at once."""
    t = dtype.value
    left, right, result, how = (
        (f"{a},{b}", f"{b},{c}", f"{a},{c}", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        (f"{b},{a}", f"{b},{c}", f"{a},{c}", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (
            f"2,{a},{b}",
            f"2,{b},{c}",
            f"2,{a},{c}",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        ),
    )[form]
    lines = [f"p = {t}[{left}] parameter(0)", f"q = {t}[{right}] parameter(1)"]
    return module([*lines, f"ROOT r = {t}[{result}] dot(p, q), {how}"])


def square(dtype: DType, size: int) -> str:
    side = (16, 128)[size]
    return product_of(dtype, side, side, side)


def convolved(dtype: DType, n: int) -> str:
    a, b = MATRICES[n % len(MATRICES)]
    return convolved_of(dtype, a + 2, min(b, 20) + 2, 1 + n % 3, 1 + n % 4)


def convolved_of(dtype: DType, a: int, b: int, channels: int, features: int) -> str:
    t, how = dtype.value, "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    return module(
        [
            f"p = {t}[1,{a},{b},{channels}] parameter(0)",
            f"q = {t}[3,3,{channels},{features}] parameter(1)",
            f"ROOT r = {t}[1,{a},{b},{features}] convolution(p, q), {how}",
        ]
    )


def image(dtype: DType, size: int) -> str:
    return convolved_of(dtype, *((8, 8, 4, 8), (28, 28, 16, 32))[size])


def sorted_rows(dtype: DType, n: int) -> str:
    return sorted_of(dtype, *MATRICES[n % len(MATRICES)])


def sorted_of(dtype: DType, a: int, b: int) -> str:
    t = dtype.value
    lines = [f"  x = {t}[] parameter(0)", f"  y = {t}[] parameter(1)"]
    keys = "x, y"
    if dtype.is_complex:
        part = dtype.component.value
        lines += [f"  u = {part}[] real(x)", f"  v = {part}[] real(y)"]
        keys = "u, v"
    comparator = "\n".join(["less {", *lines, f"  ROOT r = pred[] compare({keys}), direction=LT", "}", "", ""])
    body = [f"p = {t}[{a},{b}] parameter(0)"]
    return module(
        [*body, f"ROOT r = {t}[{a},{b}] sort(p), dimensions={{1}}, is_stable=true, to_apply=less"], comparator
    )


def long_rows(dtype: DType, size: int) -> str:
    return sorted_of(dtype, *((4, 64), (16, 4096))[size])


def scattered(dtype: DType, n: int) -> str:
    return scattered_of(dtype, n, *MATRICES[n % len(MATRICES)], LENGTHS[n % len(LENGTHS)])


def scattered_of(dtype: DType, n: int, a: int, b: int, count: int) -> str:
    t, (computation, _) = dtype.value, fold(dtype, n)
    where = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    return module(
        [
            f"p = {t}[{a},{b}] parameter(0)",
            f"i = s32[{count}] parameter(1)",
            f"u = {t}[{count},{b}] parameter(2)",
            f"ROOT r = {t}[{a},{b}] scatter(p, i, u), {where}, to_apply=fold",
        ],
        computation,
    )


def rows_added(dtype: DType, size: int) -> str:
    return scattered_of(dtype, 0, *((16, 16, 32), (1000, 64, 2000))[size])


def joined(dtype: DType, n: int) -> str:
    return joined_of(dtype, *MATRICES[n % len(MATRICES)], n % 2)


def joined_of(dtype: DType, a: int, b: int, dimension: int) -> str:
    t = dtype.value
    second, result = ((f"{a + 1},{b}", f"{2 * a + 1},{b}"), (f"{a},{b + 1}", f"{a},{2 * b + 1}"))[dimension]
    lines = [f"p = {t}[{a},{b}] parameter(0)", f"q = {t}[{second}] parameter(1)"]
    return module([*lines, f"ROOT r = {t}[{result}] concatenate(p, q), dimensions={{{dimension}}}"])


def joined_rows(dtype: DType, size: int) -> str:
    return joined_of(dtype, *((16, 32), (256, 500))[size], 1)


def updated(dtype: DType, n: int) -> str:
    return updated_of(dtype, *MATRICES[n % len(MATRICES)])


def updated_of(dtype: DType, a: int, b: int) -> str:
    t = dtype.value
    return module(
        [
            f"p = {t}[{a + 2},{b + 1}] parameter(0)",
            f"u = {t}[{a},{b}] parameter(1)",
            "i = s32[] parameter(2)",
            "j = s32[] parameter(3)",
            f"ROOT r = {t}[{a + 2},{b + 1}] dynamic-update-slice(p, u, i, j)",
        ]
    )


def block_updated(dtype: DType, size: int) -> str:
    return updated_of(dtype, *((16, 32), (256, 500))[size])


def transposed(dtype: DType, n: int) -> str:
    return transposed_of(dtype, *MATRICES[n % len(MATRICES)])


def transposed_of(dtype: DType, a: int, b: int) -> str:
    t = dtype.value
    return module([f"p = {t}[{a},{b},2] parameter(0)", f"ROOT r = {t}[{b},{a},2] transpose(p), dimensions={{1,0,2}}"])


def turned(dtype: DType, size: int) -> str:
    side = (24, 400)[size]
    t = dtype.value
    return module(
        [f"p = {t}[{side},{side}] parameter(0)", f"ROOT r = {t}[{side},{side}] transpose(p), dimensions={{1,0}}"]
    )


CASES: dict[str, Make] = {
    ELEMENTAL: elemental,
    "concatenate": joined,
    "convolution": convolved,
    "dot": product,
    "dynamic-update-slice": updated,
    "reduce": reduction,
    "reduce-window": windowed,
    "scatter": scattered,
    "sort": sorted_rows,
    "transpose": transposed,
}
WORKLOADS: dict[str, tuple[Make, ...]] = {
    ELEMENTAL: (chain, plain),
    "concatenate": (joined_rows,),
    "convolution": (image,),
    "dot": (square,),
    "dynamic-update-slice": (block_updated,),
    "reduce": (rows_folded, columns_folded),
    "reduce-window": (pooled,),
    "scatter": (rows_added,),
    "sort": (long_rows,),
    "transpose": (turned,),
}
