"""The states that a row of the ledger may have, and the flags that the states of all rows stand for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from .names import SHADOW
from .units import CLASSES

FILE = Path(__file__).with_name("ledger.toml")
"""The ledger of the package."""

STATES = ("off", "shadow", "on", "removed")
"""off: the old stack; shadow: both run and the old one's results count; on: the new stack; removed: the old stack's
emitters are gone."""

USUAL = ("legacy", "mlir")
"""The stacks of a migration: the old one and the new one. Only these have a shadow."""


def stack_of(state: str, stacks: tuple[str, str] = USUAL) -> str:
    """What the flags say for a state."""
    return SHADOW if state == "shadow" else stacks[state != "off"]


def flags_of(states: Mapping[str, str], stacks: tuple[str, str] = USUAL) -> str:
    """The text of the flags for states by the rows' names. stacks: the old one and the new one.

    An instruction with types of several classes needs all their rows: what is less far stands last, and so decides.
    """
    stack_by_row = {name: stack_of(state, stacks) for name, state in states.items()}
    if all(state == "off" for state in states.values()):
        return stacks[0]
    words = [stacks[1]]
    for stack in (SHADOW, stacks[0]):
        names = sorted(name for name, chosen in stack_by_row.items() if chosen == stack)
        words += [f"{key}={stack}" for key in _keys(names)]
    return ",".join(words)


def _keys(names: list[str]) -> list[str]:
    """The keys of the flags for rows, sorted: the unit alone where all its classes are there."""
    keys: list[str] = []
    for unit, rows in groupby((name.split(".") for name in names), key=lambda parts: parts[0]):
        classes = [parts[1] for parts in rows]
        keys += [unit] if len(classes) == len(CLASSES) else [f"{unit}:{name}" for name in classes]
    return keys
