"""Families of programs of products: dots and convolutions."""

from __future__ import annotations

from .form_family import Family, begun, both, module, one, whole

CHANNELS = 64


def dot(rows: int, depth: int, columns: int, dtype: str = "f32", along: bool = False) -> str:
    """along: whether the columns' elements are neighbours along the depth."""
    right, contracted = (f"{columns},{depth}", 1) if along else (f"{depth},{columns}", 0)
    return module(f"""x = {dtype}[{rows},{depth}] parameter(0)
y = {dtype}[{right}] parameter(1)
ROOT r = {dtype}[{rows},{columns}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}}""")


def convolution(image: str, kernel: str, result: str, labels: str, window: str, groups: int = 1) -> str:
    grouped = f", feature_group_count={groups}" if groups > 1 else ""
    return module(f"""x = f32[{image}] parameter(0)
k = f32[{kernel}] parameter(1)
ROOT r = f32[{result}] convolution(x, k), window={{{window}}}, dim_labels={labels}{grouped}""")


def line(
    positions: int, window: int, inputs: int, features: int, groups: int = 1, stride: int = 1, batch: int = 1
) -> str:
    """Along one dimension."""
    size = window + (positions - 1) * stride
    kernel = f"{window},{inputs // groups},{features}"
    sides = f"{batch},{size},{inputs}", kernel, f"{batch},{positions},{features}"
    return convolution(*sides, "b0f_0io->b0f", f"size={window} stride={stride}", groups)


def image(inputs: int, features: int, window: str = "3x1", kernel: str = "io") -> str:
    """Of 20 × 20 positions; kernel: which of its features are neighbours in memory: the last."""
    high, wide = map(int, window.split("x"))
    sizes = f"{inputs},{features}" if kernel == "io" else f"{features},{inputs}"
    sides = f"1,{19 + high},{19 + wide},{inputs}", f"{high},{wide},{sizes}", f"1,20,20,{features}"
    return convolution(*sides, f"b01f_01{kernel}->b01f", f"size={window}")


def depthwise(positions: int, window: int, channels: int = CHANNELS, batch: int = 1) -> str:
    return line(positions, window, channels, channels, channels, batch=batch)


def panel(n: int, lanes: int) -> str:
    """A block of a vector of output features has n bytes of weights."""
    return line(40, 3, begun(n, 3 * 4 * lanes), 16)


DOTS: tuple[Family, ...] = (
    both("dot/narrow", "MAXIMUM_COLUMNS", "MAXIMUM_COLUMNS", lambda n: dot(n, 100, 40, along=True), "at most"),
    both("dot/narrow", "MINIMUM_ROWS", "MINIMUM_ROWS", lambda n: dot(n, 100, 3)),
    both("dot/narrow", "MINIMUM_VECTORS", "MINIMUM_ROW_VECTORS", lambda n: dot(40, n, 3),
         unit=lambda case: case.lanes),
    both("dot/narrow", "MAXIMUM_COLUMN_BYTES", "MAXIMUM_COLUMN_BYTES",
         lambda n: dot(8, begun(n, 8 * 4), 16, along=True), "at most"),
    one("legacy", "dot/tiled", "MINIMUM_MULTIPLICATIONS", lambda n: dot(16, whole(n, 256), 16)),
    one("legacy", "dot/tiled", "MINIMUM_ROWS", lambda n: dot(n, 64, 64)),
    one("legacy", "dot/tiled", "MINIMUM_DEPTH", lambda n: dot(64, n, 64)),
    one("legacy", "dot/tiled", "LARGE_DEPTH", lambda n: dot(8, n, 5), unsaid=("legacy",)),
    one("mlir", "dot/tiled", "MINIMUM_COLUMNS", lambda n: dot(20, 30, n, "s32", along=True)),
    one("mlir", "dot/tiled", "MINIMUM_TRANSPOSE_ROWS", lambda n: dot(n, 30, 40, along=True)),
    one("legacy", "dot/columns", "MINIMUM_COLUMNS", lambda n: dot(3, 20, n, "s64")),
    one("mlir", "dot/columns", "MINIMUM_COLUMNS", lambda n: dot(12, 3, n, "c64"), strict=True),
    both("groups/dot", "MINIMUM_ROWS", "MINIMUM_ROWS", lambda n: dot(n, 100, 64), device=True),
    both("groups/dot", "MINIMUM_TERMS", "MINIMUM_TERMS", lambda n: dot(64, n, 64), device=True),
)  # fmt: skip

CONVOLUTIONS: tuple[Family, ...] = (
    both("convolution/deep", "MINIMUM_MULTIPLICATIONS", "MINIMUM_WORK", lambda n: line(whole(n, 32), 2, 16, 1)),
    both("convolution/deep", "MINIMUM_NEIGHBOURS", "MINIMUM_RUN_ELEMENTS", lambda n: image(n, 5, kernel="oi")),
    both("convolution/channels", "MINIMUM_MULTIPLICATIONS", "MINIMUM_WORK",
         lambda n: depthwise(whole(n, 16 * CHANNELS), 16)),
    both("convolution/channels", "COLUMN_TERMS", "ALONE_PRODUCTS", lambda n: depthwise(40, n), "at most"),
    one("legacy", "convolution/channels", "MINIMUM_TILE_PRODUCTS",
        lambda n, lanes: depthwise(200, whole(n, 4), lanes)),
    one("mlir", "convolution/channels", "MINIMUM_CALLED_PRODUCTS",
        lambda n, lanes: depthwise(5, whole(n, 5), lanes, batch=20)),
    one("legacy", "convolution/held", "MINIMUM_VECTOR_BYTES", lambda n: image(8, whole(n, 4))),
    one("mlir", "convolution/held", "MINIMUM_FEATURES", lambda n: image(8, n)),
    one("legacy", "convolution/held", "MAXIMUM_PANEL_BYTES", panel, "at most"),
    both("convolution/columns", "MAXIMUM_DISTANCE", "CLOSE_ELEMENTS", lambda n: line(100, 65, 1, 1, stride=n),
         "at most", unsaid=("mlir",)),
    both("groups/convolution", "MINIMUM_TERMS", "MINIMUM_TERMS", lambda n: line(60, 1, n, 32, stride=2), device=True),
    one("legacy", "groups/convolution", "MINIMUM_ROWS", lambda n: line(n, 3, 16, 32), device=True),
)  # fmt: skip
