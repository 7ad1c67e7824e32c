"""Passes over a field: the rewrites after which a module computes other elements, up to the first undeclared one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...formats.text.printer import print_instruction
from ...hlo.errors import InputError, UnsupportedError
from ...hlo.ir import Instruction, Module
from ...passes.algebra.rule import Rule
from ...passes.algebra.sweep import ALL_RULES, by_opcode, simplify_algebra
from ...passes.building import Builder
from ...passes.fuel import Fuel, limited
from ...passes.pipeline import Pass, complete, default_passes, select
from ..fake_inputs import fake_inputs
from ..preserving import Meaning
from .check import evaluated, residues, sorts_by_orders
from .declared import DECLARED, EACH, Reason
from .draw import Draw

BUDGET = 5.0
"""Seconds to find out what the float rules permit of a declared rewrite."""

LINES = 4
"""Lines of a rewrite's difference that a sentence shows."""


@dataclass(frozen=True)
class Change:
    """A rewrite that changes elements. rule: of `algebra`. number: among the pass's, from 1. reason: if it is declared.
    wrong: what is wrong on ordinary floats, if it is declared and wrong all the same. lines: what it changes.
    """

    step: str
    rule: str
    number: int
    reason: Reason | None
    wrong: str
    lines: tuple[str, ...]

    @property
    def is_fault(self) -> bool:
        return self.reason is None or bool(self.wrong)

    @property
    def name(self) -> str:
        return f"{self.step}{f' ({self.rule})' if self.rule else ''}"

    @property
    def sentence(self) -> str:
        if self.wrong:
            return f"{self.name} is declared ({self.reason}), but wrong on ordinary floats, too: {self.wrong}"
        if self.reason is not None:
            return f"{self.name} changes it as declared: {self.reason}"
        return f"{self.name} changes it with its change {self.number}: {'; '.join(self.lines[:LINES])}"


@dataclass(frozen=True)
class Step:
    """A pass that changes a module, and its rewrites."""

    step: Pass
    before: Module
    after: Module
    rewrites: int

    @property
    def name(self) -> str:
        return self.step.name

    def limited(self, rewrites: int) -> Module:
        """The module after this number of rewrites."""
        with limited(Fuel(rewrites)):
            return self.step.run(self.before)


Value = list[np.ndarray]


