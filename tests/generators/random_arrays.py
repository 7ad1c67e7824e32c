"""Ops of random_wide.py that move, index, reduce or multiply arrays, with all their attributes."""

from __future__ import annotations

import math

from .random_movement import Value, listed
from .random_texts import FOLDS, Body

INDICES = ("s32", "s32", "s64", "u8", "u32", "s8", "s16", "u64")
PAIRED = {"c64": "f32", "c128": "f64"}


class Arrays(Body):
    """A computation under construction."""

    def folds(self, v: Value) -> list[str]:
        """Ops that may reduce values of v's type in any order."""
        if v.kind == "f" and self.exact and v.dtype not in ("f32", "f64"):
            return ["maximum", "minimum"]
        return FOLDS[v.kind].split()

    def mixes(self, v: Value) -> list[str]:
        return ["add", "subtract", "maximum", "minimum"] if v.kind == "f" else super().mixes(v)

    def sums(self, v: Value) -> bool:
        """Whether sums of products of v's elements are equal, or almost equal, in every order."""
        return (
            v.kind == "i" or v.dtype in ("f32", "f64") or (not self.exact and v.dtype in ("bf16", "f16", "c64", "c128"))
        )

    def exactly(self, dtype: str, dims) -> Value:
        return self.like(Value("", dtype, tuple(dims)))

    # movement

    def spread(self, v: Value):
        """A broadcast that inserts dimensions anywhere, with the operand's dimensions in any order."""
        rank = len(v.dims) + self.random.randint(0, max(0, min(3, 8 - len(v.dims))))
        at = self.random.sample(range(rank), len(v.dims))
        dims = [self.random.choice((1, 2, 3, 0 if self.random.random() < 0.1 else 2)) for _ in range(rank)]
        for d, n in zip(at, v.dims):
            dims[d] = n
        if math.prod(dims) > 3000:
            return None
        return self.add(v.dtype, dims, f"broadcast({v.name}), dimensions={{{listed(at)}}}")

    broadcast = spread

    def refactor(self, v: Value):
        """A reshape that splits, merges and moves dimensions, and adds and drops those of size 1."""
        dims = list(v.dims)
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(dims))
            choice = self.random.random()
            if choice < 0.35 and len(dims) < 8:
                dims.insert(at, 1)
            elif choice < 0.65 and at + 1 < len(dims):
                dims[at : at + 2] = [dims[at] * dims[at + 1]]
            elif at < len(dims) and len(dims) < 8:
                factors = [f for f in (2, 3, 4, 5) if dims[at] % f == 0]
                if factors:
                    f = self.random.choice(factors)
                    dims[at : at + 1] = [f, dims[at] // f]
            elif at < len(dims) and dims[at] == 1:
                del dims[at]
        op = "reshape"
        return self.add(v.dtype, dims, f"{op}({v.name})")

    def permute(self, v: Value):
        """A transpose of high rank between reshapes."""
        return self.transpose(self.refactor(v))

    def many(self, v: Value):
        """A concatenate of many parts, some of them empty or repeated."""
        if not v.dims or math.prod(v.dims) > 300:
            return None
        axis = self.random.randrange(len(v.dims))
        fit = [w for w in self.values if w.dtype == v.dtype and len(w.dims) == len(v.dims)]
        fit = [w for w in fit if all(a == b for d, (a, b) in enumerate(zip(w.dims, v.dims)) if d != axis)]
        parts = [self.random.choice(fit) for _ in range(self.random.randint(1, 6))]
        dims = [sum(p.dims[axis] for p in parts) if d == axis else n for d, n in enumerate(v.dims)]
        return self.add(v.dtype, dims, f"concatenate({', '.join(p.name for p in parts)}), dimensions={{{axis}}}")

    def constant_array(self, v: Value):
        """A literal; sometimes all elements are equal."""
        size = math.prod(v.dims)
        if size > 40:
            return None
        one = self.literal(v.dtype)
        flat = iter([one if self.random.random() < 0.3 else self.literal(v.dtype) for _ in range(size)])

        def nested(dims) -> str:
            return next(flat) if not dims else "{" + ", ".join(nested(dims[1:]) for _ in range(dims[0])) + "}"

        return self.add(v.dtype, v.dims, f"constant({nested(v.dims)})")

    # indices

    def far(self, dtype: str) -> str:
        """An index, often out of range."""
        width = int(dtype[1:])
        least, most = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if dtype[0] == "s" else (0, 2**width - 1)
        fit = [w.name for w in self.values if (w.dtype, w.dims) == (dtype, ())]
        if fit and self.random.random() < 0.4:
            return self.random.choice(fit)
        near = max(least, min(most, self.random.randint(-2, 5)))
        return self.constant(dtype, str(self.random.choice((near, near, near, least, most))))

    def start(self, v: Value):
        """dynamic-slice and dynamic-update-slice with indices of any type, in range and not."""
        if not v.dims:
            return None
        of = self.random.choice(INDICES)
        sizes = [self.random.randint(min(1, n), n) for n in v.dims]
        starts = ", ".join(self.far(of) for _ in v.dims)
        if self.random.random() < 0.5:
            return self.add(
                v.dtype, sizes, f"dynamic-slice({v.name}, {starts}), dynamic_slice_sizes={{{listed(sizes)}}}"
            )
        return self.add(
            v.dtype, v.dims, f"dynamic-update-slice({v.name}, {self.exactly(v.dtype, sizes).name}, {starts})"
        )

    def update_rows(self, v: Value):
        """A chain of updates of one array, which can run in place."""
        for _ in range(self.random.randint(2, 3)):
            if not v.dims:
                return None
            sizes = [min(1, v.dims[0]), *v.dims[1:]]
            starts = ", ".join([self.far("s32"), *(self.constant("s32", "0") for _ in v.dims[1:])])
            row = self.exactly(v.dtype, sizes)
            v = self.add(v.dtype, v.dims, f"dynamic-update-slice({v.name}, {row.name}, {starts})")
        return v

    def numbers(self, v: Value):
        """Random dimension numbers of a gather or scatter: (slice sizes, mapped and collapsed dimensions, positions of
        the window, dimensions of the indices, position of the index vector, dimensions of the result).
        """
        draw, rank = self.random, len(v.dims)
        order = draw.sample(range(rank), rank)
        mapped = order[: draw.randint(0, min(rank, 2))]
        alone = sorted(draw.sample(range(rank), draw.randint(0, min(rank, 2))))
        sizes = [min(1, n) if d in alone else draw.randint(min(1, n), n) for d, n in enumerate(v.dims)]
        batch = [draw.choice((1, 2, 3, 4)) for _ in range(draw.randint(0, 2))]
        window = rank - len(alone)
        places = sorted(draw.sample(range(len(batch) + window), window))
        vector = draw.randint(0, len(batch))
        if len(mapped) == 1 and draw.random() < 0.5:
            vector, dims = len(batch), batch
        else:
            dims = [*batch[:vector], len(mapped), *batch[vector:]]
        inner, outer = iter([n for d, n in enumerate(sizes) if d not in alone]), iter(batch)
        combined = [next(inner) if d in places else next(outer) for d in range(len(batch) + window)]
        return sizes, mapped, alone, places, dims, vector, combined

    def gather(self, v: Value):
        sizes, mapped, alone, places, dims, vector, combined = self.numbers(v)
        if math.prod(combined) > 2000 or len(combined) > 8:
            return None
        indices = self.exactly(self.random.choice(INDICES), dims)
        rule = f"offset_dims={{{listed(places)}}}, collapsed_slice_dims={{{listed(alone)}}}, "
        rule += f"start_index_map={{{listed(mapped)}}}, index_vector_dim={vector}, slice_sizes={{{listed(sizes)}}}"
        return self.add(v.dtype, combined, f"gather({v.name}, {indices.name}), {rule}")

    def scatter(self, v: Value):
        _, mapped, alone, places, dims, vector, combined = self.numbers(v)
        if math.prod(combined) > 500 or len(combined) > 8:
            return None
        indices, updates = self.exactly(self.random.choice(INDICES), dims), self.exactly(v.dtype, combined)
        op = self.random.choice([*(self.folds(v) if v.kind != "c" or not self.exact else ["add"]), "put", "keep"])
        rule = f"update_window_dims={{{listed(places)}}}, inserted_window_dims={{{listed(alone)}}}, "
        rule += f"scatter_dims_to_operand_dims={{{listed(mapped)}}}, index_vector_dim={vector}, "
        rule += f"to_apply={self.texts.region(op, v.dtype)}"
        made = self.add(v.dtype, v.dims, f"scatter({v.name}, {indices.name}, {updates.name}), {rule}")
        return self.kept(made)

    # windows

    def spatial(self, n: int) -> tuple[dict[str, str], int]:
        """One dimension of a window over n elements, and the number of positions of the window."""
        draw = self.random
        size, stride, holes, dilation = (
            draw.randint(1, 3),
            draw.randint(1, 2),
            draw.choice((1, 1, 2)),
            draw.choice((1, 1, 2)),
        )
        low, high, reach = draw.randint(-1, 2), draw.randint(-1, 2), (size - 1) * dilation + 1
        padded = (n - 1) * holes + 1 + low + high if n else low + high
        count = 0 if padded < reach else (padded - reach) // stride + 1
        parts = {"size": size, "stride": stride, "pad": f"{low}_{high}", "lhs_dilate": holes, "rhs_dilate": dilation}
        return {**parts, "rhs_reversal": draw.randint(0, 1)}, count

    def text_of(self, parts: list[dict], *leave_out: str) -> str:
        return " ".join(f"{k}={'x'.join(str(p[k]) for p in parts)}" for k in parts[0] if k not in leave_out)

    def window(self, v: Value):
        if not v.dims or math.prod(v.dims) > 500:
            return None
        parts, dims = zip(*(self.spatial(n) for n in v.dims))
        if math.prod(dims) > 1500:
            return None
        op = self.random.choice(self.folds(v))
        call = f"reduce-window({v.name}, {self.zero(v.dtype, op)}), window={{{self.text_of(parts)}}}, "
        return self.kept(self.add(v.dtype, dims, call + f"to_apply={self.texts.region(op, v.dtype)}"))

    def select_scatter(self, v: Value):
        if not v.dims or v.kind not in "fi" or math.prod(v.dims) > 300 or not math.prod(v.dims) or not self.sums(v):
            return None
        parts, dims = zip(*(self.spatial(n) for n in v.dims))
        for p, n in zip(parts, v.dims):
            p.update(lhs_dilate=1, rhs_dilate=1, rhs_reversal=0, size=min(p["size"], n), pad="0_0")
        dims = [(n - p["size"]) // p["stride"] + 1 for p, n in zip(parts, v.dims)]
        source, by = self.exactly(v.dtype, dims), f"ge_{v.dtype}"
        self.texts.computations.setdefault(
            by, f"{by} {{\n  a = {v.dtype}[] parameter(0)\n  b = {v.dtype}[] parameter(1)\n"
                f"  ROOT r = pred[] compare(a, b), direction=GE\n}}")  # fmt: skip
        how = self.text_of(parts, "lhs_dilate", "rhs_dilate", "rhs_reversal")
        call = f"select-and-scatter({v.name}, {source.name}, {self.zero(v.dtype)}), window={{{how}}}, select={by}, "
        return self.kept(self.add(v.dtype, v.dims, call + f"scatter={self.texts.region('add', v.dtype)}"))

    def any_convolution(self, v: Value):
        """Any number of spatial dimensions, labels in any order, groups, dilations, reversal."""
        draw, count = self.random, len(v.dims) - 2
        if not 0 <= count <= 3 or not self.sums(v) or math.prod(v.dims) > 600 or not math.prod(v.dims):
            return None
        labels = ["b", "f", *map(str, range(count))]
        left = draw.sample(labels, len(labels))
        sizes = dict(zip(left, v.dims))
        parts, counts = zip(*(self.spatial(sizes[str(n)]) for n in range(count))) if count else ((), ())
        groups = draw.choice([g for g in (1, 1, 2, 3) if sizes["f"] % g == 0])
        batches = draw.choice([g for g in (1, 1, 2, 3) if sizes["b"] % g == 0]) if groups == 1 else 1
        outs = draw.choice((1, 2, 3)) * groups * batches
        inner = {"i": sizes["f"] // groups, "o": outs, **{str(n): p["size"] for n, p in enumerate(parts)}}
        outer = {"b": sizes["b"] // batches, "f": outs, **{str(n): c for n, c in enumerate(counts)}}
        right, result = draw.sample(list(inner), len(inner)), draw.sample(list(outer), len(outer))
        kernel = self.exactly(v.dtype, [inner[c] for c in right])
        dims = [outer[c] for c in result]
        if math.prod(dims) > 2000:
            return None
        window = f"window={{{self.text_of(parts)}}}, " if count else ""
        how = f"{window}dim_labels={''.join(left)}_{''.join(right)}->{''.join(result)}, "
        how += f"feature_group_count={groups}, batch_group_count={batches}"
        return self.after(self.add(v.dtype, dims, f"convolution({v.name}, {kernel.name}), {how}"))

    # products

    def after(self, v: Value) -> Value:
        """A value for the elementwise epilogue of a product."""
        v = self.small_complex(v) if v.kind == "c" else self.kept(v)
        for _ in range(self.random.randint(0, 2)):
            v = self.random.choice((self.binary, self.unary, self.choose))(v)
        return v

    def batched_dot(self, v: Value):
        """A dot with batch and contracting dimensions at any positions."""
        draw, rank = self.random, len(v.dims)
        if not self.sums(v) or rank > 5 or math.prod(v.dims) > 1500:
            return None
        order = draw.sample(range(rank), rank)
        batch = order[: draw.randint(0, min(2, rank))]
        contract = order[len(batch) : len(batch) + draw.randint(0, 2)]
        free = [draw.choice((1, 2, 3, 5)) for _ in range(draw.randint(0, 2))]
        roles = [
            *(("b", n) for n in range(len(batch))),
            *(("c", n) for n in range(len(contract))),
            *(("f", n) for n in range(len(free))),
        ]
        draw.shuffle(roles)
        size = {"b": [v.dims[d] for d in batch], "c": [v.dims[d] for d in contract], "f": free}
        w = self.exactly(v.dtype, [size[kind][n] for kind, n in roles])
        at = {role: d for d, role in enumerate(roles)}
        names = [f"lhs_batch_dims={{{listed(batch)}}}", f"lhs_contracting_dims={{{listed(contract)}}}",
                 f"rhs_batch_dims={{{listed(at['b', n] for n in range(len(batch)))}}}",
                 f"rhs_contracting_dims={{{listed(at['c', n] for n in range(len(contract)))}}}"]  # fmt: skip
        left = [n for d, n in enumerate(v.dims) if d not in batch and d not in contract]
        dims = [*size["b"], *left, *(free[n] for kind, n in roles if kind == "f")]
        if math.prod(dims) > 3000:
            return None
        return self.after(self.add(v.dtype, dims, f"dot({v.name}, {w.name}), {', '.join(names)}"))

    def ragged(self, v: Value):
        if len(v.dims) != 2 or not self.sums(v) or v.kind == "c" or not math.prod(v.dims):
            return None
        groups, out = self.random.randint(1, 3), self.random.choice((1, 4))
        w = self.exactly(v.dtype, (groups, v.dims[1], out))
        sizes = self.add("s32", (groups,), f"constant({{{listed([1] * groups)}}})")
        how = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
        return self.after(self.add(v.dtype, (v.dims[0], out), f"ragged-dot({v.name}, {w.name}, {sizes.name}), {how}"))

    def batch_norm(self, v: Value):
        if self.exact or v.dtype not in ("f32", "f64") or not v.dims or not math.prod(v.dims):
            return None
        axis, v = self.random.randrange(len(v.dims)), self.kept(v)
        one, kind = (v.dims[axis],), self.random.choice(("inference", "training", "grad"))
        scale, offset, mean = (self.kept(self.exactly(v.dtype, one)) for _ in range(3))
        spread = self.add(v.dtype, one, f"exponential({self.kept(mean).name})")
        rest = f"epsilon=0.5, feature_index={axis}"
        if kind == "inference":
            names = f"{v.name}, {scale.name}, {offset.name}, {mean.name}, {spread.name}"
            return self.kept(self.add(v.dtype, v.dims, f"batch-norm-inference({names}), {rest}"))
        names = f"{v.name}, {scale.name}, {offset.name}"
        if kind == "grad":
            names = f"{v.name}, {scale.name}, {mean.name}, {spread.name}, {self.kept(self.like(v)).name}"
        whole, a = self.texts.name("t"), self.new(v.dtype, v.dims, False)
        b, c = (self.new(v.dtype, one, False) for _ in range(2))
        self.lines.append(f"  {whole} = ({a.shape}, {b.shape}, {c.shape}) batch-norm-{kind}({names}), {rest}")
        for n, part in enumerate((b, c)):
            self.kept(self.put(part, f"get-tuple-element({whole}), index={n + 1}"))
        return self.kept(self.put(a, f"get-tuple-element({whole}), index=0"))

    def scaled(self, v: Value):
        """A product whose operands are scaled by blocks."""
        if v.dtype not in ("f32", "bf16", "f16") or len(v.dims) != 2 or not math.prod(v.dims) or (
                self.exact and v.dtype != "f32"):  # fmt: skip
            return None
        (rows, inner), out = v.dims, self.random.choice((1, 3))
        blocks = [self.random.choice([b for b in (1, 2, 4) if inner % b == 0]) for _ in range(2)]
        x, y = self.kept(v), self.kept(self.exactly(v.dtype, (inner, out)))
        a = self.kept(self.exactly(v.dtype, (rows, inner // blocks[0])))
        b = self.kept(self.exactly(v.dtype, (inner // blocks[1], out)))
        names = ", ".join(w.name for w in (x, y, a, b))
        how = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        return self.kept(self.add(v.dtype, (rows, out), f"scaled-dot({names}), {how}"))

    def bitcast(self, v: Value):
        """The same bytes with another shape."""
        made = self.refactor(v)
        return self.add(v.dtype, made.dims, f"bitcast({v.name})")

    def fft(self, v: Value):
        if self.exact or v.dtype not in (*PAIRED, "f32") or not v.dims or not math.prod(v.dims):
            return None
        n = v.dims[-1]
        if v.kind == "c":
            kind = self.random.choice(("FFT", "IFFT"))
            return self.small_complex(self.add(v.dtype, v.dims, f"fft({v.name}), fft_type={kind}, fft_length={{{n}}}"))
        dims = (*v.dims[:-1], n // 2 + 1)
        return self.small_complex(self.add("c64", dims, f"fft({v.name}), fft_type=RFFT, fft_length={{{n}}}"))

    def solve(self, v: Value):
        """A cholesky of a well-conditioned matrix, and a triangular solve with the result."""
        if self.exact or v.dtype not in ("f32", "f64"):
            return None
        n = self.random.randint(1, 4)
        small = self.kept(self.exactly(v.dtype, (n, n)))
        square = self.add(
            v.dtype, (n, n), f"dot({small.name}, {small.name}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"
        )
        row, column = (self.add("s32", (n, n), f"iota(), iota_dimension={d}") for d in (0, 1))
        same = self.add("pred", (n, n), f"compare({row.name}, {column.name}), direction=EQ")
        eye = self.add(v.dtype, (n, n), f"convert({same.name})")
        whole = self.add(v.dtype, (n, n), f"add({square.name}, {eye.name})")
        lower = self.random.choice(("true", "false"))
        factor = self.add(v.dtype, (n, n), f"cholesky({whole.name}), lower={lower}")
        b = self.kept(self.exactly(v.dtype, (n, 2)))
        call = f"triangular-solve({factor.name}, {b.name}), left_side=true, lower={lower}, unit_diagonal=false, "
        return self.kept(
            self.add(v.dtype, (n, 2), call + f"transpose_a={self.random.choice(('NO_TRANSPOSE', 'TRANSPOSE'))}")
        )

    # order

    def topk(self, v: Value):
        if not v.dims or v.kind not in "fi" or (v.kind == "f" and not self.exact) or not math.prod(v.dims):
            return None
        v, k = self.without_nan(v), self.random.randint(1, v.dims[-1])
        return self.pair(
            v.dtype, "s32", (*v.dims[:-1], k), f"topk({v.name}), k={k}, largest={self.random.choice(('true', 'false'))}"
        )

    def sorted(self, v: Value):
        """A stable sort of several arrays by one of them, ascending or descending."""
        if not v.dims or v.kind not in "fi" or (v.kind == "f" and not self.exact):
            return None
        other, axis, which = (
            self.random.choice([v, *(w for w in self.values if w.dims == v.dims)]),
            self.random.randrange(len(v.dims)),
            self.random.choice(("LT", "GT")),
        )
        kind = ", type=TOTALORDER" if v.kind == "f" and v.dtype in ("f32", "f64", "f16", "bf16") else ""
        if v.kind == "f" and not kind:
            return None
        name = f"order_{v.dtype}_{other.dtype}_{which}"
        self.texts.computations.setdefault(
            name, f"{name} {{\n  a = {v.dtype}[] parameter(0)\n  b = {v.dtype}[] parameter(1)\n  i = {other.dtype}[] "
                  f"parameter(2)\n  j = {other.dtype}[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction="
                  f"{which}{kind}\n}}")  # fmt: skip
        pair = (self.without_nan(v), other)
        plain = [self.put(Value(self.texts.name("v"), w.dtype, w.dims), f"copy({w.name})") for w in pair]
        call = f"sort({plain[0].name}, {plain[1].name}), dimensions={{{axis}}}, is_stable=true, to_apply={name}"
        return self.pair(v.dtype, other.dtype, v.dims, call)

    def map(self, v: Value):
        if v.kind == "p" or math.prod(v.dims) > 400:
            return None
        name, t = f"map_{v.dtype}", v.dtype
        op = "add" if v.kind == "c" else "maximum"
        self.texts.computations.setdefault(
            name, f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  c = {t}[] {op}(a, b)\n"
                  f"  ROOT r = {t}[] subtract(c, b)\n}}")  # fmt: skip
        dims = listed(range(len(v.dims)))
        made = self.add(v.dtype, v.dims, f"map({v.name}, {self.like(v).name}), dimensions={{{dims}}}, to_apply={name}")
        return self.kept(made)

    def scan(self, v: Value):
        """Cumulative sums along the first dimension, in order."""
        if not v.dims or v.kind == "p" or v.dims[0] > 20 or not self.sums(v):
            return None
        row = ",".join(map(str, v.dims[1:]))
        name, t = f"row_{v.dtype}_{row.replace(',', '_')}", f"{v.dtype}[{row}]"
        self.texts.computations.setdefault(
            name, f"{name} {{\n  x = {t} parameter(0)\n  c = {t} parameter(1)\n  s = {t} subtract(c, x)\n"
                  f"  ROOT t = ({t}, {t}) tuple(c, s)\n}}")  # fmt: skip
        init = self.exactly(v.dtype, v.dims[1:])
        plain = [self.put(Value(self.texts.name("v"), w.dtype, w.dims), f"copy({w.name})") for w in (v, init)]
        whole, back = self.texts.name("t"), self.random.choice(("true", "false"))
        a, b = Value(self.texts.name("v"), v.dtype, v.dims), Value(self.texts.name("v"), v.dtype, v.dims[1:])
        how = f"dimensions={{0}}, num_carries=1, is_reverse={back}, to_apply={name}"
        self.lines.append(f"  {whole} = ({a.shape}, {b.shape}) scan({plain[0].name}, {plain[1].name}), {how}")
        self.put(b, f"get-tuple-element({whole}), index=1")
        made = self.put(a, f"get-tuple-element({whole}), index=0")
        return self.small_complex(made) if v.kind == "c" else self.kept(made)
