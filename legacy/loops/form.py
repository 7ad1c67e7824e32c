"""What a form is: a way to emit a class of shapes. Each family's file has its forms; forms.py has the table of all.

A form's `fits` says what the form would do, as a frozen value. It reads plain values only. `emit` gets that value, and
decides nothing about forms.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from ...codegen.forms import Limit
from ...codegen.options import GroupShape
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ...planning.partition import Partition
from ..core.view import View

if TYPE_CHECKING:
    from .leaf import Leaf

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Results:
    """Results that one form computes together. products: the expensive instructions of which all elements are computed
    in blocks, followed by elementwise operations: a dot, a convolution, or reductions over the same columns. whole:
    whether the instruction of all leaves writes its results with loops of its own.
    """

    leaves: tuple[Leaf, ...]
    products: tuple[Instruction, ...] = ()
    whole: bool = False

    @property
    def first(self) -> Leaf:
        return self.leaves[0]

    @property
    def root(self) -> Instruction:
        """The instruction of the first result."""
        return self.leaves[0].instruction

    @property
    def roots(self) -> list[Instruction]:
        return [leaf.instruction for leaf in self.leaves]

    @property
    def shape(self) -> Shape:
        """Of the first result; the others have its dimensions in its order."""
        return self.leaves[0].shape

    @property
    def alone(self) -> bool:
        return len(self.leaves) == 1

    @property
    def ends(self) -> bool:
        """Whether nothing follows the product."""
        return self.alone and self.root is self.products[0]


@dataclass(frozen=True, slots=True)
class Task:
    """What a form is asked about. partition: of the kernel, if its loops are to run over some of the steps. rows: the
    RowGraph of a row kernel. group: the shape of groups of a device's items, if these compute it.
    """

    view: View
    results: Results
    partition: Partition | None = None
    rows: object = None
    group: GroupShape | None = None

    @property
    def numbered(self) -> tuple[int, ...]:
        """The dimensions of the results that the steps number."""
        return () if self.partition is None else self.partition.dimensions

    def product(self, op: Op) -> Instruction:
        """The product that is computed in blocks, if it has this opcode; the first of several reductions."""
        products = () if self.view.by_element else self.results.products
        needs(products and products[0].opcode is op, f"no {op.value} is computed in blocks")
        return products[0]


@dataclass(frozen=True, slots=True)
class Fit:
    """What a form would do. in_steps: whether its loops can run over some of the partition's steps.

    own: instructions whose elements it computes in loops of its own, not one element at a time. For the list of LLVM's
    passes: shares: whether functions that kernels share compute its products, or its sums; walks: whether it has long
    loops of reductions itself; lean: whether its loops are such that few passes are enough. light: whether all that its
    own loops compute is little and cheap; None: if all that follows the products is.
    """

    parameters: Any = None
    in_steps: bool = True
    own: tuple[Instruction, ...] = ()
    shares: bool = False
    walks: bool = False
    lean: bool = False
    light: bool | None = None


class Unfit(Exception):
    """Why a form does not fit, in a line: the condition that failed, with its numbers."""


def needs(condition: object, reason: str) -> None:
    """Go on only under a condition of a form. Raises Unfit."""
    if not condition:
        raise Unfit(reason)


def known(value: T | None, reason: str) -> T:
    """A value that a condition of a form needs. Raises Unfit if there is none."""
    if value is None:
        raise Unfit(reason)
    return value


def at_least(value: int, minimum: int, what: str) -> None:
    if value < minimum:
        raise Unfit(f"{value} {what}, fewer than {minimum}")


def at_most(value: int, maximum: int, what: str) -> None:
    if value > maximum:
        raise Unfit(f"{value} {what}, more than {maximum}")


def between(value: int, minimum: int, maximum: int, what: str) -> None:
    if not minimum <= value <= maximum:
        raise Unfit(f"{value} {what}, not {minimum} to {maximum}")


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """A row of the table. name: `family/form`; why: what it is for, in a line. limits: the numbers of its condition.

    fits: raises Unfit if it does not.
    """

    name: str
    why: str
    fits: Callable[[Task], Fit]
    emit: Callable[..., None]
    limits: tuple[Limit, ...] = ()


def form(
    name: str, emit: Callable[..., None], *constants: ModuleType, **measures: str
) -> Callable[[Callable[[Task], Fit]], Form]:
    """Make a form of what says whether it fits; the first paragraph of its documentation says why there is the form.

    measures: by the names of constants of modules (by default, of the same) what is compared with them, and its unit.
    """

    def made(fits: Callable[[Task], Fit]) -> Form:
        rooms: list[dict[str, Any]] = [vars(module) for module in constants] or [fits.__globals__]
        # Its own name for each constant: Python 3.13.0 gives `name` another value behind a comprehension that uses it.
        values = {constant: next(room[constant] for room in rooms if constant in room) for constant in measures}
        limits = tuple(Limit(constant, measure, values[constant]) for constant, measure in measures.items())
        why = " ".join((fits.__doc__ or "").split("\n\n")[0].split())
        return Form(name, why, fits, emit, limits)

    return made
