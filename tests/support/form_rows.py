"""Families of programs of rows: row kernels, reductions over columns, windows, scatters and sorts."""

from __future__ import annotations

from .form_family import Family, begun, both, fused, module, one, whole

WANTED = 20
"""First elements of rows that are selected."""

DIGITS = 4
"""Of a key of f32, 8 bits each."""


def _softmax(rows: int, length: int) -> list[str]:
    shape, row = f"f32[{rows},{length}]", f"f32[{rows}]"
    return f"""x = {shape} parameter(0)
zero = f32[] constant(0)
low = f32[] constant(-inf)
m = {row} reduce(x, low), dimensions={{1}}, to_apply=max
mb = {shape} broadcast(m), dimensions={{0}}
d = {shape} subtract(x, mb)
e = {shape} exponential(d)
s = {row} reduce(e, zero), dimensions={{1}}, to_apply=add
sb = {shape} broadcast(s), dimensions={{0}}
{shape} divide(e, sb)""".split("\n")


def softmax(rows: int, length: int) -> str:
    *lines, root = _softmax(rows, length)
    return module("\n".join([*lines, f"ROOT r = {root}"]))


def one_softmax(rows: int, length: int) -> str:
    """As one kernel, which passes would not make of long rows."""
    *lines, root = _softmax(rows, length)
    return fused(lines, root)


def reduction(dims: str, result: str, dimension: int, dtype: str = "f32", region: str = "add") -> str:
    return module(f"""x = {dtype}[{dims}] parameter(0)
first = {dtype}[] constant(0)
ROOT r = {dtype}[{result}] reduce(x, first), dimensions={{{dimension}}}, to_apply={region}""")


def maxima(rows: int, length: int) -> str:
    return reduction(f"{rows},{length}", f"{rows}", 1, region="max")


def columns(rows: int, count: int, dtype: str = "f32", region: str = "add") -> str:
    return reduction(f"{rows},{count}", f"{count}", 0, dtype, region)


def run(rows: int, count: int, dtype: str = "f32", region: str = "add") -> str:
    """Several runs of rows of a few columns."""
    return reduction(f"3,{rows},{count}", f"3,{count}", 1, dtype, region)


def window(size: int, window: str, result: int, region: str = "max") -> str:
    return module(f"""x = f32[20,{size}] parameter(0)
zero = f32[] constant(0)
ROOT r = f32[20,{result}] reduce-window(x, zero), window={{{window}}}, to_apply={region}""")


def strided(n: int) -> str:
    """Windows that are n elements apart."""
    return window(6 + 19 * n, f"size=1x6 stride=1x{n}", 20)


def cumulative(n: int) -> str:
    return window(50, "size=1x50 pad=0_0x49_0", 50, "add")


def scatter(n: int) -> str:
    return module("""x = f32[100] parameter(0)
i = s32[40,1] parameter(1)
u = f32[40] parameter(2)
ROOT r = f32[100] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""")


def sort(rows: int, length: int, taken: int = 0, region: str = "less", dtype: str = "f32") -> str:
    shape = f"{dtype}[{rows},{length}]"
    sorted_ = f"{shape} sort(x), dimensions={{1}}, is_stable=true, to_apply={region}"
    if not taken:
        return module(f"x = {shape} parameter(0)\nROOT s = {sorted_}")
    cut = f"{dtype}[{rows},{taken}] slice(s), slice={{[0:{rows}], [0:{taken}]}}"
    return module(f"x = {shape} parameter(0)\ns = {sorted_}\nROOT c = {cut}")


def sort_bytes(rows: int, length: int) -> str:
    return sort(rows, length, region="less_s8", dtype="s8")


