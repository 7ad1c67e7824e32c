"""Programs of numerics.py: sums along dimensions, and rows that are normalised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .cases import (
    BF16,
    F32,
    SQUARE,
    Case,
    LongPrograms,
    column_totals,
    module_text,
    row_totals,
    same,
    square_shape,
    total,
    uniform,
    wide,
)

PROGRAMS = LongPrograms()

# Sums along dimensions ----------------------------------------------------------------------------------------------


def _along(expression: str, f: Callable[[np.ndarray], np.ndarray], shape: Callable[[int], tuple[int, int]], d: int):
    """Σ f over dimension d of a matrix. expression: HLO lines that compute `v` of shape {s} from `x`."""

    def make(n: int, g: np.random.Generator) -> Case:
        m, k = shape(n)
        s = f"f32[{m},{k}]"
        x = uniform(g, m, k)
        text = module_text(f"""x = {s} parameter(0)
            zero = f32[] constant(0)
            {expression.format(s=s)}
            ROOT r = f32[{m if d else k}] reduce(v, zero), dimensions={{{d}}}, to_apply=add_f32""")
        return Case(text, (x,), lambda: row_totals(f, x) if d else column_totals(f, x))

    return make


PROGRAMS.add("row sums")(_along("v = {s} copy(x)", same, lambda n: (4, n // 4), 1))
PROGRAMS.add("row sums x²")(_along(SQUARE, np.square, lambda n: (4, n // 4), 1))
PROGRAMS.add("row sums exp, many rows")(_along("v = {s} exponential(x)", np.exp, lambda n: (n // 1024, 1024), 1))
PROGRAMS.add("column sums, 3 columns")(_along("v = {s} copy(x)", same, lambda n: (n // 4, 3), 0))
PROGRAMS.add("column sums exp, 16 columns")(_along("v = {s} exponential(x)", np.exp, lambda n: (n // 16, 16), 0))
PROGRAMS.add("column sums x²")(_along(SQUARE, np.square, square_shape, 0))
PROGRAMS.add("column sums x², 100 columns")(_along(SQUARE, np.square, lambda n: (n // 128, 100), 0))


@PROGRAMS.add("sums over (0, 2) of three")
def _mixed(n: int, g: np.random.Generator) -> Case:
    m = 1 << (n.bit_length() - 4) // 2
    x = uniform(g, m, 8, n // 8 // m)
    s = f"f32[{','.join(map(str, x.shape))}]"
    text = module_text(f"""x = {s} parameter(0)
        v = {s} multiply(x, x)
        zero = f32[] constant(0)
        ROOT r = f32[8] reduce(v, zero), dimensions={{0,2}}, to_apply=add_f32""")
    return Case(text, (x,), lambda: np.array([total(np.square, x[:, i]) for i in range(8)]))


@PROGRAMS.add("row sums of a transpose")
def _transposed(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n // 8, 8)
    text = module_text(f"""x = f32[{n // 8},8] parameter(0)
        t = f32[8,{n // 8}] transpose(x), dimensions={{1,0}}
        v = f32[8,{n // 8}] multiply(t, t)
        zero = f32[] constant(0)
        ROOT r = f32[8] reduce(v, zero), dimensions={{1}}, to_apply=add_f32""")
    return Case(text, (x,), lambda: column_totals(np.square, x))


@PROGRAMS.add("batch-norm variance")
def _batch_norm(n: int, g: np.random.Generator) -> Case:
    shape = (n // 1024, 32, 8, 3)
    x, count = uniform(g, *shape) + F32(1), n // 4
    s = f"f32[{','.join(map(str, shape))}]"
    text = module_text(f"""x = {s} parameter(0)
        zero = f32[] constant(0)
        count = f32[] constant({count})
        n = f32[3] broadcast(count), dimensions={{}}
        t = f32[3] reduce(x, zero), dimensions={{0,1,2}}, to_apply=add_f32
        m = f32[3] divide(t, n)
        ms = {s} broadcast(m), dimensions={{3}}
        d = {s} subtract(x, ms)
        v = {s} multiply(d, d)
        u = f32[3] reduce(v, zero), dimensions={{0,1,2}}, to_apply=add_f32
        ROOT r = f32[3] divide(u, n)""")

    def exact() -> np.ndarray:
        flat = x.reshape(-1, 3)
        mean = column_totals(same, flat) / count
        return column_totals(lambda v: (v - mean) ** 2, flat) / count

    return Case(text, (x,), exact)


@PROGRAMS.add("sums of pairs (one reduce)")
def _pairs(n: int, g: np.random.Generator) -> Case:
    x, y = uniform(g, n), uniform(g, n)
    pair = """pair {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  t = f32[] add(b, d)
  ROOT r = (f32[], f32[]) tuple(s, t)
}
"""
    text = module_text(f"""x = f32[{n}] parameter(0)
        y = f32[{n}] parameter(1)
        zero = f32[] constant(0)
        p = (f32[], f32[]) reduce(x, y, zero, zero), dimensions={{0}}, to_apply=pair
        s = f32[] get-tuple-element(p), index=0
        t = f32[] get-tuple-element(p), index=1
        ROOT r = f32[] add(s, t)""").replace("ENTRY", f"{pair}\nENTRY")
    return Case(text, (x, y), lambda: np.asarray(total(np.add, x, y)))


# Rows that are normalised -------------------------------------------------------------------------------------------


@PROGRAMS.add("softmax")
def _softmax(n: int, g: np.random.Generator) -> Case:
    return _softmax_of(n, g, "f32", 4)


@PROGRAMS.add("softmax, many rows")
def _softmax_rows(n: int, g: np.random.Generator) -> Case:
    return _softmax_of(n, g, "f32", n // 1024)


@PROGRAMS.add("bf16 softmax", most=24)
def _softmax_bf16(n: int, g: np.random.Generator) -> Case:
    return _softmax_of(n, g, "bf16", 4)


def _softmax_of(n: int, g: np.random.Generator, t: str, m: int) -> Case:
    k = n // m
    x = uniform(g, m, k).astype(F32 if t == "f32" else BF16)
    text = module_text(
        f"""x = {t}[{m},{k}] parameter(0)
        zero = {t}[] constant(0)
        low = {t}[] constant(-inf)
        m = {t}[{m}] reduce(x, low), dimensions={{1}}, to_apply=max_{t}
        ms = {t}[{m},{k}] broadcast(m), dimensions={{0}}
        d = {t}[{m},{k}] subtract(x, ms)
        v = {t}[{m},{k}] exponential(d)
        s = {t}[{m}] reduce(v, zero), dimensions={{1}}, to_apply=add_{t}
        ss = {t}[{m},{k}] broadcast(s), dimensions={{0}}
        ROOT r = {t}[{m},{k}] divide(v, ss)""",
        t,
    )

    def exact() -> np.ndarray:
        e = np.exp(wide(x) - wide(x).max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return Case(text, (x,), exact, whole=t != "f32")


def _centred(n: int, expression: str, g: np.random.Generator, f: Callable[[np.ndarray], np.ndarray]) -> Case:
    m, k = 4, n // 4
    x = uniform(g, m, k)
    s = f"f32[{m},{k}]"
    text = module_text(f"""x = {s} parameter(0)
        zero = f32[] constant(0)
        count = f32[] constant({k})
        n = f32[{m}] broadcast(count), dimensions={{}}
        tiny = f32[] constant(1e-05)
        e = f32[{m}] broadcast(tiny), dimensions={{}}
        {expression.format(s=s, m=m)}
        dd = {s} multiply(d, d)
        u = f32[{m}] reduce(dd, zero), dimensions={{1}}, to_apply=add_f32
        v = f32[{m}] divide(u, n)
        ve = f32[{m}] add(v, e)
        w = f32[{m}] rsqrt(ve)
        ws = {s} broadcast(w), dimensions={{0}}
        ROOT r = {s} multiply(d, ws)""")

    def exact() -> np.ndarray:
        d = f(wide(x))
        return d / np.sqrt((d * d).mean(1, keepdims=True) + np.float64(F32(1e-5)))

    return Case(text, (x,), exact, whole=True)


@PROGRAMS.add("layer norm")
def _layer_norm(n: int, g: np.random.Generator) -> Case:
    mean = """t = f32[{m}] reduce(x, zero), dimensions={{1}}, to_apply=add_f32
        mean = f32[{m}] divide(t, n)
        ms = {s} broadcast(mean), dimensions={{0}}
        d = {s} subtract(x, ms)"""
    return _centred(n, mean, g, lambda x: x - x.mean(1, keepdims=True))


@PROGRAMS.add("rms norm")
def _rms_norm(n: int, g: np.random.Generator) -> Case:
    return _centred(n, "d = {s} copy(x)", g, same)


@PROGRAMS.add("cross entropy")
def _cross_entropy(n: int, g: np.random.Generator) -> Case:
    m, k = square_shape(n)
    x = g.standard_normal((m, k), np.float32)
    text = module_text(f"""x = f32[{m},{k}] parameter(0)
        zero = f32[] constant(0)
        low = f32[] constant(-inf)
        n = f32[] constant({m})
        m = f32[{m}] reduce(x, low), dimensions={{1}}, to_apply=max_f32
        ms = f32[{m},{k}] broadcast(m), dimensions={{0}}
        d = f32[{m},{k}] subtract(x, ms)
        v = f32[{m},{k}] exponential(d)
        s = f32[{m}] reduce(v, zero), dimensions={{1}}, to_apply=add_f32
        l = f32[{m}] log(s)
        lm = f32[{m}] add(l, m)
        t = f32[] reduce(lm, zero), dimensions={{0}}, to_apply=add_f32
        ROOT r = f32[] divide(t, n)""")
    return Case(text, (x,), lambda: np.asarray(np.log(row_totals(np.exp, x)).mean()))
