"""What is known of positions: between which numbers they lie."""

from __future__ import annotations

from llvmlite import ir


class Limits:
    """Limits of values, given or found from sums with constants. Values are known as long as the function is built."""

    def __init__(self) -> None:
        self._given: dict[ir.Value, tuple[int, int]] = {}
        self._sums: dict[ir.Value, tuple[ir.Value, int]] = {}  # a value → (another, what was added to it)

    def give(self, value: int | ir.Value, limits: tuple[int, int]) -> None:
        """From now on a value lies in these limits: the first number, and the end."""
        if isinstance(value, ir.Value):
            self._given[value] = limits

    def added(self, total: ir.Value, value: ir.Value, part: int) -> None:
        """A value is another one and a constant."""
        self._sums[total] = value, part

    def of(self, value: int | ir.Value) -> tuple[int, int] | None:
        """The first number that a value may be, and the end; None if they are not known."""
        more = 0
        while isinstance(value, ir.Value) and value in self._sums:
            value, part = self._sums[value]
            more += part
        found = (value, value + 1) if isinstance(value, int) else self._given.get(value)
        return None if found is None else (found[0] + more, found[1] + more)
