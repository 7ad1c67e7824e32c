"""How mutants of the planner are written: a name, the function that is replaced, and what it is replaced by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .base import Mutant, Note, rebind

Apply = Callable[[], None]
_found: list[Mutant] = []
_targets: dict[str, tuple[Any, str]] = {}
"""Functions that mutants replace, by site."""


def change(name: str, *words: str, site: str = "") -> Callable[[Apply], Apply]:
    """Register a mutant; words: of tests that run first."""

    def add(apply: Apply) -> Apply:
        _found.append(Mutant(f"planning/{name}", site, apply, words))
        return apply

    return add


def mutants() -> Sequence[Mutant]:
    return _found


def instead(where: Any, name: str, make: Callable[[Any], Any]) -> Apply:
    """Replace a function or a method everywhere by what is made of it."""

    def apply() -> None:
        old = getattr(where, name)
        new = make(old)
        setattr(where, name, new)
        if not isinstance(where, type):
            rebind(old, new)

    return apply


def simple(name: str, where: Any, function: str, make: Callable[[Any], Any], *words: str) -> None:
    assert hasattr(where, function), f"{where.__name__} has no {function} any more: {name}"
    site = f"{where.__name__}.{function}"
    _targets[site] = where, function
    change(name, *words, site=site)(instead(where, function, make))


def always(answer: Any) -> Callable[[Any], Any]:
    return lambda old: lambda *_, **__: answer


def record(note: Note) -> None:
    """Note when the functions run that mutants replace; any test may notice the other mutants."""
    for site, (where, function) in _targets.items():
        instead(where, function, partial(noting, note, site))()


def noting(note: Note, site: str, old: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        note(site)
        return old(*arguments, **named)

    return call
