"""The buffers of an image ↔ messages, and its constants ↔ one block of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...hlo.dynamic_border import DynamicBorder, DynamicDimension
from ...hlo.errors import InputError
from ...hlo.shapes import Shape
from ...planning.allocation import Allocation, AllocationKind
from ..image import Image, Kernel
from ..kinds import SequentialThunk
from .container import ALIGNMENT
from .shapes import shape_of, shape_values
from .thunks import slice_of, slice_values

Values = dict[str, Any]

_KINDS = {kind.value: kind for kind in AllocationKind}
_LONGEST = 1e9
"""Seconds that an estimate is cut to."""


def buffer_values(image: Image) -> tuple[Values, bytes]:
    """The values of a Buffers message, and the bytes of all constants, each at a multiple of ALIGNMENT."""
    constants, offsets = bytearray(), dict[int, int]()
    for index in sorted(image.constants):
        constants += bytes(-len(constants) % ALIGNMENT)
        offsets[index] = len(constants)
        constants += image.constants[index]
    values = {
        "parameters": [shape_values(s) for s in image.parameters],
        "results": [shape_values(s) for s in image.results],
        "allocations": [_allocation_values(a, image, offsets) for a in image.allocations],
        "elsewhere": [{"result": n, "slice": slice_values(s)} for n, s in sorted(image.elsewhere.items())],
        "border": None if image.border is None else _border_values(image.border),
        "nanoseconds": round(min(image.seconds, _LONGEST) * 1e9),
        "flush_subnormals": image.flush_subnormals,
    }
    return values, bytes(constants)


def _allocation_values(a: Allocation, image: Image, offsets: Mapping[int, int]) -> Values:
    return {
        "kind": a.kind.value,
        "size": a.size,
        "alignment": a.alignment,
        "number": a.number if a.number >= 0 else None,
        "shape": None if a.shape is None else shape_values(a.shape),
        "result": a.result if a.result >= 0 else None,
        "offset": offsets.get(a.index, 0),
        "largest": image.largest.get(a.index, ("", None))[0],
    }


def _border_values(border: DynamicBorder) -> Values:
    def dimensions(found: tuple[DynamicDimension, ...]) -> list[Values]:
        return [{"leaf": d.leaf, "dimension": d.dimension, "size": d.size} for d in found]

    return {
        "parameters": dimensions(border.parameters),
        "results": dimensions(border.results),
        "shapes": [shape_values(s) for s in border.shapes],
        "outputs": border.outputs,
    }


def constants_of(values: Values, block: memoryview) -> dict[int, memoryview]:
    """Allocation → its bytes in `block`, the section of constants. Raises InputError if they are outside."""
    found = {}
    for index, a in enumerate(values["allocations"]):
        if a["kind"] == AllocationKind.CONSTANT.value:
            begin, end = a["offset"], a["offset"] + a["size"]
            if begin % ALIGNMENT or end > block.nbytes:
                raise InputError(f"the constant of allocation {index} is not within its section")
            found[index] = block[begin:end]
    return found


def image_of(
    values: Values, constants: Mapping[int, memoryview], kernels: tuple[Kernel, ...], thunks: SequentialThunk
) -> Image:
    """The image of a Buffers message. Raises InputError for values that it cannot have; the verifier sees the rest."""
    allocations = values["allocations"]
    return Image(
        _arrays(values["parameters"]),
        _arrays(values["results"]),
        tuple(_allocation_of(index, a) for index, a in enumerate(allocations)),
        {place["result"]: slice_of(place["slice"]) for place in values["elsewhere"]},
        constants,
        kernels,
        thunks,
        None if values["border"] is None else _border_of(values["border"]),
        values["flush_subnormals"],
        values["nanoseconds"] / 1e9,
        {index: (a["largest"], None) for index, a in enumerate(allocations) if a["largest"]},
    )


def _arrays(leaves: Sequence[Values]) -> tuple[Shape, ...]:
    """The shapes of arrays. Files of earlier versions list tokens, too."""
    return tuple(shape for shape in map(shape_of, leaves) if shape.is_array)


def _allocation_of(index: int, a: Values) -> Allocation:
    if a["kind"] not in _KINDS:
        raise InputError(f"allocation {index} is of the unknown kind {a['kind']!r}")
    number, result = (-1 if a[name] is None else a[name] for name in ("number", "result"))
    shape = None if a["shape"] is None else shape_of(a["shape"])
    return Allocation(index, _KINDS[a["kind"]], a["size"], a["alignment"], number, shape, result=result)


def _border_of(values: Values) -> DynamicBorder:
    def dimensions(found: list[Values]) -> tuple[DynamicDimension, ...]:
        return tuple(DynamicDimension(d["leaf"], d["dimension"], d["size"]) for d in found)

    shapes = tuple(shape_of(s) for s in values["shapes"])
    return DynamicBorder(dimensions(values["parameters"]), dimensions(values["results"]), shapes, values["outputs"])
