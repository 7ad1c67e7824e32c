"""Thunks → a table of kernel calls for the runner, and the few steps of control flow that stay in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..hlo.plan import BufferSlice
from .kinds import ConditionalThunk, CopyThunk, KernelThunk, SequentialThunk, Thunk, WhileThunk


@dataclass(frozen=True, slots=True)
class Run:
    """Run the records of a descriptor once."""

    descriptor: int


@dataclass(frozen=True, slots=True)
class FlatLoop:
    """A while whose condition and body are all kernels and copies: `repeat` is body then condition, while true."""

    condition: Node
    repeat: int
    predicate: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A while with control flow inside."""

    condition: Node
    body: Node
    predicate: int


@dataclass(frozen=True, slots=True)
class Branch:
    selector: int
    selector_is_pred: bool
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class InOrder:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """Run a node through the observer, which is told the thunk."""

    thunk: Thunk
    node: Node


Node = Run | FlatLoop | Loop | Branch | InOrder | Observed


@dataclass(frozen=True, slots=True)
class Reference:
    """The word at `word` is the address of a byte of an allocation."""

    word: int
    allocation: int
    offset: int


@dataclass(frozen=True, slots=True)
class Table:
    """words: of the table; internal: words that are byte offsets within it; cells: words that Python reads through."""

    words: tuple[int, ...]
    references: tuple[Reference, ...]
    internal: tuple[int, ...]
    cells: tuple[int, ...]
    root: Node


def build_table(root: SequentialThunk, resolve: Callable[[str], int], copy: int, observed: bool = False) -> Table:
    """resolve: symbol → address; copy: address of the runner's copy function. observed: one descriptor a thunk."""
    builder = _Builder(resolve, copy, observed)
    node = builder.sequence(root)
    return Table(tuple(builder.words), tuple(builder.references), tuple(builder.internal), tuple(builder.cells), node)


@dataclass(eq=False)
class _Builder:
    resolve: Callable[[str], int]
    copy: int
    observed: bool
    words: list[int] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    internal: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)

    def sequence(self, thunk: SequentialThunk) -> Node:
        nodes: list[Node] = []
        calls: list[KernelThunk | CopyThunk] = []
        for inner in thunk.thunks:
            if isinstance(inner, KernelThunk | CopyThunk) and not self.observed:
                calls.append(inner)
                continue
            if calls:
                nodes.append(self.run(calls))
                calls = []
            nodes.append(self.one(inner))
        if calls:
            nodes.append(self.run(calls))
        return nodes[0] if len(nodes) == 1 else InOrder(tuple(nodes))

    def one(self, thunk: Thunk) -> Node:
        match thunk:
            case KernelThunk() | CopyThunk():
                node: Node = self.run([thunk])
            case SequentialThunk():
                return self.sequence(thunk)
            case WhileThunk():
                node = self.loop(thunk)
            case ConditionalThunk():
                branches = tuple(self.sequence(b) for b in thunk.branches)
                node = Branch(self.cell(thunk.selector), thunk.selector_is_pred, branches)
        return Observed(thunk, node) if self.observed else node

    def loop(self, thunk: WhileThunk) -> Node:
        condition, predicate = self.sequence(thunk.condition), self.cell(thunk.predicate)
        round_trip = (*thunk.body.thunks, *thunk.condition.thunks)
        if not self.observed and all(isinstance(t, KernelThunk | CopyThunk) for t in round_trip):
            return FlatLoop(condition, self.run(round_trip, thunk.predicate).descriptor, predicate)
        return Loop(condition, self.sequence(thunk.body), predicate)

    def run(self, calls: Sequence[Thunk], predicate: BufferSlice | None = None) -> Run:
        begin = len(self.words)
        for call in calls:
            if isinstance(call, KernelThunk):
                self.words += [self.resolve(call.symbol), len(call.arguments)]
                for use in call.arguments:
                    self.address(use.slice)
            elif isinstance(call, CopyThunk) and call.source.size:
                self.words += [self.copy, 3]
                self.address(call.destination)
                self.address(call.source)
                self.words.append(call.source.size)
        end = descriptor = len(self.words)
        self.internal += [descriptor, descriptor + 1]
        self.words += [begin * 8, end * 8]
        if predicate is None:
            self.words.append(0)
        else:
            self.address(predicate)
        self.words.append(1)
        return Run(descriptor)

    def cell(self, slice: BufferSlice) -> int:
        self.cells.append(len(self.words))
        self.address(slice)
        return len(self.cells) - 1

    def address(self, slice: BufferSlice) -> None:
        self.references.append(Reference(len(self.words), slice.allocation, slice.offset))
        self.words.append(0)
