"""Programs of numerics.py: products, convolutions, windows, and sums in the order of the program."""

from __future__ import annotations

import numpy as np

from .cases import (
    BF16,
    C64,
    F16,
    F32,
    Case,
    LongPrograms,
    Make,
    column_totals,
    complex_uniform,
    module_text,
    product,
    same,
    square_shape,
    total,
    uniform,
    wide,
)

PROGRAMS = LongPrograms()

# Products -----------------------------------------------------------------------------------------------------------


def _dot(m: int, k: int, n: int, layout: str, g: np.random.Generator, t: str = "f32") -> Case:
    """[m,k] · [k,n]. layout: N or T for each operand, as in BLAS."""
    dtype = {"f32": F32, "bf16": BF16, "f16": F16, "c64": C64}[t]
    make = complex_uniform if t == "c64" else uniform
    a, b = make(g, m, k).astype(dtype), make(g, k, n).astype(dtype)
    a, b = (np.ascontiguousarray(x.T) if turned == "T" else x for x, turned in zip((a, b), layout, strict=True))
    text = module_text(
        f"""a = {t}[{a.shape[0]},{a.shape[1]}] parameter(0)
        b = {t}[{b.shape[0]},{b.shape[1]}] parameter(1)
        ROOT r = {t}[{m},{n}] dot(a, b), lhs_contracting_dims={{{int(layout[0] == "N")}}}, """
        f"rhs_contracting_dims={{{int(layout[1] == 'T')}}}",
        t,
    )
    return Case(text, (a, b), lambda: product(a if layout[0] == "N" else a.T, b if layout[1] == "N" else b.T))


def _vectors(n: int, g: np.random.Generator, t: str) -> Case:
    make = complex_uniform if t == "c64" else uniform
    x, y = make(g, n), make(g, n)
    text = module_text(
        f"""x = {t}[{n}] parameter(0)
        y = {t}[{n}] parameter(1)
        ROOT r = {t}[] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}""",
        t,
    )
    return Case(text, (x, y), lambda: product(x[None], y[:, None])[0, 0])


