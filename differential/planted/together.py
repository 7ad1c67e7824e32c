"""Many planted faults at once: drawn cases that go wrong are made small and grouped by root causes, and each is tried
with single faults, so that a group says which faults it holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ...hlo.ir import Module
from ..campaign.task import Orders, Task, draw_task
from ..child import Child
from ..finding import Finding, finding_of
from ..follow_up import followed
from ..generate.source import Seeded
from ..outcome import outcome
from ..root_cause import Group, Root, grouped
from ..setting import Setting
from .fault import planted
from .table import FAULTS, plant

TOGETHER = (
    *("legacy-maximum-blind-to-nan", "legacy-compare-less-or-equal", "legacy-round-half-away"),
    *("legacy-divide-by-zero", "legacy-arithmetic-shift-too-far", "legacy-convert-unsigned-as-signed"),
    *("legacy-complex-product-conjugated", "legacy-pad-drops-the-last", "legacy-transpose-inverted"),
    *("legacy-concatenate-boundary", "legacy-iota-along-the-last", "legacy-dot-tail-of-columns"),
    *("legacy-window-ends-early", "legacy-reverse-forgotten"),
    *("mlir-minimum-blind-to-nan", "mlir-remainder-as-signed", "mlir-power-of-negative", "mlir-clamp-low-last"),
    *("mlir-sign-of-unsigned-shift", "mlir-convert-nan-to-integer", "mlir-slice-stride-of-start"),
    *("mlir-pad-high-forgotten", "mlir-bitcast-convert-order", "mlir-scatter-wraps-around"),
    *("mlir-gather-batch-after-vector", "mlir-dot-of-preds-exclusive"),
    *("pass-algebra-difference-of-itself", "pass-algebra-slice-of-reverse", "pass-simplify-composes-backwards"),
    *("pass-simplify-reduce-of-one", "pass-conditionals-other-branch", "pass-loops-one-trip-less"),
    *("plan-selector-dies-early", "thunk-copy-loses-an-offset"),
)
"""Faults of many kinds that do not stand in one another's lines."""

LIMIT_SECONDS = 30.0
"""Of a stack for a case, drawn or small."""

REDUCE_SECONDS = 10.0

BUDGET_SECONDS = 2.0
"""To find out what the float rules permit: what is planted is no rounding."""


@dataclass(frozen=True)
class Met:
    """A finding. faults: those of which each alone breaks the small case, of the kind and blame that it has."""

    name: str
    case: Finding
    root: Root
    faults: tuple[str, ...]


@dataclass
class Campaign:
    """names: of the faults. met: the findings so far. explained: findings that the switches of known groups mend."""

    names: Sequence[str]
    orders: Orders
    seconds: float
    seed: int = 0
    on_met: Callable[[Met], object] = lambda met: None
    met: list[Met] = field(default_factory=list)
    cases: int = 0
    explained: int = 0
    unnamed: int = 0

    def run(self) -> list[Group]:
        """Draw until the time is over."""
        begin, until, number = partial(plant_all, tuple(self.names)), time.monotonic() + self.seconds, 0
        with Child(begin) as child, Child() as single:
            while time.monotonic() < until:
                task, number = draw_task(Seeded(hash((self.seed, number)) % 2**60), self.orders), number + 1
                self._one(f"case-{number}", task, child, single, begin)
        return self.groups()

    def groups(self) -> list[Group]:
        return grouped((met.name, _size(met.case.module), met.root) for met in self.met)

    def faults_of(self, group: Group) -> tuple[str, ...]:
        """Each fault that breaks a case of the group, the most frequent first."""
        members = [met for met in self.met if met.name in group.members]
        found = [fault for met in members for fault in met.faults]
        return tuple(sorted(set(found), key=lambda fault: (-found.count(fault), fault)))

    def _one(self, name: str, task: Task, child: Child, single: Child, begin: Callable[[], object]) -> None:
        module, inputs, setting = task.case.module, task.case.inputs, task.setting
        setting = replace(setting, optimized=False, memory=False, budget=BUDGET_SECONDS)
        found = child.outcome(module, inputs, task.stacks, LIMIT_SECONDS, setting)
        self.cases += 1
        if not found.is_finding:
            return
        if self._is_explained(task, child, setting):
            self.explained += 1
            return
        case = finding_of(module, inputs, found, setting=setting)
        done = followed(case, begin=begin, child=child, seconds=REDUCE_SECONDS)
        if done is None or done.root is None:
            self.unnamed += 1
            return
        small = done.small.finding
        faults = single.call(guilty_faults, small, tuple(self.names), limit_s=300.0)
        met = Met(name, small, done.root, faults if isinstance(faults, tuple) else ())
        self.met.append(met)
        self.on_met(met)

    def _is_explained(self, task: Task, child: Child, setting: Setting) -> bool:
        """Whether the switches of known groups mend it. Without fusions: a fused kernel stays on one stack."""
        module, inputs, setting = task.case.module, task.case.inputs, replace(setting, fusion=False)
        if not self.met or child.outcome(module, inputs, *self._switched(setting)).is_finding:
            return False
        return child.outcome(module, inputs, task.stacks, LIMIT_SECONDS, setting).is_finding

    def _switched(self, setting: Setting) -> tuple[tuple[str, ...], float, Setting]:
        """The stacks and the setting in which all known groups are mended."""
        switches = [met.root.switch.split(" ") for met in self.met if met.root.switch]
        rewrites = (value for option, value in switches if option == "--without-rewrite")
        forms = (value for option, value in switches if option == "--without-form")
        rules = [value.split(",") for option, value in switches if option == "--emitters"]
        stacks = [
            ",".join(dict.fromkeys([stack, *(rule for first, *rest in rules if first == stack for rule in rest)]))
            for stack in ("legacy", "mlir")
        ]
        setting = replace(
            setting,
            without_rewrites=tuple(dict.fromkeys((*setting.without_rewrites, *rewrites))),
            without_forms=tuple(dict.fromkeys((*setting.without_forms, *forms))),
        )
        return ("evaluator", *stacks), LIMIT_SECONDS, setting


def _size(module: Module) -> int:
    return sum(1 for _ in module.instructions())


def plant_all(names: Sequence[str]) -> None:
    """Give this process faults until it ends."""
    for name in names:
        plant(name)


def guilty_faults(case: Finding, names: Sequence[str]) -> tuple[str, ...]:
    """The faults with each of which alone a case ends as it did, in this healthy process."""
    found = []
    for fault in names:
        if not any(stack in name for stack in FAULTS[fault].blamed for name in case.blamed):
            continue
        with planted(FAULTS[fault]):
            alone = outcome(case.module, case.inputs, case.stacks, replace(case.setting, cache=False))
        if alone.is_finding and set(alone.blamed) & set(case.blamed):
            found.append(fault)
    return tuple(found)
