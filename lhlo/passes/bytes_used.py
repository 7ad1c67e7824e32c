"""Sets of bytes of allocations, and which of them a program's steps read and write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlir import ir

from ...hlo.errors import VerificationError
from ...planning.plan import BufferSlice
from ..attributes import value_of
from ..memrefs import shape_of_memref
from ..program import Places, uses_of
from ..read import location_of
from ..table import OPCODE


class Bytes:
    """A set of bytes: disjoint ranges per allocation, in order."""

    def __init__(self, slices: Iterable[BufferSlice] = ()):
        self.ranges: dict[int, list[tuple[int, int]]] = {}
        for place in slices:
            self.add(place)

    def copy(self) -> Bytes:
        new = Bytes()
        new.ranges = {a: list(r) for a, r in self.ranges.items()}
        return new

    def add(self, place: BufferSlice) -> None:
        if not place.size:
            return
        start, end = place.offset, place.offset + place.size
        kept = []
        for low, high in self.ranges.get(place.allocation, ()):
            if high < start or end < low:
                kept.append((low, high))
            else:
                start, end = min(start, low), max(end, high)
        self.ranges[place.allocation] = sorted([*kept, (start, end)])

    def remove(self, place: BufferSlice) -> None:
        start, end = place.offset, place.offset + place.size
        kept = []
        for low, high in self.ranges.get(place.allocation, ()):
            kept += [(a, b) for a, b in ((low, min(high, start)), (max(low, end), high)) if a < b]
        self.ranges[place.allocation] = kept

    def overlaps(self, place: BufferSlice) -> bool:
        start, end = place.offset, place.offset + place.size
        return any(low < end and start < high for low, high in self.ranges.get(place.allocation, ()))

    def contains(self, place: BufferSlice) -> bool:
        start, end = place.offset, place.offset + place.size
        return not place.size or any(
            low <= start and end <= high for low, high in self.ranges.get(place.allocation, ())
        )

    def update(self, other: Bytes) -> None:
        for place in other.slices():
            self.add(place)

    def keep(self, other: Bytes) -> None:
        """Keep the bytes that are in both sets."""
        both = Bytes()
        for a, ranges in self.ranges.items():
            for low, high in ranges:
                for start, end in other.ranges.get(a, ()):
                    both.add(BufferSlice(a, max(low, start), max(0, min(high, end) - max(low, start))))
        self.ranges = both.ranges

    def slices(self) -> Iterator[BufferSlice]:
        for a, ranges in self.ranges.items():
            yield from (BufferSlice(a, low, high - low) for low, high in ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bytes) and set(self.slices()) == set(other.slices())


def place_of(value: ir.Value, places: Places) -> BufferSlice:
    return places.slice_of(value, shape_of_memref(str(value.type)).bytes)


def is_step(op: ir.Operation) -> bool:
    """Whether an op is a copy or a kernel: a step without steps inside."""
    return op.name == "memref.copy" or op.name in OPCODE


def reads(op: ir.Operation, places: Places) -> list[BufferSlice]:
    """The bytes that a step reads; for a loop or branch, its predicate or selector."""
    return [place_of(value, places) for value, written in uses_of(op) if not written]


def writes(op: ir.Operation, places: Places) -> list[BufferSlice]:
    """The bytes that a step writes, scratch memory among them."""
    found = [place_of(value, places) for value, written in uses_of(op) if written]
    scratch = scratch_of(op)
    return found if scratch is None else [*found, scratch]


def scratch_of(op: ir.Operation) -> BufferSlice | None:
    """The scratch memory of a kernel; None if it has none, or the op is no kernel."""
    if op.name in OPCODE and "scratch" in op.attributes:
        return BufferSlice(*value_of(op.attributes["scratch"]))
    return None


def nested(op: ir.Operation) -> list[ir.Block]:
    """The blocks of steps inside a loop or branch, in text order."""
    if op.name == "lhlo.while":
        return [region.blocks[0] for region in op.regions]
    if op.name == "lhlo.case":
        branches = [o.operation for o in op.regions[0].blocks[0].operations]
        return [b.regions[0].blocks[0] for b in branches if b.name == "lhlo.branch"]
    return []


def written_in(block: ir.Block, places: Places) -> Bytes:
    """All bytes that the steps of a block write, nested ones included."""
    found = Bytes()
    for view in block.operations:
        op = view.operation
        for place in writes(op, places):
            found.add(place)
        for inner in nested(op):
            found.update(written_in(inner, places))
    return found


def undefined(op: ir.Operation, place: BufferSlice) -> VerificationError:
    name = op.attributes["name"].value if "name" in op.attributes else op.name
    end = place.offset + place.size
    return VerificationError(
        f"'{name}' reads bytes {place.offset} to {end} of allocation {place.allocation}, which nothing has written "
        "on every way there",
        location=location_of(op),
        remedy="write them first, or make the argument a parameter",
    )
