"""The tables of forms of the stacks, as values: for reports and coverage. Only a stack decides by its own."""

from __future__ import annotations

from importlib import import_module

from ..codegen.forms import FormInfo
from .choose import ROOMS, present


def form_tables() -> dict[str, tuple[FormInfo, ...]]:
    """Stack → its forms, in the order in which they are asked; of the stacks that this package has."""
    return {name: import_module(ROOMS[name], __package__).form_table() for name in present()}
