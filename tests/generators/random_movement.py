"""Ops of random_texts.py that move and index arrays, and the values that they use."""

from __future__ import annotations

import math
from dataclasses import dataclass

DIMS = ((), (1,), (5,), (16,), (4, 3), (3, 17), (2, 3, 4), (0, 3), (8, 1, 2), (1, 33), (2, 1, 3, 1, 2, 1, 1, 2))


@dataclass(frozen=True)
class Value:
    """A name with its type, dimensions and layout (minor to major; None for row-major)."""

    name: str
    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...] | None = None

    @property
    def shape(self) -> str:
        order = "" if self.order is None else "{" + ",".join(map(str, self.order)) + "}"
        return f"{self.dtype}[{listed(self.dims)}]{order}"

    @property
    def kind(self) -> str:
        return "p" if self.dtype == "pred" else {"f": "f", "b": "f", "s": "i", "u": "i", "c": "c"}[self.dtype[0]]


def listed(numbers) -> str:
    return ",".join(map(str, numbers))


class Movement:
    """A part of the computation under construction (`random_texts.Body`)."""

    def transpose(self, v: Value):
        order = self.random.sample(range(len(v.dims)), len(v.dims))
        return self.add(v.dtype, [v.dims[d] for d in order], f"transpose({v.name}), dimensions={{{listed(order)}}}")

    def reshape(self, v: Value):
        size = math.prod(v.dims)
        ways = [(size,), (1, size), (size, 1), *(d for d in DIMS if math.prod(d) == size)]
        ways += [(n, size // n) for n in (2, 3, 4) if size and size % n == 0]
        return self.add(v.dtype, self.random.choice(ways), f"reshape({v.name})")

    def reverse(self, v: Value):
        dims = self.random.sample(range(len(v.dims)), self.random.randint(0, len(v.dims)))
        return self.add(v.dtype, v.dims, f"reverse({v.name}), dimensions={{{listed(sorted(dims))}}}")

    def slice(self, v: Value):
        parts, dims = [], []
        for n in v.dims:
            start = self.random.randint(0, max(n - 1, 0))
            stop, step = self.random.randint(start, n), self.random.randint(1, 2)
            parts.append(f"[{start}:{stop}:{step}]")
            dims.append(-(-(stop - start) // step))
        return self.add(v.dtype, dims, f"slice({v.name}), slice={{{', '.join(parts)}}}") if v.dims else None

    def pad(self, v: Value):
        parts, dims = [], []
        for n in v.dims:
            low, high, inner = self.random.randint(-1, 2), self.random.randint(0, 2), self.random.choice((0, 0, 1))
            made = low + high + n + max(n - 1, 0) * inner
            if made < 0 or made > 64:
                low, high, inner, made = 0, 0, 0, n
            parts.append(f"{low}_{high}_{inner}")
            dims.append(made)
        call = f"pad({v.name}, {self.scalar(v.dtype)}), padding={'x'.join(parts)}"
        return self.add(v.dtype, dims, call) if v.dims and math.prod(dims) < 3000 else None

    def concatenate(self, v: Value):
        if not v.dims or math.prod(v.dims) > 1000:
            return None
        axis = self.random.randrange(len(v.dims))
        fit = [w for w in self.values if w.dtype == v.dtype and len(w.dims) == len(v.dims)]
        fit = [w for w in fit if all(a == b for d, (a, b) in enumerate(zip(w.dims, v.dims)) if d != axis)]
        parts = [v, *(self.random.choice(fit) for _ in range(self.random.randint(1, 2)))]
        dims = [sum(p.dims[axis] for p in parts) if d == axis else n for d, n in enumerate(v.dims)]
        return self.add(v.dtype, dims, f"concatenate({', '.join(p.name for p in parts)}), dimensions={{{axis}}}")

    def index(self, dims=()) -> str:
        fit = [w for w in self.values if w.dtype == "s32" and w.dims == tuple(dims)]
        if fit and self.random.random() < 0.7:
            return self.random.choice(fit).name
        if dims:
            return self.add("s32", dims, f"iota(), iota_dimension={self.random.randrange(len(dims))}").name
        return self.constant("s32", str(self.random.randint(-1, 4)))

    def dynamic(self, v: Value):
        if not v.dims:
            return None
        sizes = [self.random.randint(0 if self.random.random() < 0.1 else min(1, n), n) for n in v.dims]
        starts = ", ".join(self.index() for _ in v.dims)
        call = f"dynamic-slice({v.name}, {starts}), dynamic_slice_sizes={{{listed(sizes)}}}"
        piece = self.add(v.dtype, sizes, call)
        if self.random.random() < 0.4:
            return piece
        if self.random.random() < 0.6:
            made = self.unary(piece)
            piece = made if made.dtype == v.dtype else piece
        if self.random.random() < 0.5:
            starts = ", ".join(self.index() for _ in v.dims)
        return self.add(v.dtype, v.dims, f"dynamic-update-slice({self.like(v).name}, {piece.name}, {starts})")

    def gather(self, v: Value):
        if not v.dims or not v.dims[0] or math.prod(v.dims) > 500:
            return None
        count, rest = self.random.choice((1, 4, 5)), v.dims[1:]
        rule = f"offset_dims={{{listed(range(1, len(v.dims)))}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
        rule += f"index_vector_dim=1, slice_sizes={{{listed((1, *rest))}}}"
        return self.add(v.dtype, (count, *rest), f"gather({v.name}, {self.index((count,))}), {rule}")

    def scatter(self, v: Value):
        if not v.dims or v.kind == "c":
            return None
        count, rest, op = self.random.choice((1, 4, 5)), v.dims[1:], self.random.choice(self.folds(v))
        updates = self.like(Value("", v.dtype, (count, *rest)))
        rule = f"update_window_dims={{{listed(range(1, len(v.dims)))}}}, inserted_window_dims={{0}}, "
        rule += f"scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={self.texts.region(op, v.dtype)}"
        return self.add(v.dtype, v.dims, f"scatter({v.name}, {self.index((count,))}, {updates.name}), {rule}")
