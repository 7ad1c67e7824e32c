"""Programs of one kernel with several results, whose operands die there: the Plan may let results take over operands.

Values are small integers, so that every order of additions gives the same bits.
"""

from __future__ import annotations

from random import Random

TYPES = ("f32", "f32", "c64", "s32", "f64")
SIZES = (1, 2, 3, 4, 8, 17)
LARGEST_DEPTH = 3


class InPlaceKernels:
    """Draws the text of a scheduled module: temporaries, a fusion that reads them, and its results as the root."""

    def __init__(self, random: Random):
        self.random = random
        self.dtype = random.choice(TYPES)
        self.dims = (random.choice((1, 1, 2)), random.choice(SIZES), random.choice(SIZES))
        self.shape = self.array(self.dims)
        self.body: list[str] = []
        self.operands: list[tuple[str, str]] = []
        self.made: list[str] = []
        self.temporaries = [self.operand(self.shape) for _ in range(random.choice((1, 2, 2, 3)))]

    def array(self, dims: tuple[int, ...]) -> str:
        layout = "{" + ",".join(str(d) for d in reversed(range(len(dims)))) + "}"
        return f"{self.dtype}[{','.join(map(str, dims))}]{layout}"

    def text(self, *, fused: bool = True) -> str:
        """fused: False leaves it to the passes what is a kernel."""
        shape, root = self.random.choice(
            (self.results, self.results, self.results, self.sort, self.update, self.scatter)
        )()
        zero = f"  zero = {self.dtype}[] constant({'(0, 0)' if self.dtype == 'c64' else 0})"
        numbered = list(enumerate(s for _, s in self.operands))
        given = [f"  p{n} = {s} parameter({n})" for n, s in numbered]
        head = self.computations()
        if not fused:
            dying = [f"  q{n} = {s} add(p{n}, p{n})" for n, s in numbered]
            lines = [*given, *dying, zero, *self.body, f"  ROOT r = {shape} {root}"]
            return "\n".join(["HloModule m", *head, "ENTRY e {", *lines, "}", ""])
        inside = [f"  q{n} = {s} parameter({n})" for n, s in numbered]
        dying = [f"  t{n} = {s} add(p{n}, p{n})" for n, s in numbered]
        names = ", ".join(f"t{n}" for n, _ in numbered)
        fusion = ["fused {", *inside, zero, *self.body, f"  ROOT r = {shape} {root}", "}"]
        call = f"  ROOT f = {shape} fusion({names}), kind=kLoop, calls=fused"
        return "\n".join(["HloModule m, is_scheduled=true", *head, *fusion, "ENTRY e {", *given, *dying, call, "}", ""])

    def computations(self) -> list[str]:
        two = [f"  {n} = {self.dtype}[] parameter({k})" for k, n in enumerate("ab")]
        found = ["plus {", *two, f"  ROOT r = {self.dtype}[] add(a, b)", "}"]
        for keys in (1, 2, 3):
            sides = [f"  {n} = {self.dtype}[] parameter({k})" for k, n in enumerate("abcdef"[: 2 * keys])]
            real = [f"  {n}{n} = f32[] real({n})" for n in "ab"] if self.dtype == "c64" else []
            left, right = ("aa", "bb") if real else "ab"
            compare = f"  ROOT r = pred[] compare({left}, {right}), direction=LT"
            found += [f"less{keys} {{", *sides, *real, compare, "}"]
        return found

    def results(self) -> tuple[str, str]:
        """Several results of one shape."""
        ends = [self.value(LARGEST_DEPTH) for _ in range(self.random.choice((1, 2, 2, 3, 4)))]
        ends = [e if e.startswith("v") else self.emit(self.shape, f"negate({e})") for e in ends]
        return f"({', '.join(self.shape for _ in ends)})", f"tuple({', '.join(ends)})"

    def sort(self) -> tuple[str, str]:
        """Operands that are sorted together, stably, so that equal keys keep their order."""
        count, d = self.random.choice((1, 2, 3)), self.random.randrange(3)
        ends = [self.value(self.random.choice((0, 1, 2))) for _ in range(count)]
        shape = self.shape if count == 1 else f"({', '.join(self.shape for _ in ends)})"
        return shape, f"sort({', '.join(ends)}), dimensions={{{d}}}, is_stable=true, to_apply=less{count}"

    def update(self) -> tuple[str, str]:
        """A part of a temporary that is written over, perhaps with what is computed from the same part."""
        dims = tuple(self.random.randint(1, size) for size in self.dims)
        starts = [self.random.randint(0, size - part) for size, part in zip(self.dims, dims, strict=True)]
        places = [self.index(f"constant({start})") for start in starts]
        target, shape, at = self.leaf(), self.array(dims), ", ".join(places)
        part = self.emit(
            shape, f"dynamic-slice({self.leaf()}, {at}), dynamic_slice_sizes={{{','.join(map(str, dims))}}}"
        )
        if self.random.random() < 0.5:
            other = self.random.choice((part, self.source(dims)))
            part = self.emit(shape, f"subtract({part}, {other})")
        return self.shape, f"dynamic-update-slice({target}, {part}, {at})"

    def scatter(self) -> tuple[str, str]:
        """Rows that are added to a temporary at constant places."""
        b, m, n = self.dims
        count = self.random.choice((1, 2, 5))
        rows = ", ".join(str(self.random.randrange(m)) for _ in range(count))
        places = self.emit(f"s32[{count}]", f"constant({{{rows}}})")
        updates = self.source((count, b, n))
        numbers = "update_window_dims={1,2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}"
        target = self.value(self.random.choice((0, 0, 1)))
        return self.shape, f"scatter({target}, {places}, {updates}), {numbers}, index_vector_dim=1, to_apply=plus"

    def index(self, call: str) -> str:
        return self.emit("s32[]", call)

    def operand(self, shape: str) -> str:
        self.operands.append((f"q{len(self.operands)}", shape))
        return self.operands[-1][0]

    def emit(self, shape: str, call: str) -> str:
        """The name of a new instruction."""
        name = f"v{len(self.body)}"
        self.body.append(f"  {name} = {shape} {call}")
        if shape == self.shape:
            self.made.append(name)
        return name

    def leaf(self) -> str:
        return self.random.choice(self.temporaries)

    def value(self, depth: int) -> str:
        """A value of the results' shape."""
        random = self.random
        if depth == 0 or random.random() < 0.15:
            return self.leaf()
        if self.made and random.random() < 0.15:
            return random.choice(self.made)
        if random.random() < 0.55:
            op = random.choice(("add", "subtract", "add", "negate"))
            count = 1 if op == "negate" else 2
            return self.emit(self.shape, f"{op}({', '.join(self.value(depth - 1) for _ in range(count))})")
        kinds = (self.dot, self.convolution, self.reduce, self.rows, self.moved, self.parts, self.window)
        return random.choice(kinds)()

    def source(self, dims: tuple[int, ...]) -> str:
        """An operand of the dimensions; a temporary that results may take over, where one fits."""
        if dims == self.dims and self.random.random() < 0.7:
            return self.leaf()
        shape = self.array(dims)
        fitting = [name for name, s in self.operands if s == shape]
        return self.random.choice(fitting) if fitting and self.random.random() < 0.6 else self.operand(shape)

    def dot(self) -> str:
        b, m, n = self.dims
        k = self.random.choice((n, m, 3))
        left, right = self.source((b, m, k)), self.source((b, k, n))
        dims = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
        return self.emit(self.shape, f"dot({left}, {right}), {dims}")

    def convolution(self) -> str:
        b, m, n = self.dims
        k, size = self.random.choice((n, 2)), self.random.choice((1, 1, 3))
        window = "{size=1}" if size == 1 else "{size=3 pad=1_1}"
        labels = self.random.choice(("b0f_0io->b0f", "bf0_oi0->bf0"))
        if labels.startswith("b0f"):
            left, right = self.source((b, m, k)), self.source((size, k, n))
        else:
            left, right = self.source((b, k, n)), self.source((m, k, size))
        return self.emit(self.shape, f"convolution({left}, {right}), window={window}, dim_labels={labels}")

    def reduce(self) -> str:
        """A sum that leaves the results' shape."""
        place, length = self.random.randrange(4), self.random.choice((2, 3, 17))
        dims = (*self.dims[:place], length, *self.dims[place:])
        return self.emit(self.shape, f"reduce({self.source(dims)}, zero), dimensions={{{place}}}, to_apply=plus")

    def rows(self) -> str:
        """A sum over one dimension, spread over it again."""
        d = self.random.choice((0, 1, 2, 2, 2))
        kept = [k for k in range(3) if k != d]
        inner = self.value(1) if self.random.random() < 0.5 else self.leaf()
        shape = self.array(tuple(self.dims[k] for k in kept))
        total = self.emit(shape, f"reduce({inner}, zero), dimensions={{{d}}}, to_apply=plus")
        return self.emit(self.shape, f"broadcast({total}), dimensions={{{kept[0]},{kept[1]}}}")

    def moved(self) -> str:
        b, m, n = self.dims
        kind = self.random.choice(("reverse", "transpose", "bitcast", "reshape"))
        if kind == "reverse":
            return self.emit(self.shape, f"reverse({self.leaf()}), dimensions={{{self.random.randrange(3)}}}")
        if kind == "transpose":
            return self.emit(self.shape, f"transpose({self.source((b, n, m))}), dimensions={{0,2,1}}")
        if kind == "bitcast":
            return self.emit(self.shape, f"bitcast({self.source((b * m * n,))})")
        return self.emit(self.shape, f"reshape({self.source((n, b, m))})")

    def parts(self) -> str:
        d = self.random.randrange(3)
        size = self.dims[d]
        if size == 1:
            return self.leaf()
        cut = self.random.randrange(1, size)
        pieces = []
        spans = self.random.choice((((0, cut), (cut, size)), ((cut, size), (0, cut))))
        for start, end in spans:
            bounds = ", ".join(f"[{start}:{end}]" if k == d else f"[0:{s}]" for k, s in enumerate(self.dims))
            dims = tuple(end - start if k == d else s for k, s in enumerate(self.dims))
            pieces.append(self.emit(self.array(dims), f"slice({self.leaf()}), slice={{{bounds}}}"))
        if self.random.random() < 0.5:
            return self.emit(self.shape, f"concatenate({', '.join(pieces)}), dimensions={{{d}}}")
        more = size - (spans[0][1] - spans[0][0])
        low = self.random.choice((0, more))
        padding = "x".join(f"{low}_{more - low}" if k == d else "0_0" for k in range(3))
        return self.emit(self.shape, f"pad({pieces[0]}, zero), padding={padding}")

    def window(self) -> str:
        d = self.random.randrange(3)
        sizes = "x".join("3" if k == d else "1" for k in range(3))
        pads = "x".join("1_1" if k == d else "0_0" for k in range(3))
        call = f"reduce-window({self.leaf()}, zero), window={{size={sizes} pad={pads}}}, to_apply=plus"
        return self.emit(self.shape, call)
