"""The interpreted executor: a native runner calls the kernels, copies bytes and follows the control flow.

In a long loop the runner returns to Python every few milliseconds, so that Ctrl-C works; otherwise no Python code runs
until the end. With an observer, every thunk is a separate call and Python follows the control flow.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from ..codegen.cache import ObjectCache
from .events import MOST_EVENTS, EventBuffer
from .kinds import KernelThunk, SequentialThunk, Thunk
from .runner import COPY_ARITY, STOPPED, Runner, runner
from .table import STOP_WORD, Branch, InOrder, Loop, Node, Observed, Run, Table, build_table

Observer = Callable[[Thunk, Callable[[], object]], None]
"""observer(thunk, run): called for each thunk, also for nested ones; it must call run() exactly once."""

LOOP_SECONDS = 0.02
"""Target time in seconds that a loop's iterations take before Python handles signals."""

MOST_ROUNDS = 4096
"""Upper limit of iterations per native call: large enough to amortise the return to Python, small enough that Ctrl-C
works in a loop whose iterations get slower.
"""


WATCHED_FROM = 64
"""Iterations, or returns of the runner to Python, after which a loop is watched, and again whenever they double."""


class Stopped(Exception):
    """`Frame.stop` ended a run with an observer."""


class Executor:
    """Thunks that are ready to run. It is immutable: threads share it and each uses its own Frame.

    resolve: symbol → address. variable: allocations whose addresses change between runs. flush_subnormals: kernels
    treat subnormals as zero. most_events: events that a frame keeps. function: the address of the runner's function.
    """

    def __init__(
        self,
        root: SequentialThunk,
        resolve: Callable[[str], int],
        variable: Collection[int],
        cache: ObjectCache | None = None,
        flush_subnormals: bool = True,
        most_events: int = MOST_EVENTS,
    ):
        kernels = [t for t in root.walk() if isinstance(t, KernelThunk)]
        arities = {len(t.arguments) for t in kernels}
        split = {len(t.arguments) for t in kernels if t.split is not None}
        self.root = root
        self.variable = frozenset(variable)
        self._resolve, self._most_events = resolve, most_events
        self.runner: Runner = runner(arities | {COPY_ARITY}, cache, split)
        self._run = self.runner.run_flushing if flush_subnormals else self.runner.run
        self._table = self._build(observed=False)
        suffix = "_flushing" if flush_subnormals else ""
        self.function = self.runner.code.address(f"testbed_run_table{suffix}")

    @property
    def table(self) -> Table:
        """The table of a run without an observer."""
        return self._table

    def _build(self, observed: bool) -> Table:
        return build_table(self.root, self._resolve, self.runner, observed)

    def frame(self, bases: np.ndarray, observer: Observer | None = None) -> Frame:
        """A frame on allocations. bases: their addresses (uint64), by index. observer: called for each thunk."""
        table = self._build(observed=True) if observer else self._table
        return Frame(table, self._run, self.variable, bases, observer, self._most_events)


