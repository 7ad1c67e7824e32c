"""Transpositions of pixels of two to four channels to a plane of each: vectors of neighbours are loaded, of which those
of a channel are shuffled together. Strided loads take several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.access import Access
from ..core.builder import Builder, Index, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Buffer
from ..loops.elemental import Elemental
from ..loops.form import Answer, Fits, fewer
from ..loops.ranges import Steps, outer_loops
from ..loops.view import Subject, View
from .padded_rows import NARROW_BYTES

MAXIMUM_CHANNELS = 4
"""Channels of a pixel."""

MINIMUM_ELEMENTS = 1 << 12
"""Elements of an array."""


@dataclass(frozen=True, slots=True)
class Planes:
    """around: dimensions outside planes of `size` pixels, with their strides in the source; distance: of the planes."""

    source: Buffer
    around: tuple[tuple[int, int], ...]
    channels: int
    size: int
    distance: int
    lanes: int

    def emit(self, e: Elemental, result: Buffer, steps: Steps | None) -> None:
        b, size, element = e.b, result.dtype.bytes, raw_type(e.b.types, result.dtype)
        vector = b.vector(self.lanes, element)
        origin, target = (e.pointers[x.argument] for x in (self.source, result))
        order = [d for d, _ in self.around]
        inside = () if steps is None else steps.dimensions
        with outer_loops(b, steps, inside, result.dims, order, Unroll.NONE) as places:
            at = [places[d] for d in order]
            first = b.offset(at, (stride for _, stride in self.around))
            plane = b.offset(at, (result.strides[d] for d in order))
            with b.loop(0, self.size, self.lanes, unroll=Unroll.NONE) as loop:
                pixel: Index = loop.index
                if self.size % self.lanes:  # the last vector overlaps the one before it
                    pixel = b.least(pixel, self.size - self.lanes)
                start = b.add(first, b.mul(pixel, self.channels))
                read = [b.pointer(origin, b.add(start, n * self.lanes), element) for n in range(self.channels)]
                rows = [b.load(place, vector, size) for place in read]
                for channel in range(self.channels):
                    to = b.add(b.add(plane, pixel), channel * self.distance)
                    b.store(self._taken(b, rows, channel), b.pointer(target, to, element), size)

    def _taken(self, b: Builder, rows: Sequence[Value], channel: int) -> Value:
        """Each `channels`-th element of all rows from one on."""
        taken, lanes = rows[0], self.lanes
        wanted = [channel + self.channels * n for n in range(lanes)]
        for k in range(1, len(rows)):
            own = [n if k > 1 else place % lanes for n, place in enumerate(wanted)]
            mask = [
                lanes + place % lanes if place // lanes == k else old for place, old in zip(wanted, own, strict=True)
            ]
            taken = b.shuffled(mask, taken, rows[k])
        return taken


def planes_of(facts: Facts, result: Buffer, source: Access) -> Planes | str:
    """The planes of a result that is a transposition of an array; why it is another one."""
    dtype, dims, strides = result.dtype, result.dims, source.strides(len(result.dims))
    if dtype is DType.PRED or dtype.is_complex or dtype.bits < 8:
        return f"there are no vectors of {dtype.value}"
    if result.shape.size < MINIMUM_ELEMENTS:
        return fewer(result.shape.size, "elements", MINIMUM_ELEMENTS)
    inner = result.order[::-1]
    channels, size = strides[inner[0]], 1
    while inner and strides[inner[0]] == channels * size:
        size *= dims[inner.pop(0)]
    found = [d for d in inner if strides[d] == 1]
    vector = max(facts.vector_bits, 128) // 8
    narrow = min(vector, facts.processor.narrow_shuffle_bytes)
    lanes = (narrow if dtype.bytes <= NARROW_BYTES else vector) // dtype.bytes
    if not 2 <= channels <= MAXIMUM_CHANNELS or not found or dims[found[0]] != channels:
        return f"{channels} neighbours in the array are not the 2 to {MAXIMUM_CHANNELS} channels of a pixel"
    if size < 2 * lanes:
        return fewer(size, "pixels", 2 * lanes)
    around = tuple((d, strides[d]) for d in reversed(inner) if d != found[0])
    return Planes(source.buffer, around, channels, size, result.strides[found[0]], lanes)


def fits(view: View, subject: Subject) -> Answer:
    source = subject.reads.transposed
    if source is None:
        return "it is no transposition of one array"
    planes = planes_of(view.facts, subject.first, source)
    if isinstance(planes, str):
        return planes
    around = [d for d, _ in planes.around]
    return Fits(planes) if {*view.numbered} <= {*around} else "steps number pixels or channels"


def emit(e: Elemental, subject: Subject, planes: Planes, steps: Steps | None) -> None:
    planes.emit(e, subject.first, steps)
