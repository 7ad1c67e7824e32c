"""The checking mode: kernels run with junk around their arguments, in their results and in their scratch memory.

Each kernel runs twice on copies of its arguments, with other junk each time: NaN and a finite number where the type is
a float. If its results differ, it reads memory that is not its own, or leaves a part of a result unwritten. What nobody
wrote in the memory for temporaries and results is junk, too, and a kernel that reads it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from ...codegen.cache import ObjectCache
from ...codegen.load import LoadedCode
from ...ffi.calls import raise_failed
from ...hlo.errors import InputError
from ...planning.allocation import AllocationKind, BufferSlice
from ...planning.plan import KernelRequest, Plan
from ...thunks.image import Image
from ...thunks.kinds import Access, ConditionalThunk, CopyThunk, KernelThunk, SequentialThunk, Thunk, WhileThunk
from ...thunks.runner import COPY_ARITY, Runner, runner
from ..base import BackendError
from .addresses import address_of, view
from .memory import POOL
from .memory_areas import ARENA_JUNK, FIRST, SECOND, STATUS_WORD, Place, Prepared, prepared
from .memory_blame import MemoryCheckError, Scene
from .red_zones import note_kernel

PAGE = 4096
"""The areas of the two runs begin at the same place of a page, so that addresses decide nothing."""


class MemoryChecks:
    """What the runs of an executable share: the tables of its kernels. plan: that it was compiled from."""

    def __init__(self, code: LoadedCode, image: Image, plan: Plan | None, cache: ObjectCache | None):
        if plan is None:
            what = "memory is not checked in runs of an executable from a file, which has no plan"
            raise InputError(what, remedy="compile the module in this process")
        self.image = image
        self._code, self._cache = code, cache
        self._requests: Mapping[str, KernelRequest] = {request.name: request for request in plan.kernels}
        self._handlers = frozenset(kernel.symbol for kernel in image.kernels if kernel.emitter == "ffi")
        self._prepared: dict[int, Prepared] = {}  # by the identity of a thunk, which the image keeps

    @cached_property
    def runner(self) -> Runner:
        """The native runner; a kernel that takes a range has two more arguments."""
        kernels = [t for t in self.image.thunks.walk() if isinstance(t, KernelThunk)]
        arities = {len(t.arguments) + (2 if t.split else 0) for t in kernels}
        return runner(arities | {COPY_ARITY, 4}, self._cache)

    @cached_property
    def area_bytes(self) -> int:
        kernels = (t for t in self.image.thunks.walk() if isinstance(t, KernelThunk))
        return max((self.of(thunk).size for thunk in kernels), default=0)

    def of(self, thunk: KernelThunk) -> Prepared:
        found = self._prepared.get(id(thunk))
        if found is None:
            request = self._requests.get(thunk.symbol)
            if request is None:
                what = f"memory is not checked around kernel {thunk.symbol} ({thunk.name}), which is not of the plan"
                raise InputError(what, remedy="leave out shadow kernels")
            function = self._code.address(thunk.symbol)
            twice = thunk.symbol not in self._handlers
            found = prepared(thunk, request, function, self.runner.copy, twice)
            self._prepared[id(thunk)] = found
        return found


class MemoryRun:
    """An observer of the executor, for one run. address: number of an allocation → its address."""

    def __init__(self, checks: MemoryChecks, address: Callable[[int], int]):
        self._checks, self._address = checks, address
        run = checks.runner
        self._run = run.run_flushing if checks.image.flush_subnormals else run.run
        size = -(-checks.area_bytes // PAGE) * PAGE
        block = POOL.allocate(2 * size + PAGE)
        begin = -address_of(block) % PAGE
        self._areas = block[begin : begin + size], block[begin + size : begin + 2 * size]
        self._places = address_of(self._areas[FIRST]), address_of(self._areas[SECOND])
        self._bound: dict[int, tuple[np.ndarray, int]] = {}
        self._written: dict[int, np.ndarray] = {}
        self._begun = False

    @cached_property
    def _bases(self) -> np.ndarray:
        """The addresses of the allocations, which are known once the run has begun."""
        return np.array([self._address(a.index) for a in self._checks.image.allocations], np.uint64)

    def _begin(self) -> None:
        """Fill memory that holds nothing yet with junk."""
        for a in self._checks.image.allocations:
            if a.kind in (AllocationKind.TEMPORARY, AllocationKind.RESULT) and a.size:
                self._written[a.index] = np.zeros(a.size, np.bool_)
                view(int(self._bases[a.index]), a.size)[:] = ARENA_JUNK[FIRST]

    def __call__(self, thunk: Thunk, run: Callable[[], object]) -> None:
        """Run a kernel in the areas, any other thunk normally. Raises MemoryCheckError or RedZoneError."""
        if not self._begun:
            self._begun = True
            self._begin()
        if isinstance(thunk, KernelThunk):
            self._kernel(thunk)
        elif isinstance(thunk, CopyThunk):
            run()
            self._copied(thunk)
        elif isinstance(thunk, WhileThunk | SequentialThunk):
            run()
        elif isinstance(thunk, ConditionalThunk):
            self._needs(thunk, thunk.selector, "its selector")
            run()
        else:
            for use in thunk.uses:
                if use.access is Access.READ:
                    self._needs(thunk, use.slice, "what it reads")
            run()
            for use in thunk.uses:
                if use.access is Access.WRITE:
                    self._note(use.slice)

    # -- kernels -------------------------------------------------------------------------------------------------------
    def _kernel(self, thunk: KernelThunk) -> None:
        this = self._checks.of(thunk)
        note_kernel(thunk)
        bound = self._bound.get(id(thunk))
        if bound is None:
            for place in this.places:
                if place.given:
                    self._needs(thunk, place.source, place)
            bound = self._bound[id(thunk)] = this.table.bound(self._places, self._bases)
        words, address = bound
        self._call(this, address)
        if this.twice is False:
            raise_failed()
        if words[STATUS_WORD]:
            raise self._scene(this).error()
        for place in this.places:
            if place.written:
                self._note(place.source, place.shape is not None)

    def _call(self, this: Prepared, address: int) -> None:
        if self._run(address) < 0:
            raise BackendError(f"the runner knows no kernel of {len(this.places)} arguments")

    def _scene(self, this: Prepared) -> Scene:
        tables = [this.kernel_only(junk).bound(self._places, self._bases) for junk in ARENA_JUNK]

        def again(stack: int) -> None:
            self._call(this, tables[stack][1])

        def operand(place: Place) -> np.ndarray:
            at = int(self._bases[place.source.allocation]) + place.source.offset
            return view(at, place.size)

        return Scene(this, self._areas, operand, again)

    # -- what is written -----------------------------------------------------------------------------------------------
    def _needs(self, thunk: Thunk, part: BufferSlice, what: Place | str) -> None:
        """Raise an error if a thunk reads bytes that no other one wrote in this run. what: they are to the thunk."""
        written = self._written.get(part.allocation)
        if written is None:
            return
        there = written[part.offset : part.offset + part.size]
        if not there.all():
            missing = np.flatnonzero(~there)
            symbol = thunk.symbol if isinstance(thunk, KernelThunk) else ""
            name = getattr(thunk, "name", "")
            where = f"{symbol} ({name})" if symbol else name
            raise MemoryCheckError(
                symbol,
                name,
                f"memory that no step has written is read by {where}: {what}, {missing.size} bytes from offset "
                f"{int(missing[0])} on, in allocation {part.allocation}",
            )

    def _note(self, part: BufferSlice, written: bool = True) -> None:
        """Bytes are written now, or, behind a kernel that had them for scratch memory, hold nothing."""
        bits = self._written.get(part.allocation)
        if bits is None:
            return
        bits[part.offset : part.offset + part.size] = written
        if not written:
            view(int(self._bases[part.allocation]) + part.offset, part.size)[:] = ARENA_JUNK[FIRST]

    def _copied(self, thunk: CopyThunk) -> None:
        """A copy of what nobody wrote is no more than that."""
        target, source = (self._written.get(s.allocation) for s in (thunk.destination, thunk.source))
        if target is None:
            return
        begin, end = thunk.source.offset, thunk.source.offset + thunk.source.size
        there = slice(thunk.destination.offset, thunk.destination.offset + thunk.destination.size)
        target[there] = True if source is None else source[begin:end]