class Frame:
    """A copy of the table with addresses filled in. It serves one run at a time.

    events: what its profile thunks note; None if it has none.
    """

    def __init__(
        self,
        table: Table,
        run: Callable[[int], int],
        variable: Collection[int],
        bases: np.ndarray,
        observer: Observer | None,
        most_events: int = MOST_EVENTS,
    ):
        self._words = np.array(table.words, np.uint64)
        self._run = run
        self.address: int = self._words.ctypes.data
        self._words[list(table.internal)] += np.uint64(self.address)
        self.events = EventBuffer(most_events) if table.events else None
        if self.events is not None:
            self._words[list(table.events)] = self.events.address
        self._fill(_Patch(table, lambda allocation: True), bases)
        self._patch = _Patch(table, lambda allocation: allocation in variable)
        self._cell_words = np.array(table.cells, np.intp)
        self._cell_addresses: list[int] = []
        self._cells: list[ctypes.c_uint8] = []
        self._bind_cells()
        self._observer = observer
        self.run: Callable[[], object] = self._bound(table.root)

    def rebind(self, bases: np.ndarray) -> None:
        """Read the addresses of the variable allocations again."""
        self._fill(self._patch, bases)
        self._bind_cells()

    def stop(self, wanted: bool = True) -> None:
        """Let a run in another thread end before its next kernel, with undefined results. False: let runs go on again.

        A run with an observer raises Stopped.
        """
        self._words[STOP_WORD] = wanted

    def _fill(self, patch: _Patch, bases: np.ndarray) -> None:
        self._words[patch.words] = bases[patch.allocations] + patch.offsets

    def _bind_cells(self) -> None:
        addresses = self._words[self._cell_words].tolist() if len(self._cell_words) else []
        if addresses != self._cell_addresses:
            self._cells[:] = [ctypes.c_uint8.from_address(a) for a in addresses]
            self._cell_addresses = addresses

    def _bound(self, node: Node) -> Callable[[], object]:
        match node:
            case Run() if node.rounds:
                return self._looping(node)
            case Run() if self._observer is None:
                return functools.partial(self._run, self._place(node.descriptor))
            case Run():
                return functools.partial(self._run_observed, self._place(node.descriptor))
            case InOrder():
                return _in_order([self._bound(n) for n in node.nodes])
            case Observed():
                assert self._observer is not None
                return functools.partial(self._observer, node.thunk, self._bound(node.node))
            case Loop():
                return self._loop(node)
            case Branch():
                return self._branch(node)

    def _run_observed(self, address: int) -> None:
        if self._run(address) == STOPPED:  # Python follows the control flow, which depends on what was not run
            raise Stopped

    def _place(self, word: int) -> int:
        return self.address + 8 * word

    def _looping(self, node: Run) -> Callable[[], None]:
        """A call of the runner that limits each loop to the number of iterations that should take LOOP_SECONDS.

        The estimate comes from the time since the loop's last limit was set, which includes the loops inside it.
        """
        words, run, clock, seen = self._words, self._run, time.perf_counter, [r.left for r in node.rounds]
        address, begin = self._place(node.descriptor), self._place(node.begin)
        limits = [1] * len(seen)

        def looping() -> None:
            words[node.descriptor], words[seen] = begin, limits  # an interrupted run leaves other values there
            given, pauses = [clock()] * len(seen), [0] * len(seen)
            watched: dict[int, _Watched] = {}
            while (number := run(address) - 1) >= 0:
                loop, before = node.rounds[number], watched.pop(number, None)
                for other in [n for n in watched if number in node.rounds[n].outer]:
                    del watched[other]  # a loop around it has gone on
                around = words[[seen[n] for n in loop.outer]].tolist()
                if before is not None:
                    if before.around == around and before.memory == self._digest(loop.written):
                        words[node.descriptor] = self._place(loop.left + 2)
                        continue
                    words[seen[number]], given[number] = limits[number], clock()
                    continue
                pauses[number] += 1
                if pauses[number] >= WATCHED_FROM and pauses[number].bit_count() == 1:
                    watched[number] = _Watched(around, self._digest(loop.written))
                    words[seen[number]] = 1
                    continue
                seconds = max(clock() - given[number], 1e-9)
                limit = max(1, min(8 * limits[number], MOST_ROUNDS, int(limits[number] * LOOP_SECONDS / seconds)))
                words[seen[number]] = limits[number] = limit
                given[number] = clock()

        return looping

    def _digest(self, written: Collection[tuple[int, int]]) -> bytes:
        """A digest of memory: equal ones mean equal bytes. written: as in Round."""
        digest = hashlib.blake2b(digest_size=32)
        for word, size in written:
            if size:
                digest.update((ctypes.c_uint8 * size).from_address(int(self._words[word])))
        return digest.digest()

    def _loop(self, node: Loop) -> Callable[[], None]:
        condition, body = self._bound(node.condition), self._bound(node.body)
        cells, cell = self._cells, node.predicate

        def loop() -> None:
            condition()
            iterations, before = 0, b""
            while cells[cell].value:
                if before and before == self._digest(node.written):
                    break
                iterations += 1
                watched = iterations >= WATCHED_FROM and iterations.bit_count() == 1
                before = self._digest(node.written) if watched else b""
                body()
                condition()

        return loop

    def _branch(self, node: Branch) -> Callable[[], None]:
        branches = [self._bound(b) for b in node.branches]
        cells, cell, last = self._cells, node.selector, len(branches) - 1

        def by_pred() -> None:
            branches[0 if cells[cell].value else 1]()

        def by_index() -> None:
            index = ctypes.c_int32.from_address(ctypes.addressof(cells[cell])).value
            branches[index if 0 <= index <= last else last]()

        return by_pred if node.selector_is_pred else by_index


@dataclass(frozen=True, slots=True)
class _Watched:
    """A loop before an iteration. around: rounds left of the loops around it; memory: digest of all that it writes.

    If an iteration leaves this memory as it was, all others will: kernels depend on memory only. The loop then ends
    with this state, as in the evaluator. The rounds tell whether it is still the same run of the loop.
    """

    around: list[int]
    memory: bytes


class _Patch:
    """The words that receive the address of an allocation plus an offset."""

    def __init__(self, table: Table, wanted: Callable[[int], bool]):
        chosen = [r for r in table.references if wanted(r.allocation)]
        self.words = np.array([r.word for r in chosen], np.intp)
        self.allocations = np.array([r.allocation for r in chosen], np.intp)
        self.offsets = np.array([r.offset for r in chosen], np.uint64)


def _in_order(steps: list[Callable[[], object]]) -> Callable[[], None]:
    def run() -> None:
        for step in steps:
            step()

    return run
