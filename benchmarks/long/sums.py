"""Programs of numerics.py: sums to one number, and of other dtypes than f32."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .cases import (
    BF16,
    F16,
    F32,
    SQUARE,
    Case,
    LongPrograms,
    Make,
    column_totals,
    complex_uniform,
    module_text,
    row_totals,
    same,
    square_shape,
    total,
    uniform,
    wide,
)

PROGRAMS = LongPrograms()

# Sums to one number -------------------------------------------------------------------------------------------------


def _flat(expression: str, f: Callable[..., np.ndarray], arrays: int = 1, dims: str = "flat") -> Make:
    """Σ f over all elements. expression: HLO lines that compute `v` of shape {s} from `x` (and `y`)."""

    def make(n: int, g: np.random.Generator) -> Case:
        shape = (n,) if dims == "flat" else square_shape(n)
        s = f"f32[{','.join(map(str, shape))}]"
        axes = ",".join(map(str, range(len(shape))))
        parameters = "\n".join(f"{name} = {s} parameter({i})" for i, name in enumerate("xy"[:arrays]))
        inputs = tuple(uniform(g, *shape) for _ in range(arrays))
        text = module_text(f"""{parameters}
            zero = f32[] constant(0)
            {expression.format(s=s, p=s.replace("f32", "pred"))}
            ROOT r = f32[] reduce(v, zero), dimensions={{{axes}}}, to_apply=add_f32""")
        return Case(text, inputs, lambda: np.asarray(total(f, *inputs)))

    return make


PROGRAMS.add("sum x")(_flat("v = {s} copy(x)", same))
PROGRAMS.add("sum x²")(_flat(SQUARE, np.square))
PROGRAMS.add("sum x² of a matrix")(_flat(SQUARE, np.square, dims="matrix"))
PROGRAMS.add("sum exp")(_flat("v = {s} exponential(x)", np.exp))
PROGRAMS.add("sum |x − y|")(_flat("d = {s} subtract(x, y)\nv = {s} abs(d)", lambda x, y: abs(x - y), 2))
PROGRAMS.add("sum |x − y| of matrices")(
    _flat("d = {s} subtract(x, y)\nv = {s} abs(d)", lambda x, y: abs(x - y), 2, "matrix")
)
PROGRAMS.add("sum (x − y)²")(_flat("d = {s} subtract(x, y)\nv = {s} multiply(d, d)", lambda x, y: (x - y) ** 2, 2))
PROGRAMS.add("sum where x > ½")(
    _flat(
        """half = f32[] constant(0.5)
        h = {s} broadcast(half), dimensions={{}}
        z = {s} broadcast(zero), dimensions={{}}
        p = {p} compare(x, h), direction=GT
        v = {s} select(p, x, z)""",
        lambda x: np.where(x > 0.5, x, 0),
    )
)
PROGRAMS.add("count in f32")(
    _flat(
        """z = {s} broadcast(zero), dimensions={{}}
        p = {p} compare(x, z), direction=GE
        v = {s} convert(p)""",
        lambda x: x >= 0,
    )
)


@PROGRAMS.add("sum x·x·w")
def _sum_weighted(n: int, g: np.random.Generator) -> Case:
    m, k = square_shape(n)
    x, w = uniform(g, m, k), uniform(g, k)
    text = module_text(f"""x = f32[{m},{k}] parameter(0)
        w = f32[{k}] parameter(1)
        xx = f32[{m},{k}] multiply(x, x)
        ws = f32[{m},{k}] broadcast(w), dimensions={{1}}
        v = f32[{m},{k}] multiply(xx, ws)
        zero = f32[] constant(0)
        ROOT r = f32[] reduce(v, zero), dimensions={{0,1}}, to_apply=add_f32""")
    return Case(text, (x, w), lambda: np.asarray(math.fsum(total(lambda a, b: a * a * b, row, w) for row in x)))


@PROGRAMS.add("sum x[:, None] · y")
def _sum_outer(n: int, g: np.random.Generator) -> Case:
    m, k = square_shape(n)
    x, y = uniform(g, m), uniform(g, k)
    text = module_text(f"""x = f32[{m}] parameter(0)
        y = f32[{k}] parameter(1)
        xs = f32[{m},{k}] broadcast(x), dimensions={{0}}
        ys = f32[{m},{k}] broadcast(y), dimensions={{1}}
        v = f32[{m},{k}] multiply(xs, ys)
        zero = f32[] constant(0)
        ROOT r = f32[] reduce(v, zero), dimensions={{0,1}}, to_apply=add_f32""")
    return Case(text, (x, y), lambda: np.asarray(total(same, x) * total(same, y)))


@PROGRAMS.add("sum x[::2]²")
def _sum_strided(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n)
    text = module_text(f"""x = f32[{n}] parameter(0)
        s = f32[{n // 2}] slice(x), slice={{[0:{n}:2]}}
        v = f32[{n // 2}] multiply(s, s)
        zero = f32[] constant(0)
        ROOT r = f32[] reduce(v, zero), dimensions={{0}}, to_apply=add_f32""")
    return Case(text, (x,), lambda: np.asarray(total(np.square, x[::2])))


@PROGRAMS.add("mean")
def _mean(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n)
    text = module_text(f"""x = f32[{n}] parameter(0)
        zero = f32[] constant(0)
        n = f32[] constant({n})
        s = f32[] reduce(x, zero), dimensions={{0}}, to_apply=add_f32
        ROOT r = f32[] divide(s, n)""")
    return Case(text, (x,), lambda: np.asarray(total(same, x) / n))


@PROGRAMS.add("variance")
def _variance(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n) + F32(3)
    text = module_text(f"""x = f32[{n}] parameter(0)
        zero = f32[] constant(0)
        n = f32[] constant({n})
        s = f32[] reduce(x, zero), dimensions={{0}}, to_apply=add_f32
        m = f32[] divide(s, n)
        ms = f32[{n}] broadcast(m), dimensions={{}}
        d = f32[{n}] subtract(x, ms)
        dd = f32[{n}] multiply(d, d)
        t = f32[] reduce(dd, zero), dimensions={{0}}, to_apply=add_f32
        ROOT r = f32[] divide(t, n)""")

    def exact() -> np.ndarray:
        mean = total(same, x) / n
        return np.asarray(total(lambda v: (v - mean) ** 2, x) / n)

    return Case(text, (x,), exact)


@PROGRAMS.add("norm")
def _norm(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n)
    text = module_text(f"""x = f32[{n}] parameter(0)
        zero = f32[] constant(0)
        v = f32[{n}] multiply(x, x)
        s = f32[] reduce(v, zero), dimensions={{0}}, to_apply=add_f32
        ROOT r = f32[] sqrt(s)""")
    return Case(text, (x,), lambda: np.asarray(math.sqrt(total(np.square, x))))


@PROGRAMS.add("norm of three arrays")
def _global_norm(n: int, g: np.random.Generator) -> Case:
    m, k = square_shape(n)
    x, y, z = uniform(g, m, k), uniform(g, n // 4), uniform(g, k)
    text = module_text(f"""x = f32[{m},{k}] parameter(0)
        y = f32[{n // 4}] parameter(1)
        z = f32[{k}] parameter(2)
        zero = f32[] constant(0)
        xx = f32[{m},{k}] multiply(x, x)
        yy = f32[{n // 4}] multiply(y, y)
        zz = f32[{k}] multiply(z, z)
        a = f32[] reduce(xx, zero), dimensions={{0,1}}, to_apply=add_f32
        b = f32[] reduce(yy, zero), dimensions={{0}}, to_apply=add_f32
        c = f32[] reduce(zz, zero), dimensions={{0}}, to_apply=add_f32
        ab = f32[] add(a, b)
        abc = f32[] add(ab, c)
        ROOT r = f32[] sqrt(abc)""")
    return Case(text, (x, y, z), lambda: np.asarray(math.sqrt(sum(total(np.square, v) for v in (x, y, z)))))


@PROGRAMS.add("MSE of images")
def _mse(n: int, g: np.random.Generator) -> Case:
    s = (n // 1024, 32, 8, 3)
    x, y = uniform(g, *s), uniform(g, *s)
    t = f"f32[{','.join(map(str, s))}]"
    text = module_text(f"""x = {t} parameter(0)
        y = {t} parameter(1)
        d = {t} subtract(x, y)
        q = {t} multiply(d, d)
        zero = f32[] constant(0)
        n = f32[] constant({x.size})
        s = f32[] reduce(q, zero), dimensions={{0,1,2,3}}, to_apply=add_f32
        ROOT r = f32[] divide(s, n)""")
    return Case(text, (x, y), lambda: np.asarray(total(lambda a, b: (a - b) ** 2, x, y) / x.size))


@PROGRAMS.add("sum x and sum x² in one kernel")
def _two_sums(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n)
    text = module_text(f"""x = f32[{n}] parameter(0)
        zero = f32[] constant(0)
        v = f32[{n}] multiply(x, x)
        s = f32[] reduce(x, zero), dimensions={{0}}, to_apply=add_f32
        t = f32[] reduce(v, zero), dimensions={{0}}, to_apply=add_f32
        ROOT r = f32[] add(s, t)""")
    return Case(text, (x,), lambda: np.asarray(total(lambda v: v + v * v, x)))


@PROGRAMS.add("product near 1")
def _prod(n: int, g: np.random.Generator) -> Case:
    x = (1 + 1e-4 * g.standard_normal(n)).astype(F32)
    text = module_text(f"""x = f32[{n}] parameter(0)
        one = f32[] constant(1)
        ROOT r = f32[] reduce(x, one), dimensions={{0}}, to_apply=mul_f32""")
    return Case(text, (x,), lambda: np.asarray(math.prod(float(np.prod(wide(p))) for p in np.split(x, n // 1024))))


@PROGRAMS.add("logsumexp")
def _logsumexp(n: int, g: np.random.Generator) -> Case:
    x = uniform(g, n)
    text = module_text(f"""x = f32[{n}] parameter(0)
        zero = f32[] constant(0)
        low = f32[] constant(-inf)
        m = f32[] reduce(x, low), dimensions={{0}}, to_apply=max_f32
        ms = f32[{n}] broadcast(m), dimensions={{}}
        d = f32[{n}] subtract(x, ms)
        v = f32[{n}] exponential(d)
        s = f32[] reduce(v, zero), dimensions={{0}}, to_apply=add_f32
        l = f32[] log(s)
        ROOT r = f32[] add(l, m)""")
    return Case(text, (x,), lambda: np.asarray(math.log(total(np.exp, x))))


# Other dtypes -------------------------------------------------------------------------------------------------------


def _narrow(t: str, rows: int, d: int) -> Make:
    """Σ in a narrow dtype over dimension d of a matrix; rows 0: of a vector."""

    def make(n: int, g: np.random.Generator) -> Case:
        shape = (n,) if not rows else (rows, n // rows) if d else (n // rows, rows)
        x = (uniform(g, *shape) / 2).astype(BF16 if t == "bf16" else F16)
        s = f"{t}[{','.join(map(str, shape))}]"
        kept = [size for k, size in enumerate(shape) if k != d]
        text = module_text(
            f"""x = {s} parameter(0)
            zero = {t}[] constant(0)
            ROOT r = {t}[{",".join(map(str, kept))}] reduce(x, zero), dimensions={{{d}}}, to_apply=add_{t}""",
            t,
        )
        if not rows:
            return Case(text, (x,), lambda: np.asarray(total(same, x)))
        return Case(text, (x,), lambda: row_totals(same, x) if d else column_totals(same, x))

    return make


PROGRAMS.add("bf16 sum", most=26)(_narrow("bf16", 0, 0))
PROGRAMS.add("f16 sum", most=16)(_narrow("f16", 0, 0))
PROGRAMS.add("bf16 row sums", most=26)(_narrow("bf16", 4, 1))
PROGRAMS.add("bf16 column sums", most=26)(_narrow("bf16", 64, 0))
PROGRAMS.add("f16 column sums", most=20)(_narrow("f16", 16, 0))


def _narrow_mean(t: str) -> Make:
    """The mean as JAX computes it: in f32."""

    def make(n: int, g: np.random.Generator) -> Case:
        x = uniform(g, n).astype(BF16 if t == "bf16" else F16)
        text = module_text(f"""x = {t}[{n}] parameter(0)
            wide = f32[{n}] convert(x)
            zero = f32[] constant(0)
            n = f32[] constant({n})
            s = f32[] reduce(wide, zero), dimensions={{0}}, to_apply=add_f32
            m = f32[] divide(s, n)
            ROOT r = {t}[] convert(m)""")
        return Case(text, (x,), lambda: np.asarray(total(same, x) / n))

    return make


PROGRAMS.add("bf16 mean in f32", most=26)(_narrow_mean("bf16"))
PROGRAMS.add("f16 mean in f32", most=26)(_narrow_mean("f16"))


@PROGRAMS.add("c64 sum", most=26)
def _complex_sum(n: int, g: np.random.Generator) -> Case:
    x = complex_uniform(g, n)
    text = module_text(
        f"""x = c64[{n}] parameter(0)
        zero = c64[] constant((0, 0))
        ROOT r = c64[] reduce(x, zero), dimensions={{0}}, to_apply=add_c64""",
        "c64",
    )
    return Case(text, (x,), lambda: np.asarray(total(same, x.real) + 1j * total(same, x.imag)))


@PROGRAMS.add("c64 column sums", most=26)
def _complex_columns(n: int, g: np.random.Generator) -> Case:
    x = complex_uniform(g, n // 16, 16)
    text = module_text(
        f"""x = c64[{n // 16},16] parameter(0)
        zero = c64[] constant((0, 0))
        ROOT r = c64[16] reduce(x, zero), dimensions={{0}}, to_apply=add_c64""",
        "c64",
    )
    return Case(text, (x,), lambda: column_totals(same, x))