ROWS: tuple[Family, ...] = (
    both("rows/abreast", "MINIMUM_LENGTH", "MINIMUM_ROW_ELEMENTS", lambda n: softmax(400, n)),
    both("rows/abreast", "MAXIMUM_LENGTH", "MAXIMUM_ROW_ELEMENTS", lambda n: softmax(400, n), "at most"),
    both("rows/abreast", "MINIMUM_REDUCED_LENGTH", "MINIMUM_ALONE_ELEMENTS", lambda n: maxima(2100, n)),
    both("rows/abreast", "MINIMUM_REDUCED_ROWS", "MINIMUM_ALONE_ROWS", lambda n: maxima(n, 10)),
    both("rows/softmax", "MINIMUM_LENGTH", "MINIMUM_ROW_ELEMENTS", lambda n: softmax(3, n)),
    both("rows/softmax", "MAXIMUM_LENGTH", "MAXIMUM_ROW_ELEMENTS", lambda n: one_softmax(7, n), "at most"),
    both("rows/walks", None, None, lambda n: softmax(7, 100)),
    both("groups/rows", "MINIMUM_LENGTH", "MINIMUM_ROW_ELEMENTS", lambda n: softmax(40, n), device=True),
)

REDUCTIONS: tuple[Family, ...] = (
    both("reduce/run", "MINIMUM_LENGTH", "MINIMUM_RUN_ELEMENTS", lambda n: run(whole(n, 8), 8)),
    one("legacy", "reduce/run", "MAXIMUM_LENGTH", lambda n: run(begun(n, 8), 8), "at most"),
    one("mlir", "reduce/run", "MAXIMUM_WORD_COLUMNS", lambda n: run(400, n, "s32", "integers"), "at most"),
    one("legacy", "reduce/columns", "MINIMUM_COLUMNS", lambda n: columns(40, n, region="max"), unsaid=("legacy",)),
    one("legacy", "reduce/columns", "MINIMUM_WIDE_COLUMNS", lambda n: columns(40, n), unsaid=("legacy",)),
    one("mlir", "reduce/columns", None, lambda n: columns(40, 100)),
    both("groups/columns", "MINIMUM_ROWS_OF_ITEM", "MINIMUM_ITEM_ROWS", lambda n: columns(n, 100), device=True,
         unit=lambda case: case.options.group.down),
)  # fmt: skip

WINDOWS: tuple[Family, ...] = (
    both("window/running", None, None, cumulative),
    both(
        "window/phases", "MINIMUM_POOLED", "MINIMUM_RESULTS", lambda n: window(n + 2, "size=1x3", n), unsaid=("legacy",)
    ),
    both("window/phases", "MAXIMUM_STRIDE", "MAXIMUM_STRIDE", strided, "at most"),
    both("window/phases", "MAXIMUM_WINDOW", "MAXIMUM_TAPS", lambda n: window(n + 19, f"size=1x{n}", 20), "at most"),
    both(
        "window/pool",
        "MINIMUM_POOLED",
        "MINIMUM_RESULTS",
        lambda n: window(n, "size=3x1 pad=1_1x0_0", n),
        unsaid=("legacy",),
    ),
    both("scatter", None, None, scatter),
)

SORTS: tuple[Family, ...] = (
    both("sort/abreast", "MAXIMUM_LENGTH", "MAXIMUM_POSITIONS", lambda n: sort_bytes(20, n), "at most"),
    both("sort/abreast", "MINIMUM_ROWS", "MINIMUM_ROWS", lambda n: sort(n, 20)),
    both("sort/insertion", "MAXIMUM_RUN_ELEMENTS", "MAXIMUM_RUN_ELEMENTS", lambda n: sort(4, n), "at most"),
    both("sort/select", "MINIMUM_LENGTH", "MASK_KEYS", lambda n: sort(4, n, 1)),
    both("sort/select", "MINIMUM_SHARE_OF_SHORT", "MINIMUM_SHARE_OF_SHORT", lambda n: sort(4, n, WANTED),
         unit=lambda case: WANTED),
    both("sort/select", "MINIMUM_SHARE", "MINIMUM_SHARE", lambda n: sort(4, n, 5 * WANTED),
         unit=lambda case: 5 * WANTED),
    both("sort/radix", "MINIMUM_LENGTH_OF_DIGIT", "MINIMUM_PASS_ELEMENTS", lambda n: sort(4, n),
         unit=lambda case: DIGITS),
    both("sort/radix", "MAXIMUM_LENGTH", "MAXIMUM_ROW_ELEMENTS", lambda n: sort_bytes(1, n), "at most", runs=False),
    both("sort/merge", None, None, lambda n: sort(4, 70, region="nearer", dtype="s32")),
)  # fmt: skip
