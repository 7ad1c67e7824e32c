"""The walks over the rows of a row kernel: one for each level of reductions, and what is kept from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...hlo.opclasses import ELEMENTWISE, EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field, replace
from ..core.facts import Code, Facts
from ..core.graph import Buffer, Node, visited
from ..loops.fetch import streams
from ..loops.reduced import operands_of
from ..loops.row_graph import PASSED, Role, RowGraph, first_of
from ..products.element_code import code_of
from ..reductions.extremum import takes_three
from ..reductions.extremum_run import run_of
from ..reductions.long_sums import are_float_sums
from ..reductions.reduce_ways import is_long_sum
from ..reductions.sum_run import Addends, addends_of, is_run

STACK_BYTES = 1 << 19
"""Limit in bytes of a row's values that are kept between walks: a sixteenth of a thread's stack. Reading them from any
cache is faster than recomputing them.
"""


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk over a row. kept: values to store on the stack; held: values that are on the stack or in results
    already; numbers: values of the row that it reads. sums: those
    of its reductions that are added up in blocks; call: if it is the call of a function that kernels share.
    """

    reductions: tuple[Node, ...]
    results: tuple[Buffer, ...]
    kept: tuple[Buffer, ...]
    held: tuple[Buffer, ...]
    numbers: tuple[Buffer, ...]
    sums: tuple[Node, ...] = ()
    call: Call | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """The sum of these addends, or the extremum of an array in memory. fetches: what lies ahead is fetched."""

    addends: Addends | None
    source: Buffer | None = None
    fetches: bool = False


def _long_sums(facts: Facts, walk: Walk) -> tuple[Node, ...]:
    return tuple(node for node in walk.reductions if is_long_sum(facts, node))


def call_of(facts: Facts, graph: RowGraph, walk: Walk) -> Call | None:
    """How a walk that does nothing but add up a row, or find its extremum, is a call; None if it is none."""
    if len(walk.reductions) != 1 or walk.results or walk.kept or not graph.plain or not is_run(facts, graph.length):
        return None
    (node,) = walk.reductions
    if len(node.outputs) != 1:
        return None
    operand = operands_of(node)[0]
    if are_float_sums(node):
        made = addends_of(operand, in_row=True)
        if made is None or not all(_is_of_row(graph, number) for number in made.numbers):
            return None
        return Call(made, fetches=bool(streams(facts, made.arrays, made.arrays[0])))
    if facts.vector_bits < MINIMUM_EXTREMUM_BITS or not takes_three(node):
        return None
    source = run_of(facts, operand, graph.length)
    return None if source is None else Call(None, source)


def _is_of_row(graph: RowGraph, number: Buffer) -> bool:
    """Whether a broadcast number is the same for all elements of a row."""
    if number.writer is None or number.writer.opcode is not Op.BROADCAST:
        return False
    ((source, role),) = graph.sources(number)
    return role is Role.ROW or source.shape.size == 1


MINIMUM_EXTREMUM_BITS = 512
"""Bits of vectors with which a row's extremum is a call: 0.9 of a softmax's time. With shorter ones it is 1.1."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A row kernel. written: the buffer that a result copies → the result."""

    graph: RowGraph
    walks: tuple[Walk, ...]
    written: Mapping[Buffer, Buffer]

    @staticmethod
    def of(graph: RowGraph, results: Sequence[Buffer], in_place: frozenset[int], room: int = STACK_BYTES) -> Rows:
        """One walk per level of reductions, and one for results that need all of them. Results that lie in place of an
        operand come last. room: bytes of a row that may be kept.
        """
        plan = _Plan(graph, results, in_place)
        plan.choose_kept(room)
        return Rows(graph, tuple(map(plan.made, plan.walks)), plan.written)

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """For reports, what each walk is: loops over a row, or a call."""
        walks = ", ".join("loops" if x.call is None else "call" for x in self.walks)
        return ("rows", str(self.graph.count)), ("length", str(self.graph.length)), ("walks", walks)

    def calling(self, facts: Facts) -> Rows:
        """With calls for the walks that are such, and blocks for long sums."""
        walks = (replace(x, call=call_of(facts, self.graph, x), sums=_long_sums(facts, x)) for x in self.walks)
        return replace(self, walks=tuple(walks))

    def code(self, facts: Facts) -> Code:
        """What is left for LLVM; nothing is known of much or expensive code."""
        called = {
            x for walk in self.walks if walk.call and walk.call.addends for n in walk.reductions for x in operands_of(n)
        }
        made = [x for x, role in self.graph.roles.items() if role is Role.FULL and x.writer is not None]
        full = [writer_of(x) for x in made if x not in called]
        if len(full) > MAXIMUM_LIGHT_ROW_OPERATIONS or any(node.opcode in EXPENSIVE - ONE_INSTRUCTION for node in full):
            return Code()
        loops = any(walk.reductions and walk.call is None for walk in self.walks)
        code = Code(shares=any(walk.call for walk in self.walks), walks=loops)
        return code | code_of(facts, map(writer_of, made))


