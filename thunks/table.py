"""Thunks → a table of records that the native runner follows: kernel calls, and jumps for the control flow.

A table is a run of 64-bit words. A record begins with a function or the address of a cell, and with the number of
arguments or a `Jump`; `runner.py` says what follows. Where each thunk must be seen, control flow stays in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..planning.plan import BufferSlice
from .kinds import ConditionalThunk, CopyThunk, KernelThunk, SequentialThunk, Thunk, WhileThunk
from .runner import Jump


@dataclass(frozen=True, slots=True)
class Run:
    """Follow the records of a descriptor, from the word `begin` on. rounds: for each loop, the word that says how many
    it has left."""

    descriptor: int
    begin: int
    rounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A while whose thunks are seen."""

    condition: Node
    body: Node
    predicate: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A conditional whose thunks are seen."""

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


Node = Run | Loop | Branch | InOrder | Observed


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
    builder = _Builder(resolve, copy)
    node = builder.seen(root) if observed else builder.run([root])
    return Table(tuple(builder.words), tuple(builder.references), tuple(builder.internal), tuple(builder.cells), node)


@dataclass(eq=False)
class _Builder:
    resolve: Callable[[str], int]
    copy: int
    words: list[int] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    internal: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)

    def seen(self, thunk: Thunk) -> Node:
        """A thunk's node, each thunk within it observed."""
        match thunk:
            case KernelThunk() | CopyThunk():
                node: Node = self.run([thunk])
            case SequentialThunk():
                nodes = tuple(map(self.seen, thunk.thunks))
                return nodes[0] if len(nodes) == 1 else InOrder(nodes)
            case WhileThunk():
                node = Loop(self.seen(thunk.condition), self.seen(thunk.body), self.cell(thunk.predicate))
            case ConditionalThunk():
                branches = tuple(map(self.seen, thunk.branches))
                node = Branch(self.cell(thunk.selector), thunk.selector_is_pred, branches)
        return Observed(thunk, node)

    def run(self, thunks: Iterable[Thunk]) -> Run:
        begin = len(self.words)
        self.records(thunks)
        descriptor = len(self.words)
        self.internal += [descriptor, descriptor + 1]
        self.words += [begin * 8, descriptor * 8]
        rounds, self.rounds = tuple(self.rounds), []
        return Run(descriptor, begin, rounds)

    def records(self, thunks: Iterable[Thunk]) -> None:
        for thunk in thunks:
            match thunk:
                case KernelThunk():
                    self.words += [self.resolve(thunk.symbol), len(thunk.arguments)]
                    for use in thunk.arguments:
                        self.address(use.slice)
                case CopyThunk():
                    if thunk.source.size:
                        self.words += [self.copy, 3]
                        self.address(thunk.destination)
                        self.address(thunk.source)
                        self.words.append(thunk.source.size)
                case SequentialThunk():
                    self.records(thunk.thunks)
                case WhileThunk():
                    self.loop(thunk)
                case ConditionalThunk():
                    self.branches(thunk)

    def loop(self, thunk: WhileThunk) -> None:
        """jump to the condition; body; condition; again."""
        self.control(Jump.JUMP)
        first = self.target()
        body = self.label()
        self.records(thunk.body.thunks)
        self.land(first)
        self.records(thunk.condition.thunks)
        self.control(Jump.AGAIN, thunk.predicate)
        self.words[self.target()] = body
        self.rounds.append(len(self.words))
        self.words += [1, len(self.rounds)]

    def branches(self, thunk: ConditionalThunk) -> None:
        """choose; each branch but the last ends with a jump behind all."""
        if thunk.selector_is_pred:
            self.control(Jump.UNLESS, thunk.selector)
            choices: list[int | None] = [None, self.target()]  # a true pred goes on with the first branch
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
        """Begin a record of control flow."""
        if cell is None:
            self.words.append(0)
        else:
            self.address(cell)
        self.words.append(jump)

    def target(self) -> int:
        """Append a place to go on at, to be filled in; its word."""
        self.internal.append(len(self.words))
        self.words.append(0)
        return len(self.words) - 1

    def label(self) -> int:
        return len(self.words) * 8

    def land(self, target: int) -> None:
        """What jumps there goes on here."""
        self.words[target] = self.label()

    def cell(self, slice: BufferSlice) -> int:
        self.cells.append(len(self.words))
        self.address(slice)
        return len(self.cells) - 1

    def address(self, slice: BufferSlice) -> None:
        self.references.append(Reference(len(self.words), slice.allocation, slice.offset))
        self.words.append(0)
