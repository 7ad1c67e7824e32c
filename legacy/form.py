"""What a form is: a way to emit a class of shapes. Each family's file has its forms; forms.py has the table of all.

A form's `fits` says what the form would do, as a frozen value, or in a line why it does not fit: the condition that
failed, with its numbers. It reads plain values only. `emit` gets what `fits` has said, and decides nothing about forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..codegen.forms import Limit
from ..hlo.ir import Instruction
from ..hlo.records import dataclass
from ..hlo.shapes import Shape

if TYPE_CHECKING:
    from .leaf import Leaf


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


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """A row of the table. name: `family/form`; why: what it is for, in a line. limits: the numbers of its condition."""

    name: str
    why: str
    fits: Callable[..., Fit | str]
    emit: Callable[..., None]
    limits: tuple[Limit, ...] = ()


def limits(constants: Mapping[str, Any], **measures: str) -> tuple[Limit, ...]:
    """The limits with these names in a module. measures: what is compared with each, and its unit."""
    return tuple(Limit(name, measure, constants[name]) for name, measure in measures.items())
