"""Executors of thunks. The interpreted one: a native runner calls kernels and follows the control flow.

Where there is a compiled host program (host_program.py), it takes the runner's place. In a long loop either returns to
Python every few milliseconds, so that Ctrl-C works; otherwise no Python code runs until the end. Profile thunks note
times in the frame's buffer. With an observer, each thunk is a separate call and Python follows the control flow.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Collection, Container

from ..codegen.cache import ObjectCache
from ..hlo.later import np
from .events import MOST_EVENTS, EventBuffer
from .host_program import HostFrame, HostProgram
from .kinds import KernelThunk, SequentialThunk, Thunk
from .rounds import WATCHED_FROM, Native, Round, digest_of, paced
from .runner import COPY_ARITY, STOPPED, Runner, runner
from .table import (
    PARTITION_WORD,
    REPLICA_WORD,
    STOP_WORD,
    Branch,
    InOrder,
    Loop,
    Node,
    Observed,
    Run,
    Table,
    build_table,
)

Observer = Callable[[Thunk, Callable[[], object]], None]
"""observer(thunk, run): called for each thunk, also for nested ones; it must call run() exactly once."""


class Stopped(Exception):
    """`Frame.stop` ended a run with an observer."""


class Executor:
    """Thunks that are ready to run. It is immutable: threads share it and each uses its own Frame.

    resolve: symbol → address. variable: allocations whose addresses change between runs. flush_subnormals: kernels
    treat subnormals as zero. most_events: events that a frame keeps. program: what runs the thunks where nobody
    observes them; None: the runner does. handlers: symbols of kernels that call handlers.
    """

    def __init__(
        self,
        root: SequentialThunk,
        resolve: Callable[[str], int],
        variable: Collection[int],
        cache: ObjectCache | None = None,
        flush_subnormals: bool = True,
        most_events: int = MOST_EVENTS,
        program: HostProgram | None = None,
        handlers: Container[str] = (),
    ):
        self.root, self.program, self._handlers = root, program, handlers
        self.variable = frozenset(variable)
        self._resolve, self._cache, self._flush = resolve, cache, flush_subnormals
        self._most_events = most_events
        if program is None:
            self.table  # noqa: B018  a missing kernel is an error before anything runs

    @functools.cached_property
    def runner(self) -> Runner:
        """The native runner, for kernels of this program. It serves observers, too."""
        kernels = [t for t in self.root.walk() if isinstance(t, KernelThunk)]
        split = {len(t.arguments) for t in kernels if t.split is not None}
        return runner({len(t.arguments) for t in kernels} | {COPY_ARITY}, self._cache, split)

    @property
    def function(self) -> int:
        """The address of the runner's function."""
        return self.runner.code.address(f"testbed_run_table{'_flushing' if self._flush else ''}")

    @functools.cached_property
    def table(self) -> Table:
        """The table of a run without an observer."""
        return self._build(observed=False)

    @functools.cached_property
    def observed_table(self) -> Table:
        """The table of runs with an observer."""
        return self._build(observed=True)

    def _build(self, observed: bool) -> Table:
        return build_table(self.root, self._resolve, self.runner, observed, self._handlers)

    def frame(self, bases: np.ndarray, observer: Observer | None = None) -> Frame | HostFrame:
        """A frame on allocations. bases: their addresses (uint64), by index. observer: called for each thunk."""
        if observer is None and self.program is not None:
            return self.program.frame(bases, self.variable, self._most_events)
        table = self.observed_table if observer else self.table
        run = self.runner.run_flushing if self._flush else self.runner.run
        return Frame(table, run, self.variable, bases, observer, self._most_events)


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

    def place(self, replica: int, partition: int) -> None:
        """Say which device the frame is."""
        self._words[REPLICA_WORD], self._words[PARTITION_WORD] = replica, partition

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

    def _looping(self, node: Run) -> Callable[[], object]:
        """A call of the runner that returns to Python in long loops."""
        words, address = self._words, self._place(node.descriptor)

        def restart() -> None:
            words[node.descriptor] = self._place(node.begin)

        def leave(loop: Round) -> None:
            words[node.descriptor] = self._place(loop.left + 2)

        return paced(
            Native(words, functools.partial(self._run, address), restart, leave), node.rounds, [1] * len(node.rounds)
        )

    def _digest(self, written: Collection[tuple[int, int]]) -> bytes:
        return digest_of(self._words, written)

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
                watched = node.settles and iterations >= WATCHED_FROM and iterations.bit_count() == 1
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
