"""Compiler fuel: a limit on the number of rewrites, used to find by bisection the rewrite that breaks a module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..hlo.records import dataclass


@dataclass(eq=False)
class Fuel:
    """limit: number of rewrites allowed, None for no limit. spent: number of rewrites done."""

    limit: int | None = None
    spent: int = 0


_fuel: ContextVar[Fuel | None] = ContextVar("fuel", default=None)


@contextmanager
def limited(fuel: Fuel) -> Iterator[Fuel]:
    """Count every rewrite within the block against `fuel`."""
    token = _fuel.set(fuel)
    try:
        yield fuel
    finally:
        _fuel.reset(token)


def spend() -> bool:
    """Ask for one rewrite. Returns False if the fuel is used up; True always outside `limited`."""
    fuel = _fuel.get()
    if fuel is None:
        return True
    if fuel.limit is not None and fuel.spent >= fuel.limit:
        return False
    fuel.spent += 1
    return True
