"""Fault, a bug that can be planted, and what plants it in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ...hlo.opcodes import Op


@dataclass(frozen=True)
class Spot:
    """A value that a fault replaces: an attribute of a module of this package or, with a key, an item of that.

    wrong: makes the wrong value from the right one.
    """

    module: str
    attribute: str
    wrong: Callable[[Any], Any]
    key: Any = None

    def swap(self) -> Callable[[], None]:
        """Put the wrong value there; returns what puts the right one back."""
        home = import_module(f"...{self.module}", __package__)
        if self.key is None:
            right = getattr(home, self.attribute)
            setattr(home, self.attribute, self.wrong(right))
            return lambda: setattr(home, self.attribute, right)
        table: MutableMapping[Any, Any] = getattr(home, self.attribute)
        right = table[self.key]
        table[self.key] = self.wrong(right)
        return lambda: table.__setitem__(self.key, right)


@dataclass(frozen=True)
class Fault:
    """name: by which it is planted. blamed: the stacks that an outcome is to blame. culprits: words of which the
    bisector's answer is to hold one. text: a module on which it shows, as one of several ops. values: the first
    elements of its inputs, which are otherwise random; the same for each parameter.
    """

    name: str
    sentence: str
    blamed: tuple[str, ...]
    culprits: tuple[str, ...]
    spots: Sequence[Spot] = field(repr=False)
    text: str = field(repr=False)
    values: tuple[float, ...] = ()


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """This process has the fault within the block. What was compiled before stays as it was."""
    undo = [spot.swap() for spot in fault.spots]
    try:
        yield
    finally:
        for restore in reversed(undo):
            restore()


def emitter_row(stack: str, file: str, op: Op, **wrong: Callable[..., Any]) -> Spot:
    """A row of a stack's table whose functions of some kinds of operand are wrong."""
    from dataclasses import replace

    return Spot(f"{stack}.{file}", "EMIT", lambda row: replace(row, **wrong), op)
