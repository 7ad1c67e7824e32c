"""Each form of both stacks, and each of its numeric limits from both sides: which form is chosen there, and values.

The programs are those of support/form_programs.py; the limits' values are the stacks' own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from ... import legacy, mlir_emitters
from ...codegen.forms import ChosenForms
from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...migration.forms import form_tables
from ...planning.planner import plan, plan_scheduled
from ..support.check import check
from ..support.form_family import Case, Family
from ..support.form_programs import FAMILIES, LIMITS

FORMS_OF = {"legacy": legacy.forms_of, "mlir": mlir_emitters.forms_of}


@dataclass(frozen=True)
class Asked:
    """A limit of a stack's form on a processor. value: of the limit; None: the form has none."""

    family: Family
    stack: str
    processor: str
    value: int | None

    def __str__(self) -> str:
        return "-".join((self.stack, self.processor, self.family.form, self.family.limits[self.stack] or "any"))

    @property
    def options(self) -> EmitOptions:
        return self.family.options(self.processor)

    def text(self, beyond: int = 0) -> str:
        """The program at the last n that fits, or one on the other side."""
        case = Case(self.options)
        n = 1 if self.value is None else self.family.last(self.value, case) + beyond * self.family.outwards
        return self.family.program(n, case.lanes)

    def chosen(self, beyond: int = 0) -> list[ChosenForms]:
        """Of each kernel; of those that a device's groups do not compute, none."""
        planned = (plan_scheduled if self.family.scheduled else plan)(parse_module(self.text(beyond)))
        found = [FORMS_OF[self.stack](kernel, self.options) for kernel in planned.kernels]
        return [forms for forms in found if forms is not None]


def _value(stack: str, family: Family) -> int | None:
    name = family.limits[stack]
    return None if name is None else LIMITS[stack, family.form, name].value


ASKED = [
    Asked(family, stack, processor, _value(stack, family))
    for family in FAMILIES
    for stack, name in family.limits.items()
    if name is None or (stack, family.form, name) in LIMITS
    for processor in (family.processors[:1] if family.device else family.processors)
]


def reached(chosen: Sequence[ChosenForms]) -> set[str]:
    return {name for forms in chosen for name in forms.names}


def test_every_form_has_a_family():
    wanted = {(stack, form.name) for stack, table in form_tables().items() for form in table}
    assert {(stack, family.form) for family in FAMILIES for stack in family.limits} == wanted


def test_every_limit_has_a_family():
    """And each family a limit: none of another name, or one that is gone."""
    named = {(stack, f.form, name) for f in FAMILIES for stack, name in f.limits.items() if name is not None}
    assert named == LIMITS.keys()


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_the_form_is_chosen_up_to_its_limit(asked):
    assert asked.family.form in reached(asked.chosen())


@pytest.mark.parametrize("asked", [asked for asked in ASKED if asked.value is not None], ids=str)
def test_beyond_the_limit_it_is_not(asked):
    """And if it was asked, it says why, with the number."""
    found, family = asked.chosen(beyond=1), asked.family
    assert family.form not in reached(found)
    if family.device or asked.stack in family.unsaid:
        return
    reasons = [line.reason for forms in found for part in forms.parts for line in part.declined]
    why = [line.reason for f in found for p in f.parts for line in p.declined if line.form == family.form]
    last = family.last(asked.value, Case(asked.options))
    numbers = {int(n) for reason in why for n in re.findall(r"\d+", reason.replace(",", ""))}
    assert numbers & {asked.value, last, last + family.outwards}, (why, reasons)


def _beside() -> Iterator[tuple[str, str]]:
    """Names and texts of the programs at each limit and on both of its sides, for this machine."""
    case = Case(EmitOptions.host())
    for family in FAMILIES:
        if family.device or not family.runs:
            continue
        named = {stack: value for stack in family.limits if (value := _value(stack, family)) is not None}
        at = {n for v in named.values() for last in (family.last(v, case),) for n in (last - 1, last, last + 1)} or {1}
        for n in sorted(at):
            name = next((name for name in family.limits.values() if name), "any")
            yield f"{family.form}-{name}-{n}", family.program(n, case.lanes)


BESIDE = dict(_beside())


@pytest.mark.parametrize("name", BESIDE)
def test_values_beside_the_limit(name):
    check(BESIDE[name])
