"""Families of programs of what is moved: concatenations, paddings, repetitions, transpositions, and plain nests."""

from __future__ import annotations

from .form_family import Family, begun, both, fused, module, one, whole


def concatenation(shape: str, parts: tuple[int, ...], dtype: str = "f32", then: str = "") -> str:
    """Along the last dimension, of parts of these lengths. then: the opcode that follows."""
    lines = [f"x{k} = {dtype}[{shape},{size}] parameter({k})" for k, size in enumerate(parts)]
    whole, names = f"{dtype}[{shape},{sum(parts)}]", ", ".join(f"x{k}" for k in range(len(parts)))
    lines.append(f"c = {whole} concatenate({names}), dimensions={{{shape.count(',') + 1}}}")
    lines += [f"r = {whole} {then}(c)"] if then else []
    return module("\n".join([*lines[:-1], "ROOT " + lines[-1]]))


def halves(n: int) -> str:
    """n elements in rows of two halves."""
    length = 128 if n % 128 == 0 else 100
    return concatenation(f"{whole(n, length)}", (length // 2,) * 2, then="tanh")


def cells(n: int) -> str:
    """A concatenation along dimension after dimension, whose seams make up to n cells; with as few regions."""
    # Six seams in six dimensions make 64 cells and 7 regions; one less 32, and one more in the first one 96.
    along = [0, 1, 2, 3, 4, 5] if n == 64 else [0, 1, 2, 3, 5] if n < 64 else [0, 1, 2, 3, 4, 5, 0]
    dims, lines = [2, 2, 2, 2, 2, 60], ["p0 = f32[2,2,2,2,2,60] parameter(0)"]
    last = "p0"
    for k, d in enumerate(along, 1):
        piece = [size if e != d else 1 + 59 * (d == 5) for e, size in enumerate(dims)]
        dims = [size + piece[d] * (e == d) for e, size in enumerate(dims)]
        lines.append(f"p{k} = f32[{','.join(map(str, piece))}] parameter({k})")
        lines.append(f"c{k} = f32[{','.join(map(str, dims))}] concatenate({last}, p{k}), dimensions={{{d}}}")
        last = f"c{k}"
    return fused(lines, f"f32[{','.join(map(str, dims))}] tanh({last})")


def pad(rows: int, length: int, padding: str, result: str, dtype: str = "f32") -> str:
    return module(f"""x = {dtype}[{rows},{length}] parameter(0)
none = {dtype}[] constant(0)
ROOT r = {dtype}[{result}] pad(x, none), padding={padding}""")


def ends(rows: int, length: int, made: int) -> str:
    """Rows become longer behind."""
    return pad(rows, length, f"0_0x0_{made - length}", f"{rows},{made}")


def repeated(rows: int, length: int, dtype: str = "f32") -> str:
    return module(f"""x = {dtype}[{length}] parameter(0)
ROOT r = {dtype}[{rows},{length}] broadcast(x), dimensions={{1}}""")


def transpose(rows: int, columns: int, dtype: str = "f32") -> str:
    return module(f"""x = {dtype}[{rows},{columns}] parameter(0)
ROOT r = {dtype}[{columns},{rows}] transpose(x), dimensions={{1,0}}""")


def crossed(rows: int, columns: int) -> str:
    """The sum of an array and of a transposed one."""
    there, here = f"f32[{rows},{columns}]", f"f32[{columns},{rows}]"
    lines = [f"x = {there} parameter(0)", f"y = {here} parameter(1)", f"t = {here} transpose(x), dimensions={{1,0}}"]
    return fused(lines, f"{here} add(t, y)")


def empty(n: int) -> str:
    lines = ["x = f32[0,5] parameter(0)", "y = f32[8] parameter(1)", "n = f32[0,5] negate(x)", "m = f32[8] negate(y)"]
    return fused(lines, "(f32[0,5], f32[8]) tuple(n, m)", "(f32[0,5], f32[8])")


def update(n: int) -> str:
    return module("""x = s8[100,100] parameter(0)
u = s8[50,60] parameter(1)
i = s32[] parameter(2)
ROOT r = s8[100,100] dynamic-update-slice(x, u, i, i)""")


CONCATENATIONS: tuple[Family, ...] = (
    both("concatenate/abreast", "MAXIMUM_LINE_ELEMENTS", "MAXIMUM_NEIGHBOURS",
         lambda n: concatenation("500", (1, n - 1), "s8"), "at most"),
    both("concatenate/abreast", "MAXIMUM_LINE_BYTES", "MAXIMUM_BYTES",
         lambda n: concatenation("500", (1, begun(n, 8) - 1), "f64"), "at most"),
    both("concatenate/pieces", None, None, lambda n: concatenation("40", (50, 60))),
    both("update/in_place", None, None, update),
    both("regions", "MINIMUM_ELEMENTS", "MINIMUM_ELEMENTS",
         halves),
    both("regions", "MAXIMUM_REGIONS", "MAXIMUM_REGIONS", lambda n: concatenation("80", (40,) * n, then="tanh"),
         "at most"),
    both("regions", "MINIMUM_MEAN_LENGTH", "MINIMUM_RUN_ELEMENTS", lambda n: concatenation("600", (n, n), then="tanh")),
    one("legacy", "regions", "MAXIMUM_CELLS", cells, "at most"),
)  # fmt: skip

PADDINGS: tuple[Family, ...] = (
    both("padded/rows", "MAXIMUM_LENGTH", "MAXIMUM_ROW_ELEMENTS", lambda n: ends(600, 3, n), "at most"),
    both("padded/rows", "MINIMUM_ELEMENTS", "MINIMUM_ELEMENTS", lambda n: ends(whole(n, 4), 3, 4)),
    one("legacy", "padded/pieces", None, lambda n: pad(40, 50, "0_0_1x0_0_1", "79,99", "s8")),
    one("mlir", "padded/gaps", "MAXIMUM_NEIGHBOURS",
        lambda n: pad(40, 100, f"0_0x0_0_{n - 1}", f"40,{100 + 99 * (n - 1)}"), "at most"),
    one("mlir", "padded/gaps", "MINIMUM_ELEMENTS",
        lambda n: pad(whole(n, 64), 60, "0_0x2_2", f"{whole(n, 64)},64", "s8"), processors=("x86-64-v3",)),
)  # fmt: skip

REPETITIONS: tuple[Family, ...] = (
    both("repeated/rows", "MINIMUM_BYTES", "MINIMUM_BYTES", lambda n: repeated(whole(n, 32), 8)),
    both("repeated/rows", "MAXIMUM_MOVED_BYTES", "MAXIMUM_READ_ROW_BYTES", lambda n: repeated(2000, begun(n, 4)),
         "at most"),
    both("repeated/rows", "MAXIMUM_BLOCK_BYTES", "MAXIMUM_PIECE_BYTES", lambda n: repeated(5, begun(n, 2), "bf16"),
         "at most"),
)  # fmt: skip

NESTS: tuple[Family, ...] = (
    one("legacy", "nest/empty", None, empty, scheduled=True),
    both("nest/linear", None, None, lambda n: module("x = f32[300] parameter(0)\nROOT r = f32[300] tanh(x)")),
    both("nest/elements", None, None, lambda n: transpose(40, 5), device=True),
    both("nest/channels", "MAXIMUM_CHANNELS", "MAXIMUM_CHANNELS", lambda n: transpose(2000, n, "s8"), "at most"),
    both("nest/channels", "MINIMUM_ELEMENTS", "MINIMUM_ELEMENTS", lambda n: transpose(whole(n, 4), 4, "s8")),
    one("mlir", "nest/blocks", "MINIMUM_SIDE", lambda n: transpose(n, 200)),
    one("legacy", "nest/tiles", "MINIMUM_TILED_ELEMENTS", lambda n: transpose(whole(n, 64), 64)),
    one("legacy", "nest/tiles", "MINIMUM_TILED_SIDE", lambda n: transpose(n, 600)),
    one("mlir", "nest/tiles", "MINIMUM_TILED_SIDE", lambda n: crossed(n, 100)),
    both("nest/plain", None, None, lambda n: transpose(12, 5)),
    both("groups/squares", None, None, lambda n: transpose(200, 100), device=True),
)
