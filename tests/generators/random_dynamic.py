"""Random modules of ops on arrays with dynamic dimensions. Each op may change, merge, split or set sizes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from ..cases.dynamic_templates import REGIONS

Dim = tuple[int, bool]  # bound, dynamic
Value = tuple[str, list[Dim]]
LARGEST = 14


def shape(dims: list[Dim], dtype: str = "f32") -> str:
    return f"{dtype}[{','.join(f'<={n}' if dynamic else str(n) for n, dynamic in dims)}]"


def braces(values: Iterable[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


class RandomDynamic:
    """text: a module whose parameters have the shapes `parameters` and whose results are its last values."""

    def __init__(self, choices: random.Random, steps: int = 10):
        """choices: Hypothesis shrinks them (support/choices.py)."""
        self.random = choices
        self.lines: list[str] = []
        self.values: list[Value] = []
        draw = self.random
        first = [(draw.choice([3, 4]), draw.random() < 0.7) for _ in range(draw.choice([1, 2, 2]))]
        second = [(n, dynamic or draw.random() < 0.5) for n, dynamic in first]
        self.parameters = [first, second]
        for k, dims in enumerate(self.parameters):
            self.keep(dims, f"parameter({k})")
        for _ in range(steps):
            x, dims = draw.choice(self.values[-4:])
            draw.choice(STEPS)(self, x, dims)
        results = self.values[-3:]
        kinds, names = ", ".join(shape(d) for _, d in results), ", ".join(n for n, _ in results)
        body = "\n".join([*self.lines, f"ROOT out = ({kinds}) tuple({names})"])
        self.text = f"{REGIONS}ENTRY e {{\n{body}\n}}\n"

    def add(self, kind: str, line: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {kind} {line}")
        return name

    def keep(self, dims: list[Dim], line: str) -> None:
        if all(0 < n <= LARGEST for n, _ in dims) and len(dims) < 4:
            self.values.append((self.add(shape(dims), line), dims))

    def scalar(self, value: int, dtype: str = "s32") -> str:
        return self.add(f"{dtype}[]", f"constant({value})")

    def place(self, dims: list[Dim]) -> int:
        return self.random.randrange(len(dims))

    def other(self, fits: Callable[[list[Dim]], bool]) -> Value:
        return self.random.choice([v for v in self.values if fits(v[1])])


def elementwise(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    y, other = g.other(lambda d: [n for n, _ in d] == [n for n, _ in dims])
    joined = [(n, a or b) for (n, a), (_, b) in zip(dims, other, strict=True)]
    g.keep(joined, f"{g.random.choice(['add', 'maximum', 'subtract'])}({x}, {y})")


def transpose(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    order = g.random.sample(range(len(dims)), len(dims))
    g.keep([dims[d] for d in order], f"transpose({x}), dimensions={braces(order)}")


def reverse(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    g.keep(dims, f"reverse({x}), dimensions={braces([d for d in range(len(dims)) if g.random.random() < 0.5])}")


def slice_(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    taken = []
    for n, _ in dims:
        start = g.random.randrange(n) if g.random.random() < 0.5 else 0
        taken.append((start, g.random.randrange(start, n) + 1 if start else n, g.random.choice([1, 1, 2])))
    kept = [(-(-(limit - start) // step), f) for (start, limit, step), (_, f) in zip(taken, dims, strict=True)]
    ranges = ", ".join(f"[{start}:{limit}:{step}]" for start, limit, step in taken)
    g.keep(kept, f"slice({x}), slice={{{ranges}}}")


def pad(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    rows = [(g.random.randrange(2), g.random.randrange(3), g.random.choice([0, 0, 1])) for _ in dims]
    grown = [(n + low + high + (n - 1) * holes, f) for (n, f), (low, high, holes) in zip(dims, rows, strict=True)]
    if dims:
        g.keep(grown, f"pad({x}, {g.scalar(3, 'f32')}), padding={'x'.join('_'.join(map(str, r)) for r in rows)}")


def reduce(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    gone = [d for d in range(len(dims)) if g.random.random() < 0.4]
    start, region = g.scalar(g.random.choice([0, 2]), "f32"), g.random.choice(["add", "top", "odd"])
    left = [n for d, n in enumerate(dims) if d not in gone]
    g.keep(left, f"reduce({x}, {start}), dimensions={braces(gone)}, to_apply={region}")


def broadcast(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    at = g.random.randrange(len(dims) + 1)
    places = [d for d in range(len(dims) + 1) if d != at]
    wide = [*dims[:at], (g.random.choice([1, 2, 3]), False), *dims[at:]]
    g.keep(wide, f"broadcast({x}), dimensions={braces(places)}")


def concatenate(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    if dims:
        d = g.place(dims)
        rest = [n for k, (n, _) in enumerate(dims) if k != d]
        y, other = g.other(lambda o: len(o) == len(dims) and [n for k, (n, _) in enumerate(o) if k != d] == rest)
        pairs = enumerate(zip(dims, other, strict=True))
        joined = [(n + m if k == d else n, a or b) for k, ((n, a), (m, b)) in pairs]
        g.keep(joined, f"concatenate({x}, {y}), dimensions={{{d}}}")


def sort(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    if dims:
        g.keep(dims, f"sort({x}), dimensions={{{g.place(dims)}}}, is_stable=true, to_apply=less")


def reshape(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    if len(dims) > 1:
        d = g.random.randrange(len(dims) - 1)
        (n, a), (m, b) = dims[d : d + 2]
        g.keep([*dims[:d], (n * m, a or b), *dims[d + 2 :]], f"reshape({x})")


def dot(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    if dims:
        d = g.place(dims)
        y, other = g.other(lambda o: any(n == dims[d][0] for n, _ in o))
        e = next(k for k, (n, _) in enumerate(other) if n == dims[d][0])
        free = [n for k, n in enumerate(dims) if k != d] + [n for k, n in enumerate(other) if k != e]
        g.keep(free, f"dot({x}, {y}), lhs_contracting_dims={{{d}}}, rhs_contracting_dims={{{e}}}")


def reduce_window(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    choose = g.random.choice
    rows = [(choose([1, 2]) if n > 1 else 1, choose([1, 2]), *choose([(0, 0), (1, 0), (1, 1)])) for n, _ in dims]
    made = [((n + low + high - w) // s + 1, f) for (n, f), (w, s, low, high) in zip(dims, rows, strict=True)]
    sizes, strides = ("x".join(str(r[k]) for r in rows) for k in (0, 1))
    pads = "x".join(f"{low}_{high}" for _, _, low, high in rows)
    if dims:
        window = f"window={{size={sizes} stride={strides} pad={pads}}}, to_apply={choose(['add', 'top', 'odd'])}"
        g.keep(made, f"reduce-window({x}, {g.scalar(1, 'f32')}), {window}")


def gather(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    if len(dims) == 2:
        rows = g.add("s32[3]", f"constant({{0,{dims[0][0] - 1},1}})")
        numbers = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
        g.keep([(3, False), dims[1]], f"gather({x}, {rows}), {numbers}, slice_sizes={{1,{dims[1][0]}}}")


def update(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    if dims and not any(f for _, f in dims):
        fits = [v for v in g.values if len(v[1]) == len(dims) and all(a[0] <= b[0] for a, b in zip(v[1], dims))]
        starts = ", ".join(g.scalar(g.random.choice([0, 1, 3])) for _ in dims)
        g.keep(dims, f"dynamic-update-slice({x}, {g.random.choice(fits)[0]}, {starts})")


def dynamic_slice(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    taken = [n if g.random.random() < 0.5 else max(n // 2, 1) for n, _ in dims]
    starts = ", ".join(g.scalar(g.random.choice([0, 1, 5])) for _ in dims)
    if dims:
        kept = [(n, f) for n, (_, f) in zip(taken, dims, strict=True)]
        g.keep(kept, f"dynamic-slice({x}, {starts}), dynamic_slice_sizes={braces(taken)}")


def set_size(g: RandomDynamic, x: str, dims: list[Dim]) -> None:
    if dims:
        d = g.place(dims)
        size = g.scalar(g.random.randrange(dims[d][0] + 1))
        made = [(n, f or k == d) for k, (n, f) in enumerate(dims)]
        g.keep(made, f"set-dimension-size({x}, {size}), dimensions={{{d}}}")


STEPS = (
    elementwise, elementwise, transpose, reverse, slice_, pad, reduce, broadcast, concatenate, sort, reshape, dot,
    reduce_window, gather, update, dynamic_slice, set_size,
)  # fmt: skip
