"""Inputs and results of a module whose dynamic dimensions were padded to their bounds (passes/dynamic/pad.py).

Such a module takes and returns arrays at their bounds; the present sizes are additional s32 leaves after them. Its
frontend attributes list these as `leaf.dimension:leaf of its size`. Callers see neither padding nor sizes: an input
may be smaller than its bound, and results are cut to their sizes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .later import np
from .records import dataclass
from .shapes import Shape

if TYPE_CHECKING:
    from .ir import Module

PARAMETERS, RESULTS = "dynamic_parameters", "dynamic_results"


@dataclass(frozen=True, slots=True)
class DynamicDimension:
    """A dynamic dimension of array leaf `leaf` of the parameters or results. size: the s32 leaf that holds its size."""

    leaf: int
    dimension: int
    size: int


@dataclass(frozen=True, slots=True)
class DynamicBorder:
    """The dynamic dimensions of the parameters and results.

    shapes: shapes of the inputs that callers give, at their bounds; outputs: number of results that callers get.
    """

    parameters: tuple[DynamicDimension, ...]
    results: tuple[DynamicDimension, ...]
    shapes: tuple[Shape, ...]
    outputs: int

    @staticmethod
    def of(module: Module) -> DynamicBorder | None:
        """The border that the frontend attributes describe; None if no parameter or result is dynamic."""
        text = getattr(module.attributes.get("frontend_attributes"), "text", "")
        parameters, results = _listed(text, PARAMETERS), _listed(text, RESULTS)
        if not parameters and not results:
            return None
        shapes = [s for shape in module.parameter_shapes for _, s in shape.leaves() if s.is_array]
        count = sum(s.is_array for _, s in module.result_shape.leaves())
        return DynamicBorder(parameters, results, tuple(shapes[: len(shapes) - len(parameters)]), count - len(results))

    def padded(self, values: Sequence[Any]) -> list[Any]:
        """The inputs padded with zeros to their bounds, followed by their sizes (s32 scalars).

        Raises InputError if their number is wrong, or one has the wrong rank or exceeds its bound.
        """
        if len(values) != len(self.shapes):
            raise InputError(f"the program takes {len(self.shapes)} inputs, given {len(values)}")
        full, sizes = list(values), []
        for d in self.parameters:
            x, bound = np.asarray(values[d.leaf]), self.shapes[d.leaf].dims
            if x.ndim != len(bound) or x.shape[d.dimension] > bound[d.dimension]:
                wanted = f"{self.shapes[d.leaf].without_layout()} at most"
                raise InputError(f"input {d.leaf} must be {wanted}, got [{','.join(map(str, x.shape))}]")
            sizes.append(np.array(x.shape[d.dimension], np.int32))
        for leaf in dict.fromkeys(d.leaf for d in self.parameters):
            x, bound = np.asarray(values[leaf]), self.shapes[leaf].dims
            dynamic = {d.dimension for d in self.parameters if d.leaf == leaf}
            room = [(0, n - m if k in dynamic else 0) for k, (m, n) in enumerate(zip(x.shape, bound, strict=True))]
            if any(high for _, high in room):
                full[leaf] = np.pad(x, room)
        return [*full, *sizes]

    def cut(self, results: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results cut to their sizes; the leaves that hold the sizes are removed."""
        cut = list(results[: self.outputs])
        for d in self.results:
            size, x = int(results[d.size]), cut[d.leaf]
            if size < x.shape[d.dimension]:
                cut[d.leaf] = np.ascontiguousarray(x[(slice(None),) * d.dimension + (slice(0, size),)])
        return cut


def _listed(text: str, key: str) -> tuple[DynamicDimension, ...]:
    found = re.search(rf'\b{key}="([\d.: ]*)"', text)
    return tuple(DynamicDimension(*map(int, re.split(r"[.:]", part))) for part in found[1].split()) if found else ()
