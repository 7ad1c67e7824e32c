"""A task: a drawn case with the stacks and the setting that it runs on, mixtures of stacks among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...backends.base import HostProgramKind
from ...hlo.errors import InputError
from ...hlo.ir import Module
from ...migration.flags import FAMILIES, STACK_NAMES
from ..generate.corpus import draw_edited, read_corpus
from ..generate.module import Case, draw_case
from ..generate.program import UNCOUNTED, Limits
from ..generate.source import Recorded, Source, blob_of, choices_of
from ..permitted import BUDGET
from ..setting import Setting

KIND = "t"
"""The letter of blobs of tasks."""

MIXED_PERCENT, CHECKED_PERCENT, COMPILED_PERCENT = 25, 25, 10
"""Tasks that also run a mixture of stacks; whose kernels run in the checking mode, with junk around their arguments;
with a compiled host program.
"""

EXACT_STACKS = ("evaluator", *STACK_NAMES)
"""Whom they compare."""

CORPUS_PERCENT = 40
"""Tasks that edit a module of the corpus, where there is one."""

EXACT_PERCENT = 10
"""Tasks that are compared over finite fields, without bounds."""

OPTIMIZED_PERCENT = 20
"""Tasks whose code LLVM optimises. What is tested are our emitters: their faults show without that, but for what they
promise to the optimiser (no aliases, no overflow).
"""


@dataclass(frozen=True)
class Orders:
    """What tasks are drawn from. mixed: whether mixtures of the compiled stacks are drawn too. optimized: percentage of
    tasks whose code LLVM optimises; checked: of those whose kernels run in the checking mode; exact: of those that are
    compared over finite fields. corpus: a folder of modules to edit. budget: as of Setting.
    """

    limits: Limits = field(default_factory=Limits)
    stacks: tuple[str, ...] = ("evaluator", "legacy", "mlir")
    mixed: bool = True
    optimized: int = OPTIMIZED_PERCENT
    checked: int = CHECKED_PERCENT
    exact: int = EXACT_PERCENT
    corpus: str | None = None
    budget: float = BUDGET


@dataclass(frozen=True)
class Task:
    case: Case
    stacks: tuple[str, ...]
    setting: Setting
    blob: str


def draw_task(source: Source, orders: Orders) -> Task:
    limits = orders.limits
    if any(name.startswith("xla") for name in orders.stacks):
        limits = replace(limits, starts=False)
    if orders.corpus is not None and source.chance(CORPUS_PERCENT):
        case = draw_edited(source, read_corpus(orders.corpus), limits)
    else:
        case = draw_case(source, limits)
    stacks = orders.stacks
    if orders.mixed and all(name in stacks for name in STACK_NAMES) and source.chance(MIXED_PERCENT):
        flags = mixture(source, case.module)
        stacks = (*stacks, flags) if flags not in stacks else stacks
    checked = source.chance(orders.checked)
    kind = HostProgramKind.COMPILED if source.chance(COMPILED_PERCENT) else HostProgramKind.AUTO
    fast = source.chance(100 - orders.optimized)
    setting = Setting(cache=False, memory=checked, host_program=kind, optimized=not fast, budget=orders.budget)
    both = all(name in orders.stacks for name in STACK_NAMES)
    if both and source.chance(orders.exact):  # the last choice: blobs without it stay what they were
        stacks, setting = EXACT_STACKS, Setting(cache=False, exact=True)
    return Task(case, stacks, setting, blob_of(KIND, source.drawn))


def task_of(blob: str, orders: Orders) -> Task:
    """The task of a blob that was drawn with the same orders. Raises InputError if it is none."""
    kind, choices = choices_of(blob)
    if kind != KIND:
        raise InputError(f"the blob is of kind {kind!r}, not {KIND!r}", remedy="give one that testbed fuzz printed")
    return draw_task(Recorded(choices), orders)


def mixture(source: Source, module: Module) -> str:
    """Flags that give some units of a module to one stack and the rest to the other.

    Half of them are pairs: two families, each on a stack of its own. The others are rules for single opcodes, families
    and types, as a migration has them on its way.
    """
    default, other = source.choice((STACK_NAMES, tuple(reversed(STACK_NAMES))))
    keys = units_of(module)
    families = [k for k in keys if k in FAMILIES]
    if len(families) > 1 and source.chance(50):
        first, second = source.sample(families, 2)
        return f"{default},{first}={other},{second}={default}"
    chosen = source.sample(keys, source.integer(1, min(3, len(keys)))) if keys else []
    return ",".join([default, *(f"{key}={source.choice((other, other, default))}" for key in chosen)])


def units_of(module: Module) -> list[str]:
    """The keys of flags that a module has: opcodes, families and types, in a fixed order."""
    drawn = [i for i in module.instructions() if i.opcode not in UNCOUNTED]
    ops = sorted({i.opcode.value for i in drawn})
    families = sorted({name for name, members in FAMILIES.items() if any(i.opcode in members for i in drawn)})
    dtypes = sorted({i.shape.dtype.value for i in drawn if i.shape.is_array})
    return [*families, *ops, *dtypes]


def pairs_of(module: Module) -> list[tuple[str, str]]:
    """(Opcode, element type) of each instruction of a module that computes or moves anything, each once."""
    found = {
        (i.opcode.value, leaf.dtype.value)
        for i in module.instructions()
        if i.opcode not in UNCOUNTED
        for _, leaf in i.shape.leaves()
        if leaf.is_array
    }
    return sorted(found)


def known_stacks(names: Sequence[str]) -> list[str]:
    """The stacks that coverage counts; a mixture counts as `mixed`."""
    return [name if "," not in name and "=" not in name else "mixed" for name in names]
