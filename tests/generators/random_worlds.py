"""Random modules with side effects: outfeeds, infeeds, custom calls and generator states among pure ops, ordered by
tokens and control dependencies, in calls, loops and branches. No pass may remove or reorder the effects.
"""

from __future__ import annotations

import random

STATE = "(f32[4], token[])"
LOOP = "(s32[], f32[4], token[])"


class World:
    """Generates a module's text from choices, which Hypothesis shrinks (support/choices.py). Effects are named act,
    out, in, rng; pure instructions with control dependencies are named pin.
    """

    def __init__(self, choices: random.Random, size: int = 7, depth: int = 2):
        self.random, self.number, self.computations = choices, 0, []
        lines = ["x = f32[4] parameter(0)", "p = pred[] parameter(1)", "t = token[] after-all()"]
        body = _Body(self, lines, ["x"], "t")
        body.grow(size, depth)
        body.lines.append(f"ROOT r = (f32[4], f32[4]) tuple({body.values[-1]}, {body.value()})")
        entry = "ENTRY main {\n" + "\n".join(body.lines) + "\n}\n"
        self.text = "HloModule world\n" + "".join(self.computations) + entry

    def fresh(self, stem: str) -> str:
        self.number += 1
        return f"{stem}{self.number}"

    def computation(self, stem: str, shape: str, size: int, depth: int, counter: bool = False) -> str:
        """A computation from a state to a state; with a counter, the body of a loop."""
        name, first = self.fresh(stem), int(counter)
        s = f"s.{name}"
        lines = [
            f"{s} = {shape} parameter(0)",
            f"x.{name} = f32[4] get-tuple-element({s}), index={first}",
            f"t.{name} = token[] get-tuple-element({s}), index={first + 1}",
        ]
        body = _Body(self, lines, [f"x.{name}"], f"t.{name}")
        body.grow(size, depth)
        state = f"{body.values[-1]}, {body.token}"
        if counter:
            body.lines += [
                f"i.{name} = s32[] get-tuple-element({s}), index=0",
                f"one.{name} = s32[] constant(1)",
                f"j.{name} = s32[] add(i.{name}, one.{name})",
            ]
            state = f"j.{name}, {state}"
        body.lines.append(f"ROOT r.{name} = {shape} tuple({state})")
        self.computations.append(f"{name} {{\n" + "\n".join(body.lines) + "\n}\n")
        return name


class _Body:
    """One computation under construction: its values and its newest token."""

    def __init__(self, world: World, lines: list[str], values: list[str], token: str):
        self.world, self.random, self.lines, self.values, self.token = world, world.random, lines, values, token
        self.names: list[str] = []

    def value(self) -> str:
        return self.random.choice(self.values[-4:])

    def add(self, stem: str, line: str, *, tied: float = 0.4) -> str:
        """An instruction, sometimes with control predecessors."""
        name = self.world.fresh(stem)
        before = self.random.sample(self.names, min(len(self.names), self.random.randint(1, 2)))
        tail = f", control-predecessors={{{', '.join(before)}}}" if before and self.random.random() < tied else ""
        self.lines.append(f"{name} = {line.replace('$', name)}{tail}")
        self.names.append(name)
        return name

    def grow(self, size: int, depth: int) -> None:
        kinds = [self.act, self.act, self.outfeed, self.infeed, self.state, self.pure, self.pure]
        kinds += [self.twins, self.undone]
        for _ in range(size):
            kind = self.random.choice(kinds + ([self.loop, self.branch, self.call] if depth else []))
            kind(depth) if kind in (self.loop, self.branch, self.call) else kind()

    def act(self) -> None:
        line = f'f32[4] custom-call({self.value()}), custom_call_target="$", custom_call_has_side_effect=true'
        name = self.add("act", line)
        if self.random.random() < 0.5:
            self.values.append(name)

    def outfeed(self) -> None:
        self.token = self.add("out", f"token[] outfeed({self.value()}, {self.token}), outfeed_shape=f32[4]")

    def infeed(self) -> None:
        name = self.add("in", f"(f32[4], token[]) infeed({self.token})")
        self.values.append(self.add("v", f"f32[4] get-tuple-element({name}), index=0", tied=0))
        self.token = self.add("t", f"token[] get-tuple-element({name}), index=1", tied=0)

    def state(self) -> None:
        name = self.add("rng", f"u64[2] rng-get-and-update-state(), delta={self.random.randint(1, 9)}")
        halves = self.add("f", f"f32[2] convert({name})", tied=0)
        part = self.add("f", f"f32[1] slice({halves}), slice={{[1:2]}}", tied=0)
        one = self.add("f", f"f32[] reshape({part})", tied=0)
        self.values.append(self.add("v", f"f32[4] broadcast({one}), dimensions={{}}", tied=0))

    def pure(self) -> None:
        op = self.random.choice(("tanh", "negate", "abs"))
        self.values.append(self.add("pin", f"f32[4] {op}({self.value()})"))

    def twins(self) -> None:
        """Two equal instructions."""
        x = self.value()
        pair = [self.add("pin", f"f32[4] sine({x})") for _ in range(2)]
        self.values.append(self.add("v", f"f32[4] add({pair[0]}, {pair[1]})", tied=0))

    def undone(self) -> None:
        """An instruction that an algebraic rule removes."""
        inner = self.add("pin", f"f32[4] negate({self.value()})", tied=0.2)
        self.values.append(self.add("pin", f"f32[4] negate({inner})", tied=0.2))

    def _take(self, name: str, first: int = 0) -> None:
        self.values.append(self.add("v", f"f32[4] get-tuple-element({name}), index={first}", tied=0))
        self.token = self.add("t", f"token[] get-tuple-element({name}), index={first + 1}", tied=0)

    def _state(self) -> str:
        return self.add("s", f"{STATE} tuple({self.value()}, {self.token})", tied=0)

    def call(self, depth: int) -> None:
        callee = self.world.computation("callee", STATE, self.random.randint(1, 4), depth - 1)
        self._take(self.add("call", f"{STATE} call({self._state()}), to_apply={callee}"))

    def branch(self, depth: int) -> None:
        made = [self.world.computation("branch", STATE, self.random.randint(0, 3), depth - 1) for _ in range(2)]
        test = self.add("test", f"pred[] constant({self.random.choice(('true', 'false'))})", tied=0)
        state = self._state()
        called = f"true_computation={made[0]}, false_computation={made[1]}"
        line = f"{STATE} conditional({test}, {state}, {state}), {called}"
        self._take(self.add("cond", line))

    def loop(self, depth: int) -> None:
        trips = self.random.randint(0, 5)
        body = self.world.computation("body", LOOP, self.random.randint(1, 4), depth - 1, counter=True)
        test = self.world.fresh("test")
        self.world.computations.append(
            f"{test} {{\ns.{test} = {LOOP} parameter(0)\n"
            f"i.{test} = s32[] get-tuple-element(s.{test}), index=0\nn.{test} = s32[] constant({trips})\n"
            f"ROOT l.{test} = pred[] compare(i.{test}, n.{test}), direction=LT\n}}\n"
        )
        zero = self.add("zero", "s32[] constant(0)", tied=0)
        start = self.add("s", f"{LOOP} tuple({zero}, {self.value()}, {self.token})", tied=0)
        self._take(self.add("loop", f"{LOOP} while({start}), condition={test}, body={body}"), 1)
