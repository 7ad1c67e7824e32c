"""Random HLO text of many kinds of ops, types, shapes and layouts, each value with several users."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from .random_movement import DIMS, Movement, Value, listed

FLOATS, INTEGERS = ("f32", "f64", "bf16", "f16"), ("s32", "u8")
UNARY_OF = {
    "f": "negate abs floor tanh sign cosine copy exponential",
    "i": "negate copy not",
    "p": "not copy",
    "c": "negate copy",
}
BINARY_OF = {
    "f": "add subtract multiply maximum minimum divide",
    "i": "add subtract multiply maximum minimum and xor",
    "p": "and or xor",
    "c": "add subtract multiply",
}
FOLDS = {"f": "add maximum minimum", "i": "add maximum minimum multiply", "p": "and or", "c": "add"}
IDENTITY = {("s32", "maximum"): "-2147483648", ("s32", "minimum"): "2147483647", ("u8", "minimum"): "255"}


class Texts:
    """Generates the text of one module from a seed: `text` holds it. random_wide.py extends it."""

    def __init__(self, seed: int, size: int = 14, depth: int = 2, dims=DIMS):
        self.seed, self.random, self.number, self.layouts = seed, random.Random(seed), 0, 0.25
        self.computations: dict[str, str] = {}
        self.types = self.draw_types()
        self.shapes = self.random.sample(dims, 3)
        body = self.body(depth)
        parameters = self.given(body)
        body.grow(size)
        header = self.results(body, parameters)
        entry = "ENTRY main {\n" + "\n".join(body.lines) + "\n}"
        self.text = f"HloModule t{seed}{header}\n" + "\n".join([*self.computations.values(), entry]) + "\n"

    def given(self, body: Body) -> list[Value]:
        """The parameters."""
        parameters = [
            body.new(self.random.choice(self.types), self.random.choice(self.shapes), True)
            for _ in range(self.random.randint(1, 3))
        ]
        for n, p in enumerate(parameters):
            body.put(p, f"parameter({n})")
        return parameters

    def results(self, body: Body, parameters: list[Value]) -> str:
        """Give the entry its root. Returns the attributes of the module's header."""
        results = [body.any() for _ in range(self.random.randint(2, 4))]
        aliases = self.aliases(parameters, results) if self.random.random() < 0.4 else ""
        body.root(results)
        return aliases

    def body(self, depth: int) -> Body:
        return Body(self, depth)

    def draw_types(self) -> list[str]:
        if self.random.random() > 0.35:
            return [self.random.choice(FLOATS)] * 3 + ["s32"]
        return [*FLOATS, *INTEGERS, "pred", "c64"]

    def aliases(self, parameters: list[Value], results: list[Value]) -> str:
        pairs, free = [], list(range(len(results)))
        for n, p in enumerate(parameters):
            fit = [r for r in free if results[r].shape == p.shape]
            if fit:
                free.remove(fit[0])
                pairs.append(f"{{{fit[0]}}}: ({n}, {{}}, may-alias)")
        return f", input_output_alias={{ {', '.join(pairs)} }}" if pairs else ""

    def name(self, stem: str) -> str:
        self.number += 1
        return f"{stem.replace('-', '_')}.{self.number}"

    def region(self, op: str, dtype: str) -> str:
        """A computation of two scalars."""
        name = f"{op}_{dtype}"
        result, tail = ("pred", f", direction=LT{self.total(dtype)}") if op == "compare" else (dtype, "")
        self.computations.setdefault(
            name,
            f"{name} {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n"
            f"  ROOT r = {result}[] {op}(a, b){tail}\n}}",
        )
        return name

    def total(self, dtype: str) -> str:
        """The kind of an order: total for floats in programs on special values, where NaN is less than nothing."""
        return ", type=TOTALORDER" if dtype[0] in "fb" and self.seed % 3 == 0 else ""

    def order(self, stem: str, dtype: str, others: str) -> str:
        """A comparator of its first two parameters. others: the lines of the other parameters."""
        name = f"{stem}_{dtype}"
        self.computations.setdefault(
            name,
            f"{name} {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n{others}"
            f"  ROOT r = pred[] compare(a, b), direction=LT{self.total(dtype)}\n}}",
        )
        return name


