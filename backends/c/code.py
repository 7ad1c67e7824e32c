"""C text with scopes: each value is declared in the outermost scope in which all that it depends on is known.

So what depends on outer loops only is computed outside the inner ones, and nothing is computed twice in a scope.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Scope:
    """The lines of a block. barrier: nothing that is computed inside may move out, because it may not be executed."""

    parent: Scope | None = None
    barrier: bool = False
    lines: list[str] = field(default_factory=list)
    memo: dict[Hashable, Any] = field(default_factory=dict)

    def encloses(self, other: Scope) -> bool:
        scope: Scope | None = other
        while scope is not None and scope is not self:
            scope = scope.parent
        return scope is self


@dataclass(frozen=True, slots=True)
class Var:
    """A C expression without side effects that is valid in a scope and in those inside it: a name or a constant."""

    text: str
    scope: Scope = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text


Place = Var | int
"""A position or an offset; an int if it is known."""


class Code:
    """One function. root: the scope of its body."""

    def __init__(self) -> None:
        self.root = self.scope = Scope()
        self._count = 0

    def name(self, stem: str = "v") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def line(self, text: str) -> None:
        self.scope.lines.append(text)

    def constant(self, text: str) -> Var:
        return Var(text, self.root)

    def local(self, name: str) -> Var:
        """A variable that changes in the current scope: what depends on it stays here."""
        return Var(name, self.scope)

    # -- scopes --------------------------------------------------------------------------------------------------------
    def home(self, values: Sequence[Var | int]) -> Scope:
        """The outermost scope in which a value that depends on these may be computed."""
        scopes = [v.scope for v in values if isinstance(v, Var)]
        scope = self.scope
        while scope.parent is not None and not scope.barrier and all(s is not scope for s in scopes):
            scope = scope.parent
        return scope

    def known(self, key: Hashable) -> Any:
        scope: Scope | None = self.scope
        while scope is not None:
            if key in scope.memo:
                return scope.memo[key]
            scope = scope.parent
        return None

    @contextmanager
    def within(self, scope: Scope) -> Iterator[None]:
        """Lines go to another scope, which encloses the current one."""
        before, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = before

    @contextmanager
    def block(self, head: str, barrier: bool = False) -> Iterator[Scope]:
        """A block `head { … }` in the current scope."""
        outer = self.scope
        self.scope = inner = Scope(outer, barrier)
        try:
            yield inner
        finally:
            self.scope = outer
        outer.lines += [f"{head} {{", *("  " + line for line in inner.lines), "}"]

    @contextmanager
    def loop(self, start: Place, end: Place, step: int = 1, barrier: bool = False) -> Iterator[Var]:
        """A loop over [start, end). barrier: it may have no iteration."""
        name = self.name("i")
        more = f"{name}++" if step == 1 else f"{name} += {step}"
        with self.block(f"for (int64_t {name} = {start}; {name} < {end}; {more})", barrier) as inner:
            yield Var(name, inner)

    @contextmanager
    def span(self, count: int) -> Iterator[Place]:
        """A loop over [0, count); none for one iteration."""
        if count == 1:
            yield 0
        else:
            with self.loop(0, count) as index:
                yield index

    # -- values --------------------------------------------------------------------------------------------------------
    def declare(self, type_: str, expression: str, *needs: Var | int) -> Var:
        """The value of an expression over `needs`, computed once."""
        key = (type_, expression)
        found = self.known(key)
        if found is not None:
            return found
        home = self.home(needs)
        var = Var(self.name(), home)
        home.lines.append(f"const {type_} {var} = {expression};")
        home.memo[key] = var
        return var

    def variable(self, type_: str, expression: str | None = None) -> str:
        """A new variable in the current scope that may be assigned to."""
        name = self.name("a")
        self.line(f"{type_} {name};" if expression is None else f"{type_} {name} = {expression};")
        return name

    # -- positions -----------------------------------------------------------------------------------------------------
    def add(self, a: Place, b: Place) -> Place:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.declare("int64_t", f"{a} + {_signed(b)}", a, b)

    def subtract(self, a: Place, b: Place) -> Place:
        if isinstance(b, int):
            return self.add(a, -b)
        return self.declare("int64_t", f"{a} - {b}", a, b)

    def multiply(self, a: Place, b: int) -> Place:
        if isinstance(a, int):
            return a * b
        if b in (0, 1):
            return a if b else 0
        return self.declare("int64_t", f"{a} * {_signed(b)}", a)

    def divide(self, a: Place, b: int) -> Place:
        """a // b for a ≥ 0."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self.declare("int64_t", f"{a} / {b}", a)

    def remainder(self, a: Place, b: int) -> Place:
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else self.declare("int64_t", f"{a} % {b}", a)

    def clamp(self, a: Place, most: int) -> Place:
        """A position within [0, most]."""
        if most <= 0:
            return 0
        if isinstance(a, int):
            return min(max(a, 0), most)
        return self.declare("int64_t", f"{a} < 0 ? 0 : {a} > {most} ? {most} : {a}", a)

    def weighted(self, positions: Sequence[Place], weights: Sequence[int]) -> Place:
        total: Place = 0
        for position, weight in zip(positions, weights, strict=True):
            total = self.add(total, self.multiply(position, weight))
        return total

    def split(self, place: Place, dims: Sequence[int], order: Sequence[int]) -> list[Place]:
        """Positions along each dimension of the element at a place, the first dimension of `order` fastest."""
        positions: list[Place] = [0] * len(dims)
        for number, d in enumerate(order):
            if all(dims[k] == 1 for k in order[number + 1 :]):
                positions[d] = place
                break
            positions[d] = self.remainder(place, dims[d])
            place = self.divide(place, dims[d])
        return positions


def _signed(value: Place) -> str:
    return f"({value})" if isinstance(value, int) and value < 0 else str(value)
