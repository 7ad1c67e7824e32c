"""Thunks → a table of records for the native runner: kernel calls, and jumps for control flow.

A table is a sequence of 64-bit words. A record begins with a function or the address of a cell, followed by a number of
arguments or a `Jump`; `runner.py` describes the rest. With an observer, control flow stays in Python instead.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from ..hlo.records import dataclass, field
from ..planning.allocation import BufferSlice
from .checks import Call, address_of, call_of
from .events import mark_of
from .kinds import (
    Access,
    ChecksumThunk,
    CollectiveDoneThunk,
    CollectiveStartThunk,
    CompareThunk,
    ConditionalThunk,
    CopyThunk,
    DeviceIdThunk,
    FillThunk,
    InfeedThunk,
    KernelThunk,
    NanThunk,
    OutfeedThunk,
    ProfileThunk,
    SequentialThunk,
    Split,
    Thunk,
    WhileThunk,
    ZoneThunk,
    numbers_of,
    slice_of,
)
from .rounds import Round, most_rounds, settles
from .runner import Jump, Runner, split_record

STOP_WORD, REPLICA_WORD, PARTITION_WORD, FIRST = range(4)
"""Indices of the word that stops the runner, of the numbers of the device, and of the first record."""


@dataclass(frozen=True, slots=True)
class Run:
    """Follow the records of a descriptor, starting at the word `begin`. The record behind a loop begins two words
    behind its rounds left.
    """

    descriptor: int
    begin: int
    rounds: tuple[Round, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A while loop whose thunks are observed. written, settles: as in Round."""

    condition: Node
    body: Node
    predicate: int
    written: tuple[tuple[int, int], ...]
    settles: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """A conditional whose thunks are observed."""

    selector: int
    selector_is_pred: bool
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class InOrder:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """Call the observer with a thunk; it runs the node."""

    thunk: Thunk
    node: Node


Node = Run | Loop | Branch | InOrder | Observed


@dataclass(frozen=True, slots=True)
class Reference:
    """The word at index `word` is the address of byte `offset` of an allocation."""

    word: int
    allocation: int
    offset: int


@dataclass(frozen=True, slots=True)
class Table:
    """words: the content of the table. internal: indices of words that are byte offsets into the table. cells: indices
    of words whose targets Python reads. events: indices of words that are the address of the buffer of events.
    """

    words: tuple[int, ...]
    references: tuple[Reference, ...]
    internal: tuple[int, ...]
    cells: tuple[int, ...]
    events: tuple[int, ...]
    root: Node


def build_table(
    root: SequentialThunk,
    resolve: Callable[[str], int],
    runner: Runner,
    observed: bool = False,
    handlers: Container[str] = (),
) -> Table:
    """Build the table of a program. resolve: symbol → address.

    observed: make one descriptor per kernel or copy, so that an observer sees every thunk. handlers: symbols of kernels
    that call handlers.
    """
    builder = _Builder(resolve, runner, numbers_of(root), handlers)
    node = builder.seen(root) if observed else builder.run([root])
    return Table(
        tuple(builder.words),
        tuple(builder.references),
        tuple(builder.internal),
        tuple(builder.cells),
        tuple(builder.events),
        node,
    )


