"""What a campaign has run so far: opcodes and element types by stack, against what its orders may draw; and the forms
of kernels, against the tables of the stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...migration.forms import form_tables
from ..generate.table import drawable
from .task import Orders

Key = tuple[str, str, str]
"""(Opcode, element type, stack) that coverage counts."""

FormKey = tuple[str, str]
"""(Stack, form) that coverage counts."""


@dataclass(frozen=True)
class Reached:
    """One stack, or a family on it. pairs: of opcode and element type that ran. ops, wanted: opcodes that ran, of those
    that may be drawn. left: those of them that did not run yet.
    """

    pairs: int
    ops: int
    wanted: int
    left: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.ops}/{self.wanted} opcodes, {self.pairs} pairs"

    def to_json(self) -> dict[str, Any]:
        return {"pairs": self.pairs, "opcodes": self.ops, "wanted": self.wanted, "left": list(self.left)}


def stacks_in(coverage: Iterable[Key]) -> list[str]:
    return sorted({stack for _, _, stack in coverage})


def reached(coverage: Mapping[Key, int], orders: Orders) -> dict[str, Reached]:
    """By stack, what ran of all that may be drawn."""
    return {stack: _reached(coverage, stack, drawable(orders.limits)) for stack in stacks_in(coverage)}


def by_family(coverage: Mapping[Key, int], orders: Orders) -> dict[str, dict[str, Reached]]:
    """By family of opcodes and by stack, what ran of what may be drawn."""
    families: dict[str, list[Op]] = {}
    for op in drawable(orders.limits):
        families.setdefault(OPSET[op].family.value, []).append(op)
    stacks = stacks_in(coverage)
    return {name: {stack: _reached(coverage, stack, ops) for stack in stacks} for name, ops in families.items()}


def _reached(coverage: Mapping[Key, int], stack: str, ops: Iterable[Op]) -> Reached:
    wanted = sorted(op.value for op in ops)
    pairs = [(op, dtype) for op, dtype, ran_on in coverage if ran_on == stack and op in set(wanted)]
    ran = {op for op, _ in pairs}
    return Reached(len(pairs), len(ran), len(wanted), tuple(op for op in wanted if op not in ran))


def forms_left(forms: Mapping[FormKey, int], stacks: Iterable[str]) -> dict[str, tuple[int, tuple[str, ...]]]:
    """By stack, of those that have a table of forms for hosts: (the number of its forms, those that no kernel had)."""
    tables = {stack: [row.name for row in table if not row.for_devices] for stack, table in form_tables().items()}
    return {
        stack: (len(names), tuple(name for name in names if not forms.get((stack, name))))
        for stack, names in tables.items()
        if stack in set(stacks)
    }
