"""The forms of this stack, in order, and the choice among them: nothing else decides how a kernel is emitted.

A form's name is `family/form`. *Rows* are consecutive in memory, and a kernel works on one after the other; *abreast*
is what is side by side in the lanes of a vector; *columns* are neighbours in memory that are added up together; a
*nest* is loops over the elements of results; *pieces* and *regions* are parts of results with loops of their own;
*window* forms combine what lies under windows; *groups* are of a device's items, which compute a step together.

The table is closed: this stack is the way back from the other one, and gets corrections and no new form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

from ..codegen.forms import ChosenForms, Declined, FormInfo, Part
from ..codegen.options import GroupShape
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Instruction
from ..hlo.opclasses import EXPENSIVE
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..hlo.shapes import Shape
from ..planning.partition import Partition
from . import whole
from .core.graph import walk
from .core.view import View
from .devices import group_columns, group_convolution, group_crossing, group_dot, group_rows
from .loops import loops
from .loops.form import Fit, Form, Results, Task, Unfit, needs
from .loops.leaf import Leaf
from .movement import concatenate, padded_rows, regions, shape, update
from .movement import repeated_rows as repeated
from .products import convolution, dot, dot_narrow, dot_tiled
from .reductions import columns as reduce_columns
from .reductions import reduce
from .reductions.results import groups_of
from .rows import rows, rows_abreast, softmax

ROW_FORMS: tuple[Form, ...] = (rows_abreast.abreast, softmax.softmax, rows.walks)
"""Of whole kernels."""

RESULT_FORMS: tuple[Form, ...] = (
    loops.empty,
    update.in_place,
    *whole.FORMS,
    *reduce_columns.FORMS,
    dot_narrow.narrow,
    dot_tiled.tiled,
    dot.columns,
    *convolution.FORMS,
    repeated.rows,
    regions.in_regions,
    padded_rows.rows,
    shape.padded,
    *concatenate.FORMS,
    *loops.FORMS,
)
"""Of results that are computed together."""

GROUP_FORMS: tuple[Form, ...] = (
    group_rows.rows,
    group_columns.columns,
    group_dot.tiled,
    group_convolution.tiled,
    group_crossing.squares,
)
"""Of whole kernels that groups of a device's items compute."""

FORMS: tuple[Form, ...] = (*ROW_FORMS, *RESULT_FORMS, *GROUP_FORMS)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The form of some results, and what was asked before."""

    form: Form
    results: Results
    fit: Fit
    declined: tuple[Declined, ...]

    def told(self) -> Part:
        """What others are told of it."""
        numbers = tuple(leaf.number for leaf in self.results.leaves)
        return Part(self.form.name, numbers, tuple(_plain(self.fit.parameters)), self.declined)


@dataclass(frozen=True, slots=True)
class Choice:
    """passes: 'full', 'glue' or 'lean', as of EmitOptions."""

    parts: tuple[Chosen, ...]
    ranged: bool
    passes: str

    def told(self) -> ChosenForms:
        """What others are told of it."""
        return ChosenForms(tuple(part.told() for part in self.parts), self.ranged, self.passes)


def _plain(value: Any, within: str = "") -> Iterator[tuple[str, str]]:
    """The names and values of numbers, words and flags in what a form was given."""
    for name in getattr(value, "__match_args__", ()):
        inner = getattr(value, name)
        if isinstance(inner, Enum):
            yield within + name, inner.name.lower()
        elif isinstance(inner, bool | int | str) or (isinstance(inner, tuple) and all(type(n) is int for n in inner)):
            yield within + name, str(inner)
        elif not isinstance(inner, Instruction | Leaf | Shape):
            yield from _plain(inner, f"{within}{name}.")


def form_table() -> tuple[FormInfo, ...]:
    devices = (*GROUP_FORMS, loops.by_element)
    return tuple(FormInfo(form.name, form.why, form.limits, form in devices) for form in FORMS)


def choose(view: View, leaves: Sequence[Leaf], partition: Partition | None) -> Choice:
    """The forms of a kernel's results. It takes ranges of its partition if all of their loops can."""
    found = _choose(view, leaves, partition)
    if partition is not None and not all(part.fit.in_steps for part in found):
        partition, found = None, _choose(view, leaves, None)
    return Choice(found, partition is not None, _passes(view, found))


def _choose(view: View, leaves: Sequence[Leaf], partition: Partition | None) -> tuple[Chosen, ...]:
    before: list[Declined] = []
    try:
        task = Task(view, Results(tuple(leaves)), partition, rows.find_rows(view, leaves))
        whole = first_that_fits(ROW_FORMS, task, before)
        if whole is not None:
            return (whole,)
    except Unfit as reason:
        before += [Declined(form.name, str(reason)) for form in ROW_FORMS]
    tasks = [Task(view, results, partition) for results in groups_of(view, leaves)]
    return tuple(_fitting(task, list(before)) for task in tasks)


def _fitting(task: Task, before: list[Declined]) -> Chosen:
    """The nests take all results, unless they are switched off."""
    found = first_that_fits(RESULT_FORMS, task, before)
    if found is None:
        off = ", ".join(sorted(task.view.without))
        raise UnsupportedError("legacy", f"a kernel without the forms {off}", remedy="leave one that fits switched on")
    return found


def choose_group(view: View, leaves: Sequence[Leaf], shape: GroupShape) -> Chosen | None:
    """The form of a kernel for groups of a device's items; None if it has to be emitted by element."""
    return first_that_fits(GROUP_FORMS, Task(view, Results(tuple(leaves)), group=shape), [])


def first_that_fits(forms: Sequence[Form], task: Task, declined: list[Declined]) -> Chosen | None:
    """The first form that fits. Why earlier ones do not is added to `declined`."""
    for form in forms:
        try:
            needs(form.name not in task.view.without, "it is switched off")
            return Chosen(form, task.results, form.fits(task), tuple(declined))
        except Unfit as reason:
            declined.append(Declined(form.name, str(reason)))
    return None


def _passes(view: View, parts: Sequence[Chosen]) -> str:
    """The list of LLVM's passes: 'glue' for a kernel that spends its time in functions that kernels share, 'lean' where
    few passes are enough for its own loops.
    """
    nodes = list(walk([root for part in parts for root in part.results.roots], view.leaves))
    fits, own = [part.fit for part in parts], {i for part in parts for i in part.fit.own}
    if not _is_light(fits, nodes):
        return "full"
    ways = [_WAYS[i.opcode](view, i) for i in nodes if i.opcode in _WAYS and i not in own]
    found = [*fits, *ways]
    if any(work.shares for work in found) and not any(work.walks for work in found):
        return "glue"
    return "lean" if any(fit.lean for fit in fits) else "full"


def _is_light(fits: Sequence[Fit], nodes: Sequence[Instruction]) -> bool:
    """Whether all that a kernel computes in loops of its own is a few cheap operations."""
    if fits[0].light is not None:
        return fits[0].light
    return len(fits) == 1 and len(nodes) <= LIGHT and not any(i.opcode in EXPENSIVE for i in nodes)


LIGHT = 20
"""Most operations of a kernel that is glue: short vector loops that LLVM has done less for."""

_WAYS: dict[Op, Callable[[View, Instruction], dot.Way | reduce.Way]] = {Op.DOT: dot.way_of, Op.REDUCE: reduce.way_of}
"""How an element is computed by itself, of opcodes whose rules have loops."""