PROGRAMS.add("dot")(lambda n, g: _vectors(n, g, "f32"))
PROGRAMS.add("c64 dot", most=26)(lambda n, g: _vectors(n, g, "c64"))
PROGRAMS.add("product 1×K×1")(lambda n, g: _dot(1, n, 1, "NN", g))
PROGRAMS.add("product 8×K×8 NN")(lambda n, g: _dot(8, n // 8, 8, "NN", g))
PROGRAMS.add("product 8×K×8 TN")(lambda n, g: _dot(8, n // 8, 8, "TN", g))
PROGRAMS.add("product 8×K×8 NT")(lambda n, g: _dot(8, n // 8, 8, "NT", g))
PROGRAMS.add("product 8×K×8 TT")(lambda n, g: _dot(8, n // 8, 8, "TT", g))
PROGRAMS.add("product 64×K×64")(lambda n, g: _dot(64, n // 64, 64, "NN", g))
PROGRAMS.add("product 64×K×64 TN", most=26)(lambda n, g: _dot(64, n // 64, 64, "TN", g))
PROGRAMS.add("product 3×K×5")(lambda n, g: _dot(3, n // 8, 5, "NN", g))
PROGRAMS.add("bf16 product 8×K×8", most=24)(lambda n, g: _dot(8, n // 8, 8, "NN", g, "bf16"))
PROGRAMS.add("f16 product 8×K×8", most=20)(lambda n, g: _dot(8, n // 8, 8, "NN", g, "f16"))
PROGRAMS.add("c64 product 4×K×4", most=24)(lambda n, g: _dot(4, n // 8, 4, "NN", g, "c64"))


def _matrix_vector(rows: int, left: bool) -> Make:
    def make(n: int, g: np.random.Generator) -> Case:
        k = n // rows
        a = uniform(g, rows, k) if left else uniform(g, k, rows)
        x = uniform(g, k)
        shapes = f"a = f32[{a.shape[0]},{a.shape[1]}] parameter(0)\nx = f32[{k}] parameter(1)"
        operands = "a, x" if left else "x, a"
        dims = "lhs_contracting_dims={1}" if left else "lhs_contracting_dims={0}"
        text = module_text(f"{shapes}\nROOT r = f32[{rows}] dot({operands}), {dims}, rhs_contracting_dims={{0}}")
        return Case(text, (a, x), lambda: product(a if left else a.T, x[:, None])[:, 0])

    return make


PROGRAMS.add("matrix · vector")(_matrix_vector(8, True))
PROGRAMS.add("matrix · vector, 1,024 long rows")(_matrix_vector(1024, True))
PROGRAMS.add("vector · matrix")(_matrix_vector(8, False))


@PROGRAMS.add("batch of dots")
def _batch_dot(n: int, g: np.random.Generator) -> Case:
    k = n // 8
    x, y = uniform(g, 8, k), uniform(g, 8, k)
    text = module_text(
        f"""x = f32[8,{k}] parameter(0)
        y = f32[8,{k}] parameter(1)
        ROOT r = f32[8] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, """
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
    )
    return Case(text, (x, y), lambda: np.array([total(np.multiply, a, b) for a, b in zip(x, y, strict=True)]))


@PROGRAMS.add("covariance")
def _covariance(n: int, g: np.random.Generator) -> Case:
    m = n // 4
    x = uniform(g, m, 4) + F32(1)
    text = module_text(f"""x = f32[{m},4] parameter(0)
        zero = f32[] constant(0)
        count = f32[] constant({m})
        n = f32[4] broadcast(count), dimensions={{}}
        n2 = f32[4,4] broadcast(count), dimensions={{}}
        s = f32[4] reduce(x, zero), dimensions={{0}}, to_apply=add_f32
        mean = f32[4] divide(s, n)
        ms = f32[{m},4] broadcast(mean), dimensions={{1}}
        d = f32[{m},4] subtract(x, ms)
        p = f32[4,4] dot(d, d), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
        ROOT r = f32[4,4] divide(p, n2)""")

    def exact() -> np.ndarray:
        d = wide(x) - column_totals(same, x) / m
        return product(d.T, d) / m

    return Case(text, (x,), exact, whole=True)


# Windows ------------------------------------------------------------------------------------------------------------


@PROGRAMS.add("convolution, window n/8", most=22)
def _convolution_window(n: int, g: np.random.Generator) -> Case:
    k = n // 8
    x, w = uniform(g, 1, 1, k + 7), uniform(g, 1, 1, k)
    text = module_text(f"""x = f32[1,1,{k + 7}] parameter(0)
        w = f32[1,1,{k}] parameter(1)
        ROOT r = f32[1,1,8] convolution(x, w), window={{size={k}}}, dim_labels=bf0_oi0->bf0""")
    taps = [x[0, 0, i : i + k] for i in range(8)]
    return Case(text, (x, w), lambda: np.array([[[total(np.multiply, part, w[0, 0]) for part in taps]]]))


@PROGRAMS.add("convolution 3×3, n/64 channels", most=24)
def _convolution_channels(n: int, g: np.random.Generator) -> Case:
    c = n // 64
    x, w = uniform(g, 1, 4, 4, c), uniform(g, 3, 3, c, 4)
    text = module_text(f"""x = f32[1,4,4,{c}] parameter(0)
        w = f32[3,3,{c},4] parameter(1)
        ROOT r = f32[1,2,2,4] convolution(x, w), window={{size=3x3}}, dim_labels=b01f_01io->b01f""")

    def exact() -> np.ndarray:
        taps = [(p, q, wide(w[p, q])) for p in range(3) for q in range(3)]
        found = np.zeros((1, 2, 2, 4))
        for i, j in np.ndindex(2, 2):
            found[0, i, j] = sum(wide(x[0, i + p, j + q]) @ weights for p, q, weights in taps)
        return found

    return Case(text, (x, w), exact)


@PROGRAMS.add("pooling, window √n × √n", most=24)
def _pooling(n: int, g: np.random.Generator) -> Case:
    m, k = square_shape(n)
    x = uniform(g, m + 2, k + 2)
    text = module_text(f"""x = f32[{m + 2},{k + 2}] parameter(0)
        zero = f32[] constant(0)
        ROOT r = f32[3,3] reduce-window(x, zero), window={{size={m}x{k}}}, to_apply=add_f32""")
    return Case(
        text, (x,), lambda: np.array([[total(same, x[i : i + m, j : j + k]) for j in range(3)] for i in range(3)])
    )


@PROGRAMS.add("cumulative sum", most=24)
def _cumsum(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n)
    text = module_text(f"""x = f32[{n}] parameter(0)
        zero = f32[] constant(0)
        ROOT r = f32[{n}] reduce-window(x, zero), window={{size={n} pad={n - 1}_0}}, to_apply=add_f32""")
    return Case(text, (x,), lambda: np.cumsum(x, dtype=np.longdouble).astype(np.float64))


@PROGRAMS.add("cumulative sums of columns", most=22)
def _cumsum_columns(n: int, g: np.random.Generator) -> Case:
    m = n // 16
    x = uniform(g, m, 16)
    window = f"window={{size={m}x1 pad={m - 1}_0x0_0}}"
    text = module_text(f"""x = f32[{m},16] parameter(0)
        zero = f32[] constant(0)
        ROOT r = f32[{m},16] reduce-window(x, zero), {window}, to_apply=add_f32""")
    return Case(text, (x,), lambda: np.cumsum(x, 0, dtype=np.longdouble).astype(np.float64))


# In the order of the program ----------------------------------------------------------------------------------------


@PROGRAMS.add("sum in a loop", most=18, in_order=True)
def _loop(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n)
    t = f"(s32[], f32[], f32[{n}])"
    parts = f"""condition {{
  p = {t} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({n})
  ROOT r = pred[] compare(i, n), direction=LT
}}

body {{
  p = {t} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  s = f32[] get-tuple-element(p), index=1
  x = f32[{n}] get-tuple-element(p), index=2
  v = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={{1}}
  v0 = f32[] reshape(v)
  t = f32[] add(s, v0)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = {t} tuple(j, t, x)
}}
"""
    text = module_text(f"""x = f32[{n}] parameter(0)
        i = s32[] constant(0)
        zero = f32[] constant(0)
        start = {t} tuple(i, zero, x)
        loop = {t} while(start), condition=condition, body=body
        ROOT r = f32[] get-tuple-element(loop), index=1""").replace("ENTRY", f"{parts}\nENTRY")
    return Case(text, (x,), lambda: np.asarray(total(same, x)))


@PROGRAMS.add("segment sum", most=24, in_order=True)
def _segments(n: int, g: np.random.Generator) -> Case:
    x, i = uniform(g, n), g.integers(0, 4, n, np.int32)
    text = module_text(
        f"""x = f32[{n}] parameter(0)
        i = s32[{n}] parameter(1)
        zero = f32[] constant(0)
        z = f32[4] broadcast(zero), dimensions={{}}
        at = s32[{n},1] reshape(i)
        ROOT r = f32[4] scatter(z, at, x), update_window_dims={{}}, inserted_window_dims={{0}}, """
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32"
    )
    return Case(text, (x, i), lambda: np.array([total(same, x[i == k]) for k in range(4)]))