@dataclass
class Body(Movement):
    """One computation under construction."""

    texts: Texts
    depth: int
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def __post_init__(self):
        self.random = self.texts.random

    def new(self, dtype: str, dims, layout: bool = True) -> Value:
        order = None
        if layout and len(dims) > 1 and self.random.random() < self.texts.layouts:
            order = tuple(self.random.sample(range(len(dims)), len(dims)))
        return Value(self.texts.name("v"), dtype, tuple(dims), order)

    def put(self, value: Value, call: str) -> Value:
        self.lines.append(f"  {value.name} = {value.shape} {call}")
        self.values.append(value)
        return value

    def add(self, dtype: str, dims, call: str) -> Value:
        return self.put(self.new(dtype, dims), call)

    def any(self) -> Value:
        return self.random.choice(self.values[-5:] if self.random.random() < 0.6 else self.values)

    def root(self, results: list[Value]) -> None:
        shapes = ", ".join(r.shape for r in results)
        self.lines.append(f"  ROOT root = ({shapes}) tuple({', '.join(r.name for r in results)})")

    def constant(self, dtype: str, value: str) -> str:
        name = self.texts.name("k")
        self.lines.append(f"  {name} = {dtype}[] constant({value})")
        return name

    def scalar(self, dtype: str) -> str:
        return self.constant(
            dtype, "true" if dtype == "pred" else "(1, -1)" if dtype == "c64" else str(self.random.randint(0, 3))
        )

    def zero(self, dtype: str, op: str = "add") -> str:
        if dtype == "pred":
            return self.constant(dtype, "true" if op == "and" else "false")
        if dtype == "c64":
            return self.constant(dtype, "(0, 0)")
        if op in ("maximum", "minimum") and dtype in FLOATS:
            return self.constant(dtype, "-inf" if op == "maximum" else "inf")
        return self.constant(dtype, IDENTITY.get((dtype, op), "1" if op == "multiply" else "0"))

    def like(self, v: Value) -> Value:
        """Another value of the same type and dimensions: an existing one, or a new one by conversion or broadcast."""
        fit = [w for w in self.values if (w.dtype, w.dims) == (v.dtype, v.dims)]
        if len(fit) > 1 and self.random.random() < 0.8:
            return self.random.choice(fit)
        others = [w for w in self.values if w.dims == v.dims and w.kind not in "cp" and v.kind not in "cp"]
        others = [w for w in others if not (w.kind == "f" and v.kind == "i")]
        if others and self.random.random() < 0.5:
            return self.add(v.dtype, v.dims, f"convert({self.random.choice(others).name})")
        rows = [
            w for w in self.values if w.dtype == v.dtype and len(w.dims) < len(v.dims) and self.fits(w.dims, v.dims)
        ]
        if rows and self.random.random() < 0.7:
            w = self.random.choice(rows)
            return self.add(v.dtype, v.dims, f"broadcast({w.name}), dimensions={{{listed(self.fits(w.dims, v.dims))}}}")
        if v.kind not in "cp" and v.dims and self.random.random() < 0.4:
            return self.add(v.dtype, v.dims, f"iota(), iota_dimension={self.random.randrange(len(v.dims))}")
        return self.add(v.dtype, v.dims, f"broadcast({self.scalar(v.dtype)}), dimensions={{}}")

    def fits(self, few, many) -> tuple[int, ...] | None:
        """Dimensions of `many` that `few` can be broadcast over; None if there are none; () for a scalar."""
        found, at = [], 0
        for d in few:
            while at < len(many) and many[at] != d:
                at += 1
            if at == len(many):
                return None
            found.append(at)
            at += 1
        return tuple(found)

    def kinds(self) -> list[str]:
        """Names of the methods that add an op."""
        kinds = [
            *("unary", "binary", "binary", "binary", "choose", "compare", "reduce", "reduce", "rows", "rows", "arg"),
            *("transpose", "reshape", "slice", "pad", "concatenate", "dynamic", "dynamic", "gather", "scatter", "sort"),
            *("dot", "dot", "window", "cumulative", "convert", "reverse", "convolve", "several", "clamp"),
        ]
        if self.depth:
            kinds += ["loop", "loop", "branch", "branch"]
        return kinds

    def grow(self, size: int) -> None:
        kinds, done = self.kinds(), 0
        while done < size:
            kind = self.random.choice(kinds)
            done += getattr(self, kind)(self.any()) is not None

    def folds(self, v: Value) -> list[str]:
        """Ops that may reduce values of v's type."""
        return FOLDS[v.kind].split()

    def mixes(self, v: Value) -> list[str]:
        """Ops that may combine v with a reduction of v."""
        return BINARY_OF[v.kind].split()

    def kept(self, v: Value) -> Value:
        """v, or a similar value whose errors stay small."""
        return self.add(v.dtype, v.dims, f"tanh({v.name})") if v.kind == "f" else v

    def unary(self, v: Value):
        op = self.random.choice(UNARY_OF[v.kind].split())
        if op == "exponential":
            v = self.add(v.dtype, v.dims, f"tanh({v.name})")
        return self.add(v.dtype, v.dims, f"{op}({v.name})")

    def binary(self, v: Value):
        op = self.random.choice(BINARY_OF[v.kind].split())
        pair = [v.name, self.like(v).name]
        self.random.shuffle(pair)
        made = self.add(v.dtype, v.dims, f"{op}({', '.join(pair)})")
        return self.add(v.dtype, v.dims, f"tanh({made.name})") if v.kind == "f" and op == "multiply" else made

    def compare(self, v: Value):
        which = self.random.choice(("EQ", "NE") if v.kind == "c" else ("LT", "GE", "EQ", "NE"))
        return self.add("pred", v.dims, f"compare({v.name}, {self.like(v).name}), direction={which}")

    def choose(self, v: Value):
        test = [w for w in self.values if w.dtype == "pred" and w.dims == v.dims]
        chosen = self.random.choice(test) if test else self.compare(v)
        return self.add(v.dtype, v.dims, f"select({chosen.name}, {v.name}, {self.like(v).name})")

    def clamp(self, v: Value):
        if v.kind not in "fi":
            return None
        least, most = self.constant(v.dtype, "0"), self.constant(v.dtype, "2")
        return self.add(v.dtype, v.dims, f"clamp({least}, {v.name}, {most})")

    def convert(self, v: Value):
        to = self.random.choice([t for t in self.texts.types if t != "c64"])
        if v.kind == "c" or (v.kind == "f" and to in (*INTEGERS, "pred")):
            return None
        return self.add(to, v.dims, f"convert({v.name})")

    def reduced(self, v: Value, op: str, dims: list[int]) -> Value:
        left = [n for d, n in enumerate(v.dims) if d not in dims]
        call = f"reduce({v.name}, {self.zero(v.dtype, op)}), dimensions={{{listed(dims)}}}, "
        return self.add(v.dtype, left, call + f"to_apply={self.texts.region(op, v.dtype)}")

    def reduce(self, v: Value):
        dims = sorted(self.random.sample(range(len(v.dims)), self.random.randint(0, len(v.dims))))
        return self.reduced(v, self.random.choice(self.folds(v)), dims)

    def rows(self, v: Value):
        """softmax and layer norm in parts: each row of v is combined with a reduction of the row."""
        if not v.dims:
            return None
        axis = len(v.dims) - 1 if self.random.random() < 0.7 else self.random.randrange(len(v.dims))
        over = listed(d for d in range(len(v.dims)) if d != axis)
        for _ in range(self.random.randint(1, 3)):
            r = self.reduced(v, self.random.choice(self.folds(v)), [axis])
            if self.random.random() < 0.5:
                u = self.unary(r)
                r = u if u.dtype == r.dtype else r
            b = self.add(v.dtype, v.dims, f"broadcast({r.name}), dimensions={{{over}}}")
            v = self.add(v.dtype, v.dims, f"{self.random.choice(self.mixes(v))}({v.name}, {b.name})")
            v = self.kept(v)
        return v

    def several(self, v: Value):
        """A reduce of two operands: the sum of one and the maximum of the other."""
        if not v.dims or v.kind not in "fi":
            return None
        name, t = f"two_{v.dtype}", v.dtype
        self.texts.computations.setdefault(
            name,
            f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  c = {t}[] parameter(2)\n"
            f"  d = {t}[] parameter(3)\n  x = {t}[] add(a, c)\n  y = {t}[] maximum(b, d)\n"
            f"  ROOT r = ({t}[], {t}[]) tuple(x, y)\n}}",
        )
        axis = self.random.randrange(len(v.dims))
        left = [n for d, n in enumerate(v.dims) if d != axis]
        values = f"{v.name}, {self.like(v).name}, {self.zero(t)}, {self.zero(t, 'maximum')}"
        return self.pair(t, t, left, f"reduce({values}), dimensions={{{axis}}}, to_apply={name}")

    def pair(self, first: str, second: str, dims, call: str) -> Value:
        a, b, whole = self.new(first, dims, False), self.new(second, dims, False), self.texts.name("t")
        self.lines.append(f"  {whole} = ({a.shape}, {b.shape}) {call}")
        self.put(a, f"get-tuple-element({whole}), index=0")
        return self.put(b, f"get-tuple-element({whole}), index=1")

    def arg(self, v: Value):
        """argmax; the first of equal numbers."""
        if not v.dims or v.kind not in "fi":
            return None
        name, t = f"arg_{v.dtype}", v.dtype
        self.texts.computations.setdefault(
            name,
            f"{name} {{\n  a = {t}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {t}[] parameter(2)\n"
            f"  j = s32[] parameter(3)\n  g = pred[] compare(a, b), direction=GT\n"
            f"  n = pred[] compare(a, a), direction=NE\n  o = pred[] or(g, n)\n"
            f"  e = pred[] compare(a, b), direction=EQ\n  l = pred[] compare(i, j), direction=LT\n"
            f"  f = pred[] and(e, l)\n  h = pred[] or(o, f)\n  x = {t}[] select(o, a, b)\n  y = s32[] select(h, i, j)\n"
            f"  ROOT r = ({t}[], s32[]) tuple(x, y)\n}}",
        )
        axis = self.random.randrange(len(v.dims))
        number = self.add("s32", v.dims, f"iota(), iota_dimension={axis}")
        left = [n for d, n in enumerate(v.dims) if d != axis]
        call = f"reduce({v.name}, {number.name}, {self.zero(t, 'maximum')}, {self.zero('s32')}), "
        return self.pair(v.dtype, "s32", left, call + f"dimensions={{{axis}}}, to_apply={name}")

    def sort(self, v: Value):
        if not v.dims or v.kind not in "fi":
            return None
        axis, by = self.random.randrange(len(v.dims)), self.texts.region("compare", v.dtype)
        if self.random.random() < 0.5:
            return self.put(
                Value(self.texts.name("v"), v.dtype, v.dims, v.order),
                f"sort({v.name}), dimensions={{{axis}}}, to_apply={by}",
            )
        plain = self.put(Value(self.texts.name("v"), v.dtype, v.dims), f"copy({v.name})")
        number = self.put(Value(self.texts.name("v"), "s32", v.dims), f"iota(), iota_dimension={axis}")
        name = self.texts.order("by", v.dtype, "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n")
        call = f"sort({plain.name}, {number.name}), dimensions={{{axis}}}, is_stable=true, to_apply={name}"
        return self.pair(v.dtype, "s32", v.dims, call)

    def dot(self, v: Value):
        if len(v.dims) not in (1, 2) or v.kind not in "fi":
            return None
        fit = [
            (w, a, b)
            for w in self.values
            if w.dtype == v.dtype and len(w.dims) == 2
            for a, n in enumerate(v.dims)
            for b, m in enumerate(w.dims)
            if n == m
        ]
        if not fit:
            return None
        w, a, b = self.random.choice(fit)
        dims = [*(n for d, n in enumerate(v.dims) if d != a), *(n for d, n in enumerate(w.dims) if d != b)]
        call = f"dot({v.name}, {w.name}), lhs_contracting_dims={{{a}}}, rhs_contracting_dims={{{b}}}"
        made = self.add(v.dtype, dims, call)
        for _ in range(self.random.randint(0, 2)):
            made = self.random.choice((self.binary, self.unary, self.choose))(made)
        return self.kept(made)

    def convolve(self, v: Value):
        if len(v.dims) != 3 or v.kind != "f" or not math.prod(v.dims):
            return None
        width, out = self.random.randint(1, v.dims[1]), self.random.choice((1, 4))
        kernel = self.like(Value("", v.dtype, (width, v.dims[2], out)))
        call = (
            f"convolution({v.name}, {kernel.name}), window={{size={width} pad={width - 1}_0}}, dim_labels=b0f_0io->b0f"
        )
        made = self.add(v.dtype, (v.dims[0], v.dims[1], out), call)
        return self.kept(self.binary(made))

    def window(self, v: Value):
        if not v.dims or not math.prod(v.dims) or math.prod(v.dims) > 500:
            return None
        op = self.random.choice(self.folds(v))
        sizes, steps = [self.random.randint(1, n) for n in v.dims], [self.random.randint(1, 2) for _ in v.dims]
        pads = [(self.random.randint(0, s - 1), self.random.randint(0, s - 1)) for s in sizes]
        dims = [(n + sum(p) - s) // t + 1 for n, p, s, t in zip(v.dims, pads, sizes, steps)]
        x = "x".join
        how = f"size={x(map(str, sizes))} stride={x(map(str, steps))} pad={x(f'{a}_{b}' for a, b in pads)}"
        call = f"reduce-window({v.name}, {self.zero(v.dtype, op)}), window={{{how}}}, "
        made = self.add(v.dtype, dims, call + f"to_apply={self.texts.region(op, v.dtype)}")
        return made

    def cumulative(self, v: Value):
        if not v.dims or not math.prod(v.dims):
            return None
        op, axis = self.random.choice(self.folds(v)), self.random.randrange(len(v.dims))
        size = "x".join(str(n if d == axis else 1) for d, n in enumerate(v.dims))
        front = self.random.random() < 0.7
        pads = [(0, 0) if d != axis else (n - 1, 0) if front else (0, n - 1) for d, n in enumerate(v.dims)]
        how = f"size={size} pad={'x'.join(f'{a}_{b}' for a, b in pads)}"
        call = f"reduce-window({v.name}, {self.zero(v.dtype, op)}), window={{{how}}}, "
        return self.add(v.dtype, v.dims, call + f"to_apply={self.texts.region(op, v.dtype)}")

    def inner(self, shapes: list[Value]) -> tuple[Body, list[Value]]:
        """A computation of one tuple, with the tuple unpacked."""
        body = self.texts.body(self.depth - 1)
        body.lines.append(f"  p = {self.tupled(shapes)} parameter(0)")
        leaves = []
        for n, s in enumerate(shapes):
            leaf = Value(self.texts.name("v"), s.dtype, s.dims, s.order)
            leaves.append(body.put(leaf, f"get-tuple-element(p), index={n}"))
        return body, leaves

    def tupled(self, shapes: list[Value]) -> str:
        return "(" + ", ".join(s.shape for s in shapes) + ")"

    def done(self, body: Body, stem: str) -> str:
        name = self.texts.name(stem)
        self.texts.computations[name] = f"{name} {{\n" + "\n".join(body.lines) + "\n}"
        return name

    def taken(self, whole: str, shapes: list[Value]) -> Value:
        for n, s in enumerate(shapes):
            made = self.put(
                Value(self.texts.name("v"), s.dtype, s.dims, s.order), f"get-tuple-element({whole}), index={n}"
            )
        return made

    def matching(self, body: Body, shape: Value) -> Value:
        """A value of the body with exactly this shape, including the layout."""
        fit = [w for w in body.values if w.shape == shape.shape]
        if self.random.random() < 0.7:
            return self.random.choice(fit[-3:])
        loose = [w for w in body.values if (w.dtype, w.dims) == (shape.dtype, shape.dims)]
        made = Value(self.texts.name("v"), shape.dtype, shape.dims, shape.order)
        return body.put(made, f"copy({self.random.choice(loose).name})")

    def loop(self, v: Value):
        counter = self.put(Value(self.texts.name("v"), "s32", ()), f"constant({self.random.randint(0, 1)})")
        carried = [counter, *(self.any() for _ in range(self.random.randint(1, 3)))]
        test, (i, *_) = self.inner(carried)
        limit = test.constant("s32", str(self.random.randint(0, 4)))
        test.lines.append(f"  ROOT r = pred[] compare({i.name}, {limit}), direction=LT")
        condition = self.done(test, "condition")
        body, (i, *_) = self.inner(carried)
        body.grow(self.random.randint(0, 5))
        one = body.constant("s32", "1")
        step = body.put(Value(self.texts.name("v"), "s32", ()), f"add({i.name}, {one})")
        body.root([step, *(self.matching(body, c) for c in carried[1:])])
        inside = self.done(body, "body")
        start, whole = self.texts.name("t"), self.texts.name("w")
        shapes = self.tupled(carried)
        self.lines.append(f"  {start} = {shapes} tuple({', '.join(c.name for c in carried)})")
        self.lines.append(f"  {whole} = {shapes} while({start}), condition={condition}, body={inside}")
        return self.taken(whole, carried)

    def branch(self, v: Value):
        results = [self.any() for _ in range(self.random.randint(1, 2))]
        count = self.random.randint(2, 3)
        names, operands = [], []
        for _ in range(count):
            given = [*results, *(self.any() for _ in range(self.random.randint(0, 2)))]
            self.random.shuffle(given)
            body, _ = self.inner(given)
            body.grow(self.random.randint(0, 4))
            body.root([self.matching(body, r) for r in results])
            names.append(self.done(body, "branch"))
            operands.append(self.texts.name("t"))
            self.lines.append(f"  {operands[-1]} = {self.tupled(given)} tuple({', '.join(g.name for g in given)})")
        whole = self.texts.name("c")
        test = [w for w in self.values if w.dtype == "pred" and w.dims == ()]
        if count == 2 and test:
            call = f"conditional({self.random.choice(test).name}, {', '.join(operands)}), "
            call += f"true_computation={names[0]}, false_computation={names[1]}"
        else:
            call = f"conditional({self.index()}, {', '.join(operands)}), branch_computations={{{', '.join(names)}}}"
        self.lines.append(f"  {whole} = {self.tupled(results)} {call}")
        return self.taken(whole, results)