MAXIMUM_LIGHT_ROW_OPERATIONS = 12
"""Operations on each element of a row, at most, for whose loops LLVM does less."""

ONE_INSTRUCTION = {Op.DIVIDE, Op.SQRT}


@dataclass(eq=False, slots=True)
class _Draft:
    """A walk under construction."""

    reductions: list[Node] = field(default_factory=list)
    results: list[Buffer] = field(default_factory=list)
    kept: list[Buffer] = field(default_factory=list)
    held: list[Buffer] = field(default_factory=list)

    def ends(self) -> Iterator[Buffer]:
        for node in self.reductions:
            yield from operands_of(node)
        yield from self.results
        yield from self.kept


class _Plan:
    def __init__(self, graph: RowGraph, results: Sequence[Buffer], in_place: frozenset[int]):
        self.graph = graph
        self.walks: list[_Draft] = []
        self.written: dict[Buffer, Buffer] = {}
        levels: dict[Buffer, int] = {}
        for buffer in graph.roles:
            levels[buffer] = max((levels[x] for x, role in graph.sources(buffer) if role is not None), default=0)
            if is_reduced(graph, buffer):
                levels[buffer] += 1
                self.walks += [_Draft() for _ in range(levels[buffer] - len(self.walks))]
                step = self.walks[levels[buffer] - 1]
                step.reductions = list(dict.fromkeys([*step.reductions, writer_of(buffer)]))
        full = [r for r in results if graph.roles[r] is Role.FULL]
        last = {r for r in full if r.argument in in_place}
        if any(r in last or levels[r] == len(self.walks) for r in full):
            self.walks.append(_Draft())
        for result in full:
            self.walks[-1 if result in last else levels[result]].results.append(result)
        for n, step in enumerate(self.walks):
            copies = {first_of(r): r for r in step.results if first_of(r) in graph.roles}
            self.written = copies | self.written  # the first: a later one may not be there yet
            for later in self.walks[n + 1 :]:
                later.held += copies

    def choose_kept(self, room: int) -> None:
        """Keep what is expensive and wanted by several walks, as far as there is room."""
        wanted = [self._wanted(step) for step in self.walks]
        for buffer in reversed(list(self.graph.roles)):
            users = [n for n, found in enumerate(wanted) if buffer in found]
            size = self.graph.length * max(buffer.dtype.bytes, 1)
            if len(users) < 2 or size > room or not self._is_dear(buffer):
                continue
            room -= size
            self.walks[users[0]].kept.append(buffer)
            for n in users[1:]:
                self.walks[n].held.append(buffer)
                wanted[n] = self._wanted(self.walks[n])
        for step in self.walks:
            read = self._wanted(step, held=True)
            step.held = [x for x in step.held if x in read]

    def made(self, step: _Draft) -> Walk:
        full = self._wanted(step)
        sources = [x for buffer in self.graph.roles if buffer in full for x in self.graph.sources(buffer)]
        numbers = dict.fromkeys(x for x, role in sources if role is Role.ROW)
        kept, held = tuple(step.kept), tuple(step.held)
        return Walk(tuple(step.reductions), tuple(step.results), kept, held, tuple(numbers))

    def _is_dear(self, buffer: Buffer) -> bool:
        node = buffer.writer
        if node is None or not node.inputs or self.graph.roles[buffer] is not Role.FULL:
            return False
        return node.opcode in EXPENSIVE or not (node.opcode in ELEMENTWISE or node.opcode in PASSED)

    def _wanted(self, step: _Draft, held: bool = False) -> set[Buffer]:
        """The values that a walk computes per element; with `held`, also the held values that it reads."""

        def made_of(buffer: Buffer) -> list[Buffer]:
            ends = buffer in step.held or self.graph.roles.get(buffer) is Role.ROW
            return [] if ends else [x for x, role in self.graph.sources(buffer) if role is not None]

        found = (x for x in visited(step.ends(), made_of) if self.graph.roles.get(x) is not Role.ROW)
        return {x for x in found if held or x not in step.held}


def is_reduced(graph: RowGraph, buffer: Buffer) -> bool:
    """Whether the buffer is the result of a reduction over the row that a walk computes."""
    made = graph.roles[buffer] is Role.ROW and buffer.writer is not None
    return made and writer_of(buffer).opcode is Op.REDUCE


def writer_of(buffer: Buffer) -> Node:
    assert buffer.writer is not None
    return buffer.writer