class Passes:
    """The passes of a module, run once for all draws."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._wrong: dict[tuple[str, int, int], str] = {}

    @cached_property
    def steps(self) -> list[Step]:
        """Those that change it, in order."""
        found, now = [], self.module
        for step in complete(select(default_passes(self.module))):
            with limited(Fuel()) as fuel:
                done = step.run(now)
            if done is not now:
                found.append(Step(step, now, done, max(fuel.spent, 1)))
            now = done
        return found

    def changes(self, inputs: Sequence[np.ndarray], draw: Draw) -> list[Change]:
        """The changes over a field, one for each rule, up to the first that is a fault. Raises UnsupportedError for a
        module without a meaning there.
        """
        found: dict[str, Change] = {}
        at, value = 0, evaluated(self.module, inputs, draw.elements)
        while at < len(self.steps):
            at, value, come = self._next(at, value, inputs, draw)
            for change in come:
                found.setdefault(change.name, change)
                if change.is_fault:
                    return list(found.values())
        return list(found.values())

    def _next(self, at: int, value: Value, inputs: Sequence[np.ndarray], draw: Draw) -> tuple[int, Value, list[Change]]:
        """(The step to go on with, the value before it, what changed the value up to there). Steps up to the next one
        that is declared are compared at once.
        """
        end = at + 1
        if not _is_declared(self.steps[at]):
            end = next((n for n in range(at, len(self.steps)) if _is_declared(self.steps[n])), len(self.steps))
        made = self._value(end - 1, inputs, draw)
        if made is None or same(made, value, draw):
            return end, made or value, []
        low, high = at, end
        while high - low > 1:
            middle = (low + high) // 2
            between = self._value(middle - 1, inputs, draw)
            low, high = (middle, high) if between is None or same(between, value, draw) else (low, middle)
        step = self.steps[high - 1]
        if not sorts_by_orders(step.before, inputs, draw.elements):
            return high, self._value(high - 1, inputs, draw) or value, []
        return high, self._value(high - 1, inputs, draw) or value, self._of_step(high - 1, value, inputs, draw)

    def _value(self, number: int, inputs: Sequence[np.ndarray], draw: Draw) -> Value | None:
        """Of the module after a step; None if it has no meaning over a field."""
        try:
            return evaluated(self.steps[number].after, inputs, draw.elements)
        except UnsupportedError:
            return None

    def _of_step(self, number: int, value: Value, inputs: Sequence[np.ndarray], draw: Draw) -> list[Change]:
        """The changes of one step: one if it is declared as a whole, else rewrite by rewrite up to the first fault."""
        step = self.steps[number]
        whole = _reason(step.name, EACH, draw)
        if whole is not None:
            return [self._judged(Change(step.name, "", 0, whole, "", ()), number, step.before, step.after)]
        found: list[Change] = []
        done, last = 0, evaluated(step.after, inputs, draw.elements)
        while done < step.rewrites and not same(last, value, draw):
            low, high = done, step.rewrites
            while high - low > 1:
                middle = (low + high) // 2
                equal = same(evaluated(step.limited(middle), inputs, draw.elements), value, draw)
                low, high = (middle, high) if equal else (low, middle)
            old, new = step.limited(low) if low else step.before, step.limited(high)
            rule = rule_of(step.before, high) if step.name == "algebra" else ""
            lines = _difference(old, new)
            change = Change(step.name, rule, high, _reason(step.name, rule, draw, lines), "", lines)
            found.append(self._judged(change, number, old, new))
            if found[-1].is_fault:
                break
            done, value = high, evaluated(new, inputs, draw.elements)
        return found

    def _judged(self, change: Change, step: int, before: Module, after: Module) -> Change:
        """The change; if it is declared, with what is wrong with it on ordinary floats."""
        if change.reason is None:
            return change
        key = (change.rule, step, change.number)
        if key not in self._wrong:
            try:
                wrong = Meaning.of(before, fake_inputs(before, 0), BUDGET).change(after)
            except (InputError, UnsupportedError):
                wrong = None  # not found out, or of no meaning outside a whole program
            self._wrong[key] = wrong or ""
        return replace(change, wrong=self._wrong[key])


def same(left: Sequence[np.ndarray], right: Sequence[np.ndarray], draw: Draw) -> bool:
    """Whether all results are the same elements."""
    pairs = zip(left, right, strict=True)
    return all(np.array_equal(residues(a, draw.elements), residues(b, draw.elements)) for a, b in pairs)


def _is_declared(step: Step) -> bool:
    return (step.name, EACH) in DECLARED


def _reason(step: str, rule: str, draw: Draw, lines: Sequence[str] = ()) -> Reason | None:
    reason = DECLARED.get((step, rule))
    excused = {
        Reason.ORDERED: not draw.keeps_order,
        Reason.COMPLEX: any("c64[" in line or "c128[" in line for line in lines),
    }
    return reason if reason is not None and excused.get(reason, True) else None


def _difference(before: Module, after: Module) -> tuple[str, ...]:
    old, new = ([print_instruction(i) for i in m.instructions()] for m in (before, after))
    gone, come = set(old) - set(new), set(new) - set(old)
    return (*(f"- {line}" for line in old if line in gone), *(f"+ {line}" for line in new if line in come))


def rule_of(module: Module, number: int) -> str:
    """The rule of `algebra` that makes a module's rewrite of this number, from 1."""
    names: list[str] = []

    def noted(rule: Rule) -> Rule:
        def apply(i: Instruction, b: Builder) -> Instruction | None:
            result = rule.apply(i, b)
            if result is not None and fuel.spent < number:
                names.append(rule.name)
            return result

        return replace(rule, apply=apply)

    with limited(Fuel(number)) as fuel:
        simplify_algebra(module, by_opcode([noted(rule) for rule in ALL_RULES]))
    return names[-1] if names else ""
