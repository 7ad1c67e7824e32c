"""Forms of results whose elements are computed one by one: in memory order, or in tiles if an operand lies across."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...hlo.ir import Instruction
from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..core.graph import walk
from ..core.view import View
from . import planes as channels
from .access import crossings_of, fastest_dimension
from .elemental import Elemental, Index
from .form import Fit, Results, Task, form, needs
from .leaf import write_all
from .linear import is_linear
from .nest import GATHERED, modes_of, nest, writes
from .planes import Channels
from .ranges import Steps, elements, loops_over
from .tiles import moves, tiled

CHEAP = 12
"""Operations on an element, of which such a row has two copies: of whole vectors, and of the rest."""


SHORT = 16
"""Iterations of a loop that LLVM unrolls completely."""


COPIES = 8
"""Copies of a loop that reads across the order of memory, at most: three or five make long transposes faster."""


def emit_linear(e: Elemental, results: Results, parameters: None, steps: Steps | None) -> None:
    with elements(e.code, steps, results.shape.size) as place:
        write_all(e, results.leaves, Index.flat(e.code, results.shape, place))


def emit_elements(e: Elemental, results: Results, parameters: None, steps: Steps | None) -> None:
    """The outer shape of devices: each step alone, in memory order, whatever the roots read."""
    shape = results.shape
    with loops_over(e.code, steps, shape.dims, tuple(reversed(shape.minor_to_major))) as positions:
        writes(e, results)(positions)


def _are_cheap(view: View, roots: Sequence[Instruction]) -> bool:
    found = list(walk(roots, view.leaves))
    return len(found) <= CHEAP and not any(i.opcode in EXPENSIVE or i.called() for i in found)


def _are_beside(view: View, roots: Sequence[Instruction]) -> bool:
    """Whether a reduction keeps the dimension along which its operand is contiguous, and LLVM unrolls it. With a short
    row of such results unrolled, too, it would gather elements of several rows, though the row itself is a vector.
    """
    return any(_is_beside(i) for i in walk(roots, view.leaves) if i.opcode is Op.REDUCE)


def _is_beside(reduction: Instruction) -> bool:
    source = reduction.operands[0].shape
    fast, count = fastest_dimension(source), prod(source.dims[d] for d in reduction.dimensions)
    if fast is None or fast in reduction.dimensions or count >= SHORT:
        return False
    best = source.dtype.is_float and reduction.called()[0].root.opcode in (Op.MAXIMUM, Op.MINIMUM)
    return not best or source.dims[fast] > GATHERED.start  # vectors of three are not worth the many comparisons


def _many_across(view: View, roots: Sequence[Instruction], shape: Shape) -> bool:
    """Whether something is read across the order of memory in loops that LLVM would copy many times."""
    fast = fastest_dimension(shape)
    copies = prod(n for d, n in enumerate(shape.dims) if d != fast and n < SHORT)
    return copies > COPIES and any(c.across != fast for root in roots for c in crossings_of(view, root, 1))


@form("nest/empty", lambda e, results, parameters, steps: None)
def empty(task: Task) -> Fit:
    """Results without elements: nothing is written."""
    needs(task.results.shape.size == 0, f"{task.results.shape.size} elements")
    return Fit()


@form("nest/linear", emit_linear)
def linear(task: Task) -> Fit:
    """All is read in the memory order of the results: one loop."""
    for root in task.results.roots:
        needs(is_linear(root, task.view.leaves), f"{root.name} reads an array in another order than that of memory")
    return Fit()


@form("nest/elements", emit_elements)
def by_element(task: Task) -> Fit:
    """Devices: a loop nest in memory order, an item a step."""
    needs(task.view.by_element, "for a processor")
    return Fit()


@form(
    "nest/channels",
    lambda e, results, found, steps: found.emit(e, results.first, steps),
    channels,
    MAXIMUM_CHANNELS="channels",
    MINIMUM_ELEMENTS="elements of the result",
)
def channels_apart(task: Task) -> Fit:
    """Pixels of a few channels that become planes: lanes are chosen from whole vectors."""
    results = task.results
    needs(results.alone and moves(task.view, results.root), "more is computed than one array that is moved")
    found = Channels.of(task.view, results.root, results.shape)
    around = {d for d, _ in found.outer}
    needs({*task.numbered} <= around, f"steps number {task.numbered}, pixels or channels among them")
    return Fit(found)


@form("nest/plain", lambda e, results, modes, steps: nest(e, results.shape, writes(e, results), steps, modes))
def plain(task: Task) -> Fit:
    """Anything else: loops in memory order, and each element by the rules of its operations."""
    view, roots, shape = task.view, task.results.roots, task.results.shape
    across, whole = _many_across(view, roots, shape), fastest_dimension(shape) not in task.numbered
    return Fit(modes_of(view, shape, across, False, whole and _are_cheap(view, roots), _are_beside(view, roots)))


FORMS = (linear, by_element, channels_apart, tiled, plain)
