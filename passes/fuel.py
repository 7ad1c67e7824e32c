"""Compiler fuel: a bound on the number of rewrites, for finding the one that breaks a module by bisection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(eq=False)
class Fuel:
    """limit: rewrites allowed, None for any number; spent: rewrites done."""

    limit: int | None = None
    spent: int = 0


_fuel: ContextVar[Fuel | None] = ContextVar("fuel", default=None)


@contextmanager
def limited(fuel: Fuel) -> Iterator[Fuel]:
    """Rewrites within the block take from `fuel`."""
    token = _fuel.set(fuel)
    try:
        yield fuel
    finally:
        _fuel.reset(token)


def spend() -> bool:
    """Ask for one rewrite; False if the fuel is used up."""
    fuel = _fuel.get()
    if fuel is None:
        return True
    if fuel.limit is not None and fuel.spent >= fuel.limit:
        return False
    fuel.spent += 1
    return True
