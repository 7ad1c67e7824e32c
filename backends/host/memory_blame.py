"""Why a kernel gives other results with other junk around its arguments: what it reads, or does not write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from ...hlo.errors import TestbedError
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ...thunks.kinds import KernelThunk
from ..base import MemoryFault
from .memory_areas import FIRST, SECOND, Place, Prepared
from .red_zones import Overrun, RedZoneError

MOST_CAUSES = 3
"""Causes that an error names."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Bytes on which a result depends, but must not. argument: beside or in which they are; None: no argument's. stack:
    that they are on the call stack.

    offset: of one of these bytes, from the beginning of the argument; None: all over it. unwritten: the result's own,
    which the kernel did not write. result, element, count: the argument that depends on it, the number of the first
    element in memory, and how many elements do.
    """

    argument: Place | None
    offset: int | None
    unwritten: bool
    result: Place
    element: int
    count: int
    stack: bool = False

    def __str__(self) -> str:
        what = f"{_element(self.result.shape, self.element)} of {self.result}"
        more = f" and {self.count - 1} more elements" if self.count > 1 else ""
        if self.unwritten:
            return f"{what}{more} not written"
        if self.stack:
            where = "what was on its call stack before"
        elif self.argument is None:
            where = "what is in no argument and not beside one, as a value that it never sets"
        elif self.offset is None:
            where = f"what was in {self.argument} before it was written"
        else:
            where = f"the byte at offset {self.offset} of {self.argument}, which is outside"
        return f"{what}{more} depend{'' if self.count > 1 else 's'} on {where}"


class MemoryCheckError(MemoryFault):
    """A kernel or copy reads memory that nobody wrote or that is not its own, or does not write all of its result.

    causes: what a kernel's results depend on; empty where a step reads memory that no step wrote.
    """

    def __init__(self, kernel: str, instruction: str, message: str, causes: tuple[Cause, ...] = ()):
        self.causes = causes
        super().__init__(kernel, instruction, message, _REMEDY if causes else _PLAN_REMEDY)


_REMEDY = "see its IR with ./testbed stages; the stack that emitted it is at fault"
_PLAN_REMEDY = "see the buffers with ./testbed buffers; the plan or the thunks are at fault"


def _element(shape: Shape | None, number: int) -> str:
    """The index of an element by its number in memory."""
    if shape is None or not shape.rank:
        return f"element {number}"
    order = shape.minor_to_major[::-1]
    found = dict(zip(order, np.unravel_index(number, [shape.dims[d] for d in order])))
    return f"element [{','.join(str(int(found[d])) for d in range(shape.rank))}]"


@dataclass(frozen=True, eq=False, slots=True)
class Scene:
    """A kernel that behaved badly, and its two areas as it left them. operand: what an argument held before it.

    again: calls the kernel in the second area as it is, with the junk of a run on the call stack.
    """

    prepared: Prepared
    areas: tuple[np.ndarray, np.ndarray]
    operand: Callable[[Place], np.ndarray]
    again: Callable[[int], None]

    def error(self) -> TestbedError:
        thunk, places = self.prepared.thunk, self.prepared.places
        overruns = tuple(self._overruns())
        if overruns:
            return RedZoneError(thunk, overruns)
        kept = [self.areas[FIRST][p.at : p.at + p.compared].copy() for p in places]
        causes = tuple(islice(self._causes(kept), MOST_CAUSES))
        return _error(thunk, causes)

    def _overruns(self) -> Iterator[Overrun]:
        for run in (FIRST, SECOND) if self.prepared.twice else (FIRST,):
            found = list(self._overruns_of(run))
            if found:
                yield from found
                return

    def _overruns_of(self, run: int) -> Iterator[Overrun]:
        area = self.areas[run]
        for place in self.prepared.places:
            pieces = [(begin, area[begin : begin + size] != place.junk[run]) for begin, size in place.zones]
            if not place.written:
                pieces.insert(1, (place.at, area[place.at : place.at + place.size] != self.operand(place)))
            for begin, changed in pieces:
                bytes_ = np.flatnonzero(changed)
                if bytes_.size:
                    first, last = (int(n) + begin - place.at for n in (bytes_[0], bytes_[-1]))
                    yield Overrun(place.number, place.size, place.written, first, last)

    def _causes(self, kept: list[np.ndarray]) -> Iterator[Cause]:
        if (found := self._difference(kept, 0, 0, None)) is not None:  # with nothing changed
            yield Cause(None, None, False, *found)
            return
        if (found := self._difference(kept, 0, 0, None, SECOND)) is not None:
            yield Cause(None, None, False, *found, stack=True)
        for place in self.prepared.places:
            for begin, size in (*place.zones, *([] if place.given else [(place.at, place.size)])):
                found = self._difference(kept, begin, size, place)
                if found is not None:
                    beside = begin != place.at
                    offset = self._byte(kept, begin, size, place) - place.at if beside else None
                    yield self._cause(place, offset, *found)

    def _cause(self, place: Place, offset: int | None, result: Place, element: int, count: int) -> Cause:
        unwritten = False
        if offset is None and place is result and place.shape is not None:
            width = place.shape.dtype.bytes
            at = place.at + element * width
            pairs = zip(self.areas, (place.junk[FIRST], place.junk[SECOND]))
            unwritten = all((area[at : at + width] == junk).all() for area, junk in pairs)
        return Cause(place, offset, unwritten, result, element, count)

    def _byte(self, kept: list[np.ndarray], begin: int, size: int, place: Place) -> int:
        """One byte of a zone on which results depend."""
        while size > 1:
            half = size // 2
            near, far = (begin, half), (begin + half, size - half)
            if begin < place.at:  # those next to the argument first
                near, far = far, near
            if self._difference(kept, *near, place) is not None:
                begin, size = near
            elif self._difference(kept, *far, place) is not None:
                begin, size = far
            else:  # it depends on several bytes together
                break
        return begin if begin > place.at else begin + size - 1

    def _difference(
        self, kept: list[np.ndarray], begin: int, size: int, place: Place | None, stack: int = FIRST
    ) -> tuple[Place, int, int] | None:
        """The first result, and of that the first element and the number of elements, that are not as in the first run
        where some bytes beside the arguments, or the call stack, hold the junk of the second.
        """
        area = self.areas[SECOND]
        for other in self.prepared.places:
            area[other.begin : other.end] = other.junk[FIRST]
            if other.given:
                area[other.at : other.at + other.size] = self.operand(other)
        if place is not None:
            area[begin : begin + size] = place.junk[SECOND]
        self.again(stack)
        for other, before in zip(self.prepared.places, kept):
            if other.compared and other.shape is not None:
                bytes_ = np.flatnonzero(area[other.at : other.at + other.compared] != before)
                if bytes_.size:
                    elements = np.unique(bytes_ // other.shape.dtype.bytes)
                    return other, int(elements[0]), int(elements.size)
        return None


def _error(thunk: KernelThunk, causes: tuple[Cause, ...]) -> MemoryCheckError:
    """The words in front name the kind of the fault: a case that is made smaller keeps it by them."""
    if all(cause.unwritten for cause in causes):
        what = "elements of a result stay as they were behind kernel"
    elif all(c.offset is None and (c.stack or c.argument is not None) for c in causes):
        what = "memory is read before it is written by kernel"
    else:
        what = "memory that is not its own is read by kernel"
    places = "; ".join(map(str, causes)) or "two runs of it differ, but not once more"
    return MemoryCheckError(thunk.symbol, thunk.name, f"{what} {thunk.symbol} ({thunk.name}): {places}", causes)
