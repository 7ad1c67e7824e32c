"""Random HLO text of nearly every op, type, rank and control structure; extends random_texts.py.

Half of the programs are exact: floats are small integers and every op on them is exact, so that results must be equal
bit for bit, whatever the order of sums. The other half has inexact functions, whose results affect no discrete value.
"""

from __future__ import annotations

import math

import numpy as np

from ...formats.program import parameter_leaves
from ...hlo.ir import Module
from ..support.passes import fill
from .random_arrays import Arrays
from .random_movement import Value
from .random_structures import Structures
from .random_texts import Body, Texts

SIGNED, UNSIGNED = ("s2", "s4", "s8", "s16", "s32", "s64"), ("u2", "u4", "u8", "u16", "u32", "u64")
NARROW = ("f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "f8e4m3", "f8e3m4", "f4e2m1fn")
USUAL, COMPLEX = ("f32", "f64", "bf16", "f16"), ("c64", "c128")
BITS = {"pred": 8, "bf16": 16, "f4e2m1fn": 4, **dict.fromkeys(NARROW[:-1], 8)}
DIMS = (
    *((), (1,), (5,), (16,), (0,), (4, 3), (3, 17), (2, 3, 4), (0, 3), (3, 0, 2), (8, 1, 2), (1, 33), (130,), (1, 1)),
    *(
        (2, 1, 3, 1, 2, 1, 1, 2),
        (6, 6),
        (2, 5, 5, 3),
        (1, 2, 2, 1, 3),
        (2, 2, 1, 2, 1, 2),
        (9, 40),
        (2, 2, 2, 1, 1, 3, 1),
    ),
    *((4, 4, 2), (64, 17), (3, 8, 16), (1, 1, 1, 1, 1, 1, 1, 1)),
)
LIMIT = {"f32": 64, "f64": 64, "f16": 8, "bf16": 4}
"""The limit of |x| for floats of exact programs: sums of a few hundred of them are exact."""

UNARY_EXACT = "negate abs floor ceil round-nearest-even round-nearest-afz sign copy"
UNARY_INEXACT = (
    "negate abs copy sine cosine tanh logistic erf exponential-minus-one log-plus-one cbrt atanh asinh tan "
    "exponential sqrt rsqrt log acos asin sinh cosh"
)
UNARY_COMPLEX = "negate copy sine tanh exponential-minus-one sqrt log logistic cosh"
BINARY_INTEGER = (
    "add subtract multiply maximum minimum and or xor divide remainder shift-left shift-right-logical "
    "shift-right-arithmetic power"
)

MORE = """
unary binary binary binary bits pick convert convert clamp complex spread broadcast refactor permute bitcast
reduce_precision stochastic many constant_array start start update_rows gather scatter window select_scatter
batched_dot batched_dot any_convolution ragged scaled batch_norm fft solve topk sorted map scan random_bits
barrier call call fusion fusion asynchronous collective annotate tied device domain
"""
"""Names of the methods that add an op; frequent names are more likely."""


def bits(dtype: str) -> int:
    return BITS.get(dtype) or int(dtype[1:]) // (2 if dtype[0] == "c" else 1)


class Wide(Texts):
    """Generates one module from a seed."""

    dims = DIMS

    def __init__(self, seed: int, size: int = 14, depth: int = 2):
        self.exact = seed % 2 == 0
        self.shared: list[tuple[str, list[Value], list[Value]]] = []
        super().__init__(seed, size, depth, DIMS)

    def body(self, depth: int) -> WideBody:
        return WideBody(self, depth)

    def draw_types(self) -> list[str]:
        """A few types, the usual ones more often. s32 is always included, for indices and counters."""
        pools = (USUAL, USUAL, SIGNED + UNSIGNED, SIGNED + UNSIGNED, COMPLEX, NARROW)
        some = [self.random.choice(self.random.choice(pools)) for _ in range(self.random.randint(1, 4))]
        return [*some, self.random.choice(USUAL), self.random.choice(("s32", "pred", some[0]))]

    def given(self, body: Body) -> list[Value]:
        """The parameters; sometimes they are one tuple."""
        if self.random.random() > 0.15:
            return super().given(body)
        shapes = [body.new(self.random.choice(self.types), self.random.choice(self.shapes)) for _ in range(3)]
        body.lines.append(f"  given = {body.tupled(shapes)} parameter(0)")
        for n, shape in enumerate(shapes):
            body.put(shape, f"get-tuple-element(given), index={n}")
        return []

    def results(self, body: Body, parameters: list[Value]) -> str:
        """One array, a flat tuple or a nested one. Sometimes the module is scheduled in the order of the text."""
        schedule = ", is_scheduled=true" if self.random.random() < 0.15 else ""
        form = self.random.random()
        if form > 0.3:
            return schedule + super().results(body, parameters).replace("may", self.random.choice(("may", "must")))
        last = body.any()
        if form < 0.1:
            body.lines.append(f"  ROOT root = {last.shape} copy({last.name})")
            return schedule
        pair = [last, body.any()]
        body.lines.append(f"  inner = {body.tupled(pair)} tuple({pair[0].name}, {pair[1].name})")
        body.lines.append(f"  ROOT root = ({last.shape}, {body.tupled(pair)}) tuple({last.name}, inner)")
        return schedule

    def region(self, op: str, dtype: str) -> str:
        """A computation of two scalars; some use several ops for the same meaning."""
        if op in ("put", "keep"):
            name, root = f"{op}_{dtype}", ("ROOT a", "b") if op == "keep" else ("a", "ROOT b")
            lines = "\n".join(f"  {r} = {dtype}[] parameter({n})" for n, r in enumerate(root))
            self.computations.setdefault(name, f"{name} {{\n{lines}\n}}")
            return name
        if op == "compare":
            return self.order(op, dtype, "")
        return super().region(op, dtype)

    def order(self, stem: str, dtype: str, others: str) -> str:
        """A comparator of its first two parameters, which also orders NaN and both zeros."""
        name, kind = f"{stem}_{dtype}", ", type=TOTALORDER" if dtype[0] in "fb" else ""
        self.computations.setdefault(
            name,
            f"{name} {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n{others}"
            f"  ROOT r = pred[] compare(a, b), direction=LT{kind}\n}}",
        )
        return name


class WideBody(Arrays, Structures, Body):
    """A computation whose ops are random_texts.py's and those of the tables above."""

    texts: Wide

    def kinds(self) -> list[str]:
        more = MORE.split()
        if self.depth:
            more += ["any_loop", "any_loop", "nested_branch", "branch"]
        return [*super().kinds(), *more]

    @property
    def exact(self) -> bool:
        return self.texts.exact

    def scalar(self, dtype: str) -> str:
        return self.constant(dtype, self.literal(dtype))

    def literal(self, dtype: str) -> str:
        """A small number of the type, as text."""
        draw = self.random
        if dtype == "pred":
            return draw.choice(("true", "false"))
        if dtype[0] == "c":
            return f"({draw.randint(-2, 2)}, {draw.randint(-2, 2)})"
        if dtype[0] == "u":
            return str(draw.choice((0, 1, 2, 3, min(7, 2 ** bits(dtype) - 1), 2 ** bits(dtype) - 1)))
        if dtype[0] == "s":
            most = 2 ** (bits(dtype) - 1)
            return str(max(-most, min(most - 1, draw.choice((-2, -1, 0, 1, 2, 3, 5, -most, most - 1)))))
        extremes = ("inf", "-inf", "nan", "-0") if dtype in USUAL and draw.random() < 0.15 else ("0", "1", "-0")
        return draw.choice((*extremes, "1", "-1", "2", "-2", "3", "0.5" if not self.exact else "4"))

    def zero(self, dtype: str, op: str = "add") -> str:
        if dtype[0] == "c":
            return self.constant(dtype, "(1, 0)" if op == "multiply" else "(0, 0)")
        if self.random.random() < 0.15 and op in ("maximum", "minimum", "and", "or"):
            return self.scalar(dtype)
        if dtype[0] in "su" and op in ("minimum", "and"):
            wide = bits(dtype) - (dtype[0] == "s")
            return self.constant(dtype, "-1" if op == "and" and dtype[0] == "s" else str(2**wide - 1))
        if dtype[0] == "s" and op == "maximum":
            return self.constant(dtype, str(-(2 ** (bits(dtype) - 1))))
        if dtype in NARROW and op in ("maximum", "minimum"):
            return self.constant(dtype, "-4" if op == "maximum" else "4")
        return super().zero(dtype, op)

    def kept(self, v: Value) -> Value:
        """v limited in an exact program, so that later results stay exact; otherwise tanh(v)."""
        if v.kind != "f":
            return v
        if not self.exact:
            return self.add(v.dtype, v.dims, f"tanh({v.name})")
        most = LIMIT.get(v.dtype, 2)
        low, high = self.constant(v.dtype, str(-most)), self.constant(v.dtype, str(most))
        return self.add(v.dtype, v.dims, f"clamp({low}, {v.name}, {high})")

    # elementwise

    def unary(self, v: Value):
        draw = self.random
        if v.kind == "f" and draw.random() < 0.06:
            return self.add("pred", v.dims, f"is-finite({v.name})")
        if v.kind == "c":
            op = draw.choice(
                (*UNARY_COMPLEX.split(), "real", "imag", "abs")
                if not self.exact
                else ("negate", "copy", "real", "imag")
            )
            if op in ("real", "imag", "abs"):
                return self.add("f32" if v.dtype == "c64" else "f64", v.dims, f"{op}({v.name})")
            made = self.add(v.dtype, v.dims, f"{op}({v.name})")
            return made if op in ("negate", "copy") else self.add(v.dtype, v.dims, f"tanh({made.name})")
        if v.kind == "f":
            op = draw.choice((UNARY_EXACT if self.exact else UNARY_INEXACT).split())
            if op in ("sqrt", "rsqrt", "log", "log-plus-one"):  # the operand may be 0 or almost 0
                v = self.add(v.dtype, v.dims, f"abs({v.name})")
            made = self.add(v.dtype, v.dims, f"{op}({v.name})")
            return made if self.exact or op in ("negate", "abs", "copy", "sine", "cosine") else self.kept(made)
        ops = "not copy" if v.kind == "p" else "negate not copy popcnt count-leading-zeros"
        ops += " abs sign" if v.dtype[0] == "s" else ""
        return self.add(v.dtype, v.dims, f"{draw.choice(ops.split())}({v.name})")

    def binary(self, v: Value):
        draw = self.random
        pair = [v.name, (v if draw.random() < 0.08 else self.like(v)).name]
        draw.shuffle(pair)
        ops = {"i": BINARY_INTEGER + (" mulhi" if bits(v.dtype) >= 8 and v.kind == "i" else ""),
               "p": "and or xor maximum minimum add multiply", "c": "add subtract multiply",
               "f": "add subtract multiply maximum minimum"}[v.kind]  # fmt: skip
        if v.kind == "f":
            ops += " remainder" if self.exact else " divide atan2 power"
        if v.kind == "c" and not self.exact:
            ops += " divide"
        op = draw.choice(ops.split())
        made = self.add(v.dtype, v.dims, f"{op}({', '.join(pair)})")
        if v.kind == "c" and op in ("multiply", "divide"):
            return self.small_complex(made)
        return self.kept(made) if v.kind == "f" and op not in ("maximum", "minimum") else made

    def small_complex(self, v: Value) -> Value:
        part = "f32" if v.dtype == "c64" else "f64"
        parts = [self.kept(self.add(part, v.dims, f"{op}({v.name})")) for op in ("real", "imag")]
        return self.add(v.dtype, v.dims, f"complex({parts[0].name}, {parts[1].name})")

    def without_nan(self, v: Value) -> Value:
        """v with 0 instead of NaN: the sign of a computed NaN is unspecified, but total order depends on it."""
        if v.kind != "f":
            return v
        zero = self.add(v.dtype, v.dims, f"broadcast({self.constant(v.dtype, '0')}), dimensions={{}}")
        same = self.add("pred", v.dims, f"compare({v.name}, {v.name}), direction=EQ")
        return self.add(v.dtype, v.dims, f"select({same.name}, {v.name}, {zero.name})")

    def sort(self, v: Value):
        return super().sort(self.without_nan(v)) if v.kind in "fi" else None

    def compare(self, v: Value):
        which = self.random.choice(("EQ", "NE") if v.kind == "c" else ("LT", "GE", "EQ", "NE", "LE", "GT"))
        other = v if self.random.random() < 0.1 else self.like(v)
        kind = ""
        if v.kind == "f" and self.exact and v.dtype in USUAL and self.random.random() < 0.3:
            v, other, kind = self.without_nan(v), self.without_nan(other), ", type=TOTALORDER"
        return self.add("pred", v.dims, f"compare({v.name}, {other.name}), direction={which}{kind}")

    def bits(self, v: Value):
        """A bitcast-convert between integers of equal or different widths."""
        if v.kind != "i":
            return None
        to = self.random.choice(SIGNED + UNSIGNED)
        have, want = bits(v.dtype), bits(to)
        if have == want:
            return self.add(to, v.dims, f"bitcast-convert({v.name})")
        if have > want and math.prod(v.dims) < 500 and len(v.dims) < 8:
            return self.add(to, (*v.dims, have // want), f"bitcast-convert({v.name})")
        if v.dims and v.dims[-1] * have == want:
            return self.add(to, v.dims[:-1], f"bitcast-convert({v.name})")
        return None

    def pick(self, v: Value):
        """A select by a scalar."""
        test = [w for w in self.values if w.dtype == "pred" and w.dims == ()]
        name = self.random.choice(test).name if test else self.scalar("pred")
        return self.add(v.dtype, v.dims, f"select({name}, {v.name}, {self.like(v).name})")

    def clamp(self, v: Value):
        if v.kind not in "fi":
            return None
        if self.random.random() < 0.4:
            return self.add(v.dtype, v.dims, f"clamp({self.like(v).name}, {v.name}, {self.like(v).name})")
        return self.add(v.dtype, v.dims, f"clamp({self.scalar(v.dtype)}, {v.name}, {self.scalar(v.dtype)})")

    def convert(self, v: Value):
        to = self.random.choice([*self.texts.types, self.random.choice(USUAL + SIGNED + UNSIGNED + NARROW)])
        if v.kind == "c" or (v.kind == "f" and not self.exact and to[0] in "sup"):
            return None
        if self.exact and v.kind == "f" and to in NARROW and v.dtype not in NARROW:
            return None  # would round
        made = self.add(to, v.dims, f"convert({v.name})")
        return self.kept(made) if made.kind == "f" and v.kind == "i" else made

    def complex(self, v: Value):
        if v.dtype not in ("f32", "f64"):
            return None
        return self.add({"f32": "c64", "f64": "c128"}[v.dtype], v.dims, f"complex({v.name}, {self.like(v).name})")

    def reduce_precision(self, v: Value):
        if v.kind != "f" or not self.exact:
            return None
        how = f"exponent_bits={self.random.randint(4, 8)}, mantissa_bits={self.random.randint(3, 10)}"
        return self.add(v.dtype, v.dims, f"reduce-precision({v.name}), {how}")

    def stochastic(self, v: Value):
        if v.dtype not in ("f32", "f16", "bf16", "f64") or not self.exact:
            return None
        noise = self.like(Value("", f"u{bits(v.dtype)}", v.dims))
        to = self.random.choice(("s8", "s32", "bf16", "f16") if v.dtype == "f32" else ("s8", "s32"))
        return self.add(to, v.dims, f"stochastic-convert({v.name}, {noise.name})")


INSIDE, OUTSIDE = (0.0, -0.0, 1, -1, 2, 3, -3), (np.inf, -np.inf, np.nan, 4)


def inputs_of(module: Module, seed: int) -> list[np.ndarray]:
    """Inputs of a program: small integers in an exact one, any floats otherwise; every third seed: special values."""
    special = seed % 3 == 0
    if seed % 2:
        return fill(module, seed, special=special)
    draw, made = np.random.default_rng(seed), []
    for shape in parameter_leaves(module):
        dtype = shape.dtype
        if dtype.is_float or dtype.is_complex:
            values = draw.choice(np.array(INSIDE + OUTSIDE if special else INSIDE), shape.dims)
        elif dtype.is_integer:
            least, most = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if dtype.is_signed else (
                0, (1 << dtype.bits) - 1)  # fmt: skip
            values = draw.integers(max(least, -3), min(most, 9) + 1, shape.dims)
            ends = draw.choice(np.array([least, most, 0], object), shape.dims)
            values = np.where(draw.random(shape.dims) < 0.3 * special, ends, values)
        else:
            values = draw.integers(0, 2, shape.dims)
        made.append(np.asarray(values).astype(dtype.numpy))
    return made