@dataclass(eq=False)
class _Builder:
    resolve: Callable[[str], int]
    runner: Runner
    meetings: Mapping[Thunk, int]
    handlers: Container[str] = ()
    words: list[int] = field(default_factory=lambda: [0] * FIRST)
    references: list[Reference] = field(default_factory=list)
    internal: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    rounds: list[Round | None] = field(default_factory=list)  # None: its loop is not complete
    around: list[int] = field(default_factory=list)  # the loops that are not complete

    def seen(self, thunk: Thunk) -> Node:
        """The node of a thunk; every thunk within it is observed."""
        match thunk:
            case SequentialThunk():
                nodes = tuple(map(self.seen, thunk.thunks))
                return nodes[0] if len(nodes) == 1 else InOrder(nodes)
            case WhileThunk():
                condition, body = self.seen(thunk.condition), self.seen(thunk.body)
                node: Node = Loop(
                    condition, body, self.cell(thunk.predicate), self.written(thunk), settles(thunk, self.handlers)
                )
            case ConditionalThunk():
                branches = tuple(map(self.seen, thunk.branches))
                node = Branch(self.cell(thunk.selector), thunk.selector_is_pred, branches)
            case _:
                node = self.run([thunk])
        return Observed(thunk, node)

    def run(self, thunks: Iterable[Thunk]) -> Run:
        begin = len(self.words)
        self.records(thunks)
        descriptor = len(self.words)
        self.internal += [descriptor, descriptor + 1, descriptor + 2]
        self.words += [begin * 8, descriptor * 8, STOP_WORD * 8]
        rounds, self.rounds = tuple(r for r in self.rounds if r is not None), []
        return Run(descriptor, begin, rounds)

    def records(self, thunks: Iterable[Thunk]) -> None:
        for thunk in thunks:
            match thunk:
                case KernelThunk(split=None):
                    self.words += [self.resolve(thunk.symbol), len(thunk.arguments)]
                    for use in thunk.arguments:
                        self.address(use.slice)
                case KernelThunk(split=Split() as split):
                    count = len(thunk.arguments)
                    self.words += split_record(self.resolve(thunk.symbol), split, count, self.runner.bodies[count])
                    for use in thunk.arguments:
                        self.address(use.slice)
                case CopyThunk():
                    if thunk.source.size:
                        self.words += [self.runner.copy, 3]
                        self.address(thunk.destination)
                        self.address(thunk.source)
                        self.words.append(thunk.source.size)
                case ChecksumThunk() | NanThunk() | FillThunk() | ZoneThunk() | CompareThunk():
                    self.check(call_of(thunk))
                case ProfileThunk():
                    self.events.append(len(self.words) + 2)
                    self.words += [self.runner.profile, 2, 0, mark_of(thunk.id, thunk.begin)]
                case DeviceIdThunk():
                    self.words += [self.runner.copy, 3]
                    self.address(thunk.destination)
                    self.internal.append(len(self.words))
                    self.words += [8 * (PARTITION_WORD if thunk.partition else REPLICA_WORD), thunk.destination.size]
                case CollectiveStartThunk() | CollectiveDoneThunk() | InfeedThunk() | OutfeedThunk():
                    from .outside import MEET  # here: most programs do not need that module

                    self.internal.append(len(self.words) + 2)
                    self.words += [MEET, 3, 0, self.meetings[thunk]]
                    self.address(slice_of(thunk))
                case SequentialThunk():
                    self.records(thunk.thunks)
                case WhileThunk():
                    self.loop(thunk)
                case ConditionalThunk():
                    self.branches(thunk)

    def check(self, call: Call) -> None:
        self.words += [address_of(call.function), len(call.arguments)]
        for argument in call.arguments:
            match argument:
                case BufferSlice():
                    self.address(argument)
                case int():
                    self.words.append(argument)
                case _:
                    self.events.append(len(self.words))
                    self.words.append(0)

    def loop(self, thunk: WhileThunk) -> None:
        """Emit: jump to the condition; body; condition; repeat."""
        number, outer = len(self.rounds), tuple(self.around)
        self.rounds.append(None)
        self.around.append(number)
        self.control(Jump.JUMP)
        first = self.target()
        body = self.label()
        self.records(thunk.body.thunks)
        self.land(first)
        self.records(thunk.condition.thunks)
        self.control(Jump.AGAIN, thunk.predicate)
        self.words[self.target()] = body
        left = len(self.words)
        self.words += [1, number + 1]
        self.around.pop()
        self.control(Jump.JUMP)
        behind = self.target()
        self.rounds[number] = Round(
            left, outer, self.written(thunk), most_rounds(thunk, self.handlers), settles(thunk, self.handlers)
        )
        self.land(behind)

    def written(self, thunk: WhileThunk) -> tuple[tuple[int, int], ...]:
        """Words with the addresses of what a loop writes. They are no record: nothing may run into them."""
        places = []
        for part in dict.fromkeys(use.slice for use in thunk.uses if use.access is Access.WRITE):
            places.append((len(self.words), part.size))
            self.address(part)
        return tuple(places)

    def branches(self, thunk: ConditionalThunk) -> None:
        """Emit: select a branch; the branches, each but the last followed by a jump to the end."""
        if thunk.selector_is_pred:
            self.control(Jump.UNLESS, thunk.selector)
            choices: list[int | None] = [None, self.target()]  # a true pred continues with the first branch
        else:
            self.control(Jump.SWITCH, thunk.selector)
            self.words.append(len(thunk.branches))
            choices = [self.target() for _ in thunk.branches]
        ends = []
        for number, (choice, branch) in enumerate(zip(choices, thunk.branches, strict=True), 1):
            if choice is not None:
                self.land(choice)
            self.records(branch.thunks)
            if number < len(thunk.branches):
                self.control(Jump.JUMP)
                ends.append(self.target())
        for end in ends:
            self.land(end)

    def control(self, jump: Jump, cell: BufferSlice | None = None) -> None:
        """Begin a control-flow record."""
        if cell is None:
            self.words.append(0)
        else:
            self.address(cell)
        self.words.append(jump)

    def target(self) -> int:
        """Append a jump target to be filled in by `land`. Returns the index of its word."""
        self.internal.append(len(self.words))
        self.words.append(0)
        return len(self.words) - 1

    def label(self) -> int:
        return len(self.words) * 8

    def land(self, target: int) -> None:
        """Make a jump target point to the current end of the table."""
        self.words[target] = self.label()

    def cell(self, slice: BufferSlice) -> int:
        self.cells.append(len(self.words))
        self.address(slice)
        return len(self.cells) - 1

    def address(self, slice: BufferSlice) -> None:
        self.references.append(Reference(len(self.words), slice.allocation, slice.offset))
        self.words.append(0)
