"""Index arithmetic that folds constants while it is built, and scopes in which equal expressions are created once.

Python integers represent index constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from mlir import ir

from ...hlo.records import dataclass, replace
from .arithmetic import Arithmetic, Value


@dataclass(frozen=True, slots=True)
class Axis:
    """The position along a loop of a linalg.generic, in its body: `start` + `step` · the loop's counter.

    number: of the loop, the outermost first; count: of its iterations. limits: what positions lie in, the first and the
    end, where start and count do not say it.
    """

    start: Index
    step: int
    number: int
    count: Index
    limits: tuple[int, int] | None = None

    def moved(self, start: Index, distance: Index) -> Axis:
        """With another start, `distance` after this one."""
        if self.limits is None or not isinstance(distance, int):
            return replace(self, start=start, limits=None)
        return replace(self, start=start, limits=(self.limits[0] + distance, self.limits[1] + distance))


Index: TypeAlias = int | Value | Axis
"""A coordinate or offset: a constant, an i64 value, or a position along an axis."""


def limits_of(i: Index) -> tuple[int, int] | None:
    """What a position lies in, the first and the end; None if that is not known."""
    if isinstance(i, int):
        return i, i + 1
    if not isinstance(i, Axis):
        return None
    if i.limits is None and isinstance(i.start, int) and isinstance(i.count, int):
        last = i.start + i.step * (i.count - 1)
        return min(i.start, last), max(i.start, last) + 1
    return i.limits


class IndexArithmetic(Arithmetic):
    """Creates operations at `ip`; equal index arithmetic once per scope."""

    def materialize(self, a: Index) -> Value:
        if isinstance(a, Axis):
            return self._counted(a)
        return self.constant(a, self.types.i64) if isinstance(a, int) else a

    def _counted(self, a: Axis) -> Value:
        """A position along an axis as a value."""
        number = ir.IntegerAttr.get(self.types.i64, a.number)

        def make() -> Value:
            counter = self.op("linalg.index", type=self.types.index, attributes={"dim": number})
            return self.op("arith.index_cast", counter, type=self.types.i64)

        return self.materialize(self.add(self.mul(self.once(("axis", a.number), make), a.step), a.start))

    def _index_op(self, name: str, a: Index, b: Index, attributes: dict[str, ir.Attribute] | None = None) -> Index:
        if isinstance(a, Axis) or isinstance(b, Axis):
            moved = self._along(name, a, b)
            if moved is not None:
                return moved
        key = (name, a, b)
        return self.once(key, lambda: self.op(name, self.materialize(a), self.materialize(b), attributes=attributes))

    def _along(self, name: str, a: Index, b: Index) -> Axis | None:
        """The sum, difference or product as a position along an axis, if it is one."""
        if name == "arith.subi" and isinstance(a, int) and isinstance(b, Axis):
            return replace(b, start=self._outside(self.sub, a, b.start), step=-b.step, limits=None)
        if not isinstance(a, Axis) or isinstance(b, Axis) or not (self.outside is None or isinstance(b, int)):
            return None
        if name == "arith.muli" and isinstance(b, int):
            return replace(a, start=self._outside(self.mul, a.start, b), step=a.step * b, limits=None)
        if name == "arith.addi":
            return a.moved(self._outside(self.add, a.start, b), b)
        return None

    def _outside(self, operation: Callable[[Index, Index], Index], a: Index, b: Index) -> Index:
        """The start of an axis, computed before the operation whose body is being built: operands begin there."""
        if self.outside is None:
            return operation(a, b)
        inside = self.ip, self.scopes
        self.ip, self.scopes = self.outside[0], self.scopes[: self.outside[1]]
        try:
            return operation(a, b)
        finally:
            self.ip, self.scopes = inside

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int):
            if isinstance(a, int):
                return a + b
            if b == 0:
                return a
        return self._index_op("arith.addi", a, b, self.types.no_wrap)

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(b, int):
            return self.add(a, -b)
        return self._index_op("arith.subi", a, b, self.types.no_wrap)

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int):
            if isinstance(a, int):
                return a * b
            if b in (0, 1):
                return a if b else 0
        return self._index_op("arith.muli", a, b, self.types.no_wrap)

    def div(self, a: Index, b: int) -> Index:
        """a / b, for a ≥ 0 and b > 0."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self._index_op("arith.divui", a, b)

    def rem(self, a: Index, b: int) -> Index:
        """a % b, for a ≥ 0 and b > 0."""
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else self._index_op("arith.remui", a, b)

    def offset(self, index: Iterable[Index], strides: Iterable[int], start: Index = 0) -> Index:
        """`start`, and each position times its stride."""
        for i, stride in zip(index, strides, strict=True):
            start = self.add(start, self.mul(i, stride))
        return start

    def least(self, a: Index, b: Index) -> Index:
        """The smaller of two positions, which may be negative."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.binary("minsi", self.materialize(a), self.materialize(b))

    def greatest(self, a: Index, b: Index) -> Index:
        """The larger of two positions, which may be negative."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.binary("maxsi", self.materialize(a), self.materialize(b))

    # Scopes: values created inside a loop or a branch must not be reused outside

    def recall(self, key: Any) -> Any:
        for scope in reversed(self.scopes):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: Any, value: Any) -> None:
        self.scopes[-1][key] = value

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        found = self.recall(key)
        if found is None:
            found = make()
            self.remember(key, found)
        return found
