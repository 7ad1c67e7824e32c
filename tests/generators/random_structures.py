"""Control structures of random_wide.py: calls, fusions, many forms of loops and branches, barriers, control order."""

from __future__ import annotations

from .random_movement import Value
from .random_texts import Body

COUNTERS = ("s32", "s32", "s64", "u8", "u32", "s8", "s16", "u64")


class Structures(Body):
    """A computation under construction."""

    def exact_shape(self, shape: Value) -> Value:
        """A value of this type, dimensions and layout."""
        fit = [w for w in self.values if w.shape == shape.shape]
        if fit and self.random.random() < 0.7:
            return self.random.choice(fit)
        made = Value(self.texts.name("v"), shape.dtype, shape.dims, shape.order)
        return self.put(made, f"copy({self.like(shape).name})")

    def plain(self, given: list[Value], size: int, depth: int) -> tuple[Body, list[Value]]:
        """A computation of arrays, and its results."""
        body = self.texts.body(depth)
        for n, g in enumerate(given):
            body.put(Value(self.texts.name("v"), g.dtype, g.dims, g.order), f"parameter({n})")
        body.grow(size)
        return body, [body.any() for _ in range(self.random.randint(1, 3))]

    def made(self, stem: str, size: int, depth: int) -> tuple[str, list[Value], list[Value]]:
        given = [self.any() for _ in range(self.random.randint(1, 3))]
        body, results = self.plain(given, size, depth)
        if len(results) == 1:
            last = Value(self.texts.name("v"), results[0].dtype, results[0].dims, results[0].order)
            body.lines.append(f"  ROOT {last.name} = {last.shape} copy({results[0].name})")
        else:
            body.root(results)
        return self.done(body, stem), given, results

    def used(self, call: str, results: list[Value], tail: str) -> Value:
        if len(results) == 1:
            made = Value(self.texts.name("v"), results[0].dtype, results[0].dims, results[0].order)
            return self.put(made, f"{call}{tail}")
        whole = self.texts.name("t")
        self.lines.append(f"  {whole} = {self.tupled(results)} {call}{tail}")
        return self.taken(whole, results)

    def call(self, v: Value):
        """A call of a new computation, or of one that has other callers."""
        shared = self.texts.shared
        if shared and self.random.random() < 0.5:
            name, given, results = self.random.choice(shared)
            operands = [self.exact_shape(g) for g in given]
        else:
            name, operands, results = self.made("callee", self.random.randint(1, 4), 0)
            shared.append((name, operands, results))
        return self.used(f"call({', '.join(o.name for o in operands)})", results, f", to_apply={name}")

    def fusion(self, v: Value):
        name, operands, results = self.made("fused", self.random.randint(1, 5), 0)
        kind = self.random.choice(("kLoop", "kLoop", "kInput", "kOutput", "kCustom"))
        return self.used(f"fusion({', '.join(o.name for o in operands)})", results, f", kind={kind}, calls={name}")

    def barrier(self, v: Value):
        values = [v, *(self.any() for _ in range(self.random.randint(0, 2)))]
        start, whole, shapes = self.texts.name("t"), self.texts.name("t"), self.tupled(values)
        self.lines.append(f"  {start} = {shapes} tuple({', '.join(w.name for w in values)})")
        self.lines.append(f"  {whole} = {shapes} opt-barrier({start})")
        return self.taken(whole, values)

    def tied(self, v: Value):
        """A copy that depends on another value only through a control dependency."""
        made = Value(self.texts.name("v"), v.dtype, v.dims, v.order)
        return self.put(made, f"{self.random.choice(('copy', 'negate' if v.kind in 'fic' else 'not'))}({v.name}), "
                              f"control-predecessors={{{self.any().name}}}")  # fmt: skip

    def annotate(self, v: Value):
        made = Value(self.texts.name("v"), v.dtype, v.dims, v.order)
        effect = ", custom_call_has_side_effect=true" if self.random.random() < 0.3 else ""
        target = self.random.choice(("Sharding", "annotate_device_placement", "LayoutConstraint"))
        return self.put(made, f'custom-call({v.name}), custom_call_target="{target}"{effect}')

    def asynchronous(self, v: Value):
        """An asynchronous pair, or an op that waits for a token."""
        start, made = self.texts.name("t"), Value(self.texts.name("v"), v.dtype, v.dims, v.order)
        kind = self.random.choice(("copy", "call", "token", "gather", "permute"))
        if kind == "copy":
            self.lines.append(f"  {start} = ({v.shape}, {v.shape}, u32[]) copy-start({v.name})")
            return self.put(made, f"copy-done({start})")
        if kind == "token":
            self.lines.append(f"  {start} = token[] after-all()")
            return self.put(made, f"add-dependency({v.name}, {start})")
        if kind == "call":
            body = self.texts.body(0)
            body.put(Value(self.texts.name("v"), v.dtype, v.dims, v.order), "parameter(0)")
            body.grow(self.random.randint(0, 2))
            last = body.exact_shape(v)
            body.lines.append(f"  ROOT {self.texts.name('v')} = {last.shape} copy({last.name})")
            wrapped = self.done(body, "wrapped")
            self.lines.append(f"  {start} = (({v.shape}), {v.shape}) async-start({v.name}), calls={wrapped}")
            return self.put(made, f"async-done({start})")
        if kind == "gather" and v.dims:
            how = "all-gather-start", f"dimensions={{{self.random.randrange(len(v.dims))}}}, replica_groups={{{{0}}}}"
        else:
            how = "collective-permute-start", "source_target_pairs={{0,0}}"
        self.lines.append(f"  {start} = ({v.shape}, {v.shape}) {how[0]}({v.name}), {how[1]}")
        return self.put(made, f"{how[0].replace('start', 'done')}({start})")

    def collective(self, v: Value):
        """A collective on one device."""
        made = Value(self.texts.name("v"), v.dtype, v.dims, v.order)
        axis = f"dimensions={{{self.random.randrange(len(v.dims))}}}" if v.dims else ""
        region = "" if v.kind == "p" else f"to_apply={self.texts.region('add', v.dtype)}"
        calls = ["collective-permute(X), source_target_pairs={{0,0}}", "collective-broadcast(X), replica_groups={{0}}"]
        calls += [f"all-gather(X), {axis}", f"all-to-all(X), {axis}"] if axis else []
        calls += [f"all-reduce(X), replica_groups={{}}, {region}"] * 2 if region else []
        calls += [f"reduce-scatter(X), {axis}, {region}"] if axis and region else []
        return self.put(made, self.random.choice(calls).replace("X", v.name))

    def device(self, v: Value):
        """Values that the compiler knows: the number of the device, and the size of a dimension."""
        if v.dims and self.random.random() < 0.6:
            axis = self.random.randrange(len(v.dims))
            return self.add("s32", (), f"get-dimension-size({v.name}), dimensions={{{axis}}}")
        return self.add("u32", (), f"{self.random.choice(('partition-id', 'replica-id'))}()")

    def domain(self, v: Value):
        made = Value(self.texts.name("v"), v.dtype, v.dims, v.order)
        ends = "entry={maximal device=0}, exit={maximal device=1}"
        return self.put(made, f'domain({v.name}), domain={{kind="sharding", {ends}}}')

    def random_bits(self, v: Value):
        algorithm, words = self.random.choice((("rng_three_fry", 2), ("rng_philox", 3), ("rng_default", 3)))
        state = self.texts.name("k")
        numbers = ", ".join(str(self.random.choice((0, 1, 7, 2**64 - 1))) for _ in range(words))
        self.lines.append(f"  {state} = u64[{words}] constant({{{numbers}}})")
        whole, bits = (
            self.texts.name("t"),
            Value(self.texts.name("v"), self.random.choice(("u8", "u32", "u64", "s32")), v.dims),
        )
        self.lines.append(f"  {whole} = (u64[{words}], {bits.shape}) rng-bit-generator({state}), algorithm={algorithm}")
        return self.put(bits, f"get-tuple-element({whole}), index=1")

    def any_loop(self, v: Value):
        """A loop with any counter, counting up or down, which may also end by its data. Its state may be nested."""
        draw, kind = self.random, self.random.choice(COUNTERS)
        step, trips = draw.randint(1, 3), draw.randint(0, 5)
        down = draw.random() < 0.4
        low = draw.randint(0, 2)
        first, last = (low + step * trips, low) if down else (low, low + step * trips - draw.randint(0, step - 1))
        last = max(last, 0)
        counter = self.put(Value(self.texts.name("v"), kind, ()), f"constant({first})")
        carried = [counter, *(self.any() for _ in range(draw.randint(0, 4)))]
        nested = draw.random() < 0.3 and len(carried) > 2
        state = f"({counter.shape}, {self.tupled(carried[1:])})" if nested else self.tupled(carried)
        test, leaves = self.opened(carried, state, nested)
        limit = test.constant(kind, str(last))
        sides = (leaves[0].name, limit, "GT" if down else "LT")
        sides = sides if draw.random() < 0.7 else (sides[1], sides[0], "LT" if down else "GT")
        if draw.random() < 0.15:
            sides = (leaves[0].name, limit, "NE") if (first - last) % step == 0 else sides
        truth = test.put(
            Value(self.texts.name("v"), "pred", ()), f"compare({sides[0]}, {sides[1]}), direction={sides[2]}"
        )
        if draw.random() < 0.3 and self.exact:
            test.grow(draw.randint(1, 3))
            flags = [w for w in test.values if (w.dtype, w.dims) == ("pred", ())]
            truth = test.put(Value(self.texts.name("v"), "pred", ()), f"and({truth.name}, {draw.choice(flags).name})")
        test.lines.append(f"  ROOT {self.texts.name('v')} = pred[] copy({truth.name})")
        body, (i, *_) = self.opened(carried, state, nested)
        body.grow(draw.randint(0, 6))
        by = body.constant(kind, str(step))
        new = body.put(Value(self.texts.name("v"), kind, ()), f"{'subtract' if down else 'add'}({i.name}, {by})")
        results = [body.matching(body, c) for c in carried[1:]]
        self.closed(body, [new, *results], state, nested)
        called = f"condition={self.done(test, 'condition')}, body={self.done(body, 'body')}"
        start = self.closed(self, carried, state, nested, root=False)
        whole = self.texts.name("w")
        self.lines.append(f"  {whole} = {state} while({start}), {called}")
        return self.unpacked(self, whole, carried, nested)[-1]

    def opened(self, carried: list[Value], state: str, nested: bool) -> tuple[Body, list[Value]]:
        body = self.texts.body(self.depth - 1)
        body.lines.append(f"  p = {state} parameter(0)")
        return body, self.unpacked(body, "p", carried, nested)

    def unpacked(self, body: Body, whole: str, carried: list[Value], nested: bool) -> list[Value]:
        """The leaves of a loop's state."""
        inner, found = whole, []
        if nested:
            inner = self.texts.name("t")
            body.lines.append(f"  {inner} = {self.tupled(carried[1:])} get-tuple-element({whole}), index=1")
        for n, c in enumerate(carried):
            leaf = Value(self.texts.name("v"), c.dtype, c.dims, c.order)
            source, index = (inner, n - 1) if nested and n else (whole, n)
            found.append(body.put(leaf, f"get-tuple-element({source}), index={index}"))
        return found

    def closed(self, body: Body, leaves: list[Value], state: str, nested: bool, root: bool = True) -> str:
        """A loop's state, packed from its leaves."""
        name, mark, values = self.texts.name("t"), "ROOT " if root else "", [w.name for w in leaves]
        if nested:
            inner = self.texts.name("t")
            body.lines.append(f"  {inner} = {self.tupled(leaves[1:])} tuple({', '.join(values[1:])})")
            values = [values[0], inner]
        body.lines.append(f"  {mark}{name} = {state} tuple({', '.join(values)})")
        return name

    def nested_branch(self, v: Value):
        """A conditional on arrays rather than tuples. Its branches may be the same computation."""
        results = [self.any()]
        names, operands = [], []
        for _ in range(self.random.randint(2, 3)):
            if names and self.random.random() < 0.3:
                names.append(names[-1])
                operands.append(operands[-1])
                continue
            given = self.random.choice((results[0], self.any()))
            body = self.texts.body(self.depth - 1)
            body.put(Value(self.texts.name("v"), given.dtype, given.dims, given.order), "parameter(0)")
            body.grow(self.random.randint(0, 4))
            last = body.exact_shape(results[0])
            body.lines.append(f"  ROOT {self.texts.name('v')} = {last.shape} copy({last.name})")
            names.append(self.done(body, "branch"))
            operands.append(given.name)
        call = f"conditional({self.index()}, {', '.join(operands)}), branch_computations={{{', '.join(names)}}}"
        return self.put(Value(self.texts.name("v"), results[0].dtype, results[0].dims, results[0].order), call)
