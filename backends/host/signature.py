"""The inputs and outputs of a program: its array leaves and the allocations that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.errors import InputError
from ...hlo.later import np
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ...planning.allocation import Allocation, AllocationKind, BufferSlice
from ...thunks.image import Image
from .leaves import Leaf


@dataclass(frozen=True, eq=False, slots=True)
class Signature:
    """variable: the allocation of each input, then of each output; the number of allocations if a leaf has none.

    copied: (number, slice) of outputs that are elsewhere in memory at the end of a run and must be copied from there.
    aliased: (input, output) pairs that share one allocation.
    """

    inputs: tuple[Leaf, ...]
    outputs: tuple[Leaf, ...]
    variable: tuple[int, ...]
    copied: tuple[tuple[int, BufferSlice], ...]
    aliased: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(image: Image) -> Signature:
        allocations = image.allocations
        given = {a.number: a for a in allocations if a.kind is AllocationKind.PARAMETER}
        taken = {a.number: a for a in allocations if a.kind is AllocationKind.RESULT}
        taken |= {a.result: a for a in allocations if a.result >= 0}
        nowhere = len(allocations)
        inputs = _leaves("input", image.parameters, given)
        outputs = _leaves("output", image.results, taken)
        variable = [given[n].index if n in given else nowhere for n in range(len(inputs))]
        variable += [taken[n].index if n in taken else nowhere for n in range(len(outputs))]
        aliased = tuple((n, a.result) for n, a in sorted(given.items()) if a.result >= 0)
        return Signature(inputs, outputs, tuple(variable), tuple(sorted(image.elsewhere.items())), aliased)

    def place_inputs(self, values: Sequence[Any]) -> tuple[list[int], list[np.ndarray]]:
        """The address of each input, which is copied if it does not fit, and the arrays that must stay alive.

        Raises InputError for a wrong number of inputs, a wrong shape or a wrong dtype.
        """
        if len(values) != len(self.inputs):
            wanted = ", ".join(str(leaf.shape.without_layout()) for leaf in self.inputs) or "nothing"
            raise InputError(
                f"the program takes {len(self.inputs)} inputs, given {len(values)}", remedy=f"it wants {wanted}"
            )
        addresses, kept = [], []
        for leaf, value in zip(self.inputs, values):
            address, array = leaf.address(value)
            addresses.append(address)
            kept.append(array)
        return addresses, kept

    def place_outputs(self, values: Sequence[np.ndarray | None] | None) -> tuple[list[int], list[np.ndarray]]:
        """The addresses of the results and their arrays: the caller's, or new ones. Raises InputError."""
        if values is None:
            values = (None,) * len(self.outputs)
        elif len(values) != len(self.outputs):
            raise InputError(
                f"the program returns {len(self.outputs)} outputs, given {len(values)} arrays for them",
                remedy="give one array, or None, for each output",
            )
        addresses, arrays = [], []
        for leaf, value in zip(self.outputs, values):
            if value is None:
                array, address = leaf.allocate_result()
            else:
                array, address = value, leaf.result_address(value)
            arrays.append(array)
            addresses.append(address)
        return addresses, arrays

    def refuse_overlaps(self, addresses: Sequence[int]) -> None:
        """Raise InputError if an output overlaps an input or another output, because kernels are compiled under the
        assumption that they do not. addresses: of the inputs, then of the outputs.
        """
        leaves = (*self.inputs, *self.outputs)
        placed = sorted((a, a + leaf.bytes, n) for n, (a, leaf) in enumerate(zip(addresses, leaves)) if leaf.bytes)
        last = last_output = (0, 0, 0)  # the spans before this one with the largest end
        for span in placed:
            output = span[2] >= len(self.inputs)
            other = last if output else last_output
            if span[0] < other[1]:
                first, second = sorted((span[2], other[2]), reverse=True)
                raise InputError(f"the array for {self._name(first)} overlaps {self._name(second)}",
                                 remedy="give distinct arrays")  # fmt: skip
            last = max(last, span, key=_end)
            last_output = max(last_output, span, key=_end) if output else last_output

    def _name(self, number: int) -> str:
        count = len(self.inputs)
        return f"input {number}" if number < count else f"output {number - count}"


def _end(span: tuple[int, int, int]) -> int:
    return span[1]


def _leaves(role: str, shapes: Sequence[Shape], allocations: dict[int, Allocation]) -> tuple[Leaf, ...]:
    found = []
    for number, shape in enumerate(shapes):
        promised = allocations[number].alignment if number in allocations else shape.dtype.bytes
        held = allocations[number].shape if number in allocations else None
        found.append(Leaf(role, number, held or shape, promised))
    return tuple(found)
