"""Compiler fuel: a limit on the number of rewrites, used to find by bisection the rewrite that breaks a module; and
switches, with which rewrites of a name are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..hlo.records import dataclass, field


@dataclass(eq=False)
class Fuel:
    """limit: number of rewrites allowed, None for no limit. spent: number of rewrites done; names: of each,
    empty for those of a pass that has one kind only.
    """

    limit: int | None = None
    spent: int = 0
    names: list[str] = field(default_factory=list)


_fuel: ContextVar[Fuel | None] = ContextVar("fuel", default=None)


@contextmanager
def limited(fuel: Fuel) -> Iterator[Fuel]:
    """Count every rewrite within the block against `fuel`."""
    token = _fuel.set(fuel)
    try:
        yield fuel
    finally:
        _fuel.reset(token)


_off: ContextVar[frozenset[str]] = ContextVar("off", default=frozenset())


@contextmanager
def without(names: Collection[str]) -> Iterator[None]:
    """Leave out the rewrites of these names within the block, as if their patterns never matched."""
    token = _off.set(_off.get().union(names))
    try:
        yield
    finally:
        _off.reset(token)


def is_off(name: str) -> bool:
    """Whether a rewrite, or a pass, is switched off."""
    return name in _off.get()


def spend(name: str = "") -> bool:
    """Ask for one rewrite, of a name such as `algebra/add_zero`. Returns False if it is switched off, or if the fuel is
    used up; else True outside `limited`.
    """
    if is_off(name):
        return False
    fuel = _fuel.get()
    if fuel is None:
        return True
    if fuel.limit is not None and fuel.spent >= fuel.limit:
        return False
    fuel.spent += 1
    fuel.names.append(name)
    return True
