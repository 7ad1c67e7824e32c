"""Thunks → one function in MLIR's func, scf, arith and llvm dialects, as text.

The function is `i64 testbed_program(ptr bases, ptr control)`.
bases: addresses of the allocations by index. control: 64-bit words. STOP is set by another thread to end the run before
its next kernel. POSITION is 0, or the number of the loop at which the run pauses or resumes. EVENTS is the address of
the buffer for what profile thunks note, PARALLEL_FOR that of the pool's function for split kernels (codegen/pool.py).
From LEFT on, one word per loop: how often its condition is tested until its next pause; then, if the program depends on
its device, DEVICE_WORDS: the address of the function for what is outside (outside.py), and the numbers of replica and
partition.
The result is 0 at the end, STOPPED, or the number of a loop that has used up its iterations. Called again, it goes on
with that loop, whose word LEFT says for how long: 0 ends the loop.

Nothing is kept between the calls except memory. A position other than 0 makes all steps void, except those that lead to
the loop of this number: so a pause leaves all loops around it, and resuming enters them again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby

from ..planning.allocation import POOL_ALIGNMENT, BufferSlice
from .checks import FUNCTIONS
from .host_locals import NO_REGISTERS, Local, Registers, kept_in_registers
from .host_parts import IN_MODE, chunk_function, symbol_name
from .host_steps import DEVICE_WORDS, LEFT, POSITION, PROFILE, STOP, STRAIGHT, Steps
from .kinds import (
    Access,
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    Meeting,
    SequentialThunk,
    Thunk,
    WhileThunk,
    children,
    depends_on_device,
    numbers_of,
)
from .rounds import most_rounds, settles
from .runner import STOPPED
from .text import to_text

ENTRY = "testbed_program"

VERSION = "testbed_control_1"
"""Data in the object: its name counts the versions of the control words and of what the function returns.

Its value is the digest of the thunks, or 0 in objects that were made before it had one.
"""

TOGETHER = 0.001
"""Estimated seconds of kernels that run between two looks at the word STOP."""


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A while loop. outer: indices of the loops around it. written: all that an iteration writes. most, settles: as in
    Round.
    """

    outer: tuple[int, ...]
    written: tuple[BufferSlice, ...]
    most: int
    settles: bool


@dataclass(frozen=True, slots=True)
class HostModule:
    """text: the MLIR module. symbols: the kernels that it calls. loops: in the order of their numbers, from 1 on.

    notes_events: whether it calls PROFILE or functions of checks.py. splits: whether it calls the pool.
    meets: whether it depends on the device. digest: a number, not 0, that tells programs apart; 63 bits.
    """

    text: str
    digest: int
    symbols: tuple[str, ...]
    loops: tuple[HostLoop, ...]
    notes_events: bool
    splits: bool
    meets: bool

    @property
    def words(self) -> int:
        """The number of control words."""
        return LEFT + len(self.loops) + (DEVICE_WORDS if self.meets else 0)


def host_module(
    root: SequentialThunk,
    mode: tuple[str, int] | None = None,
    seconds: Mapping[str, float] | None = None,
    handlers: Container[str] = (),
    registers: Registers = NO_REGISTERS,
) -> HostModule:
    """The host program of thunks. mode: an architecture of IN_MODE, and the value of float_mode.py for it.

    seconds: an upper estimate of a kernel's run time by symbol, for kernels that may run without a look at STOP between
    them. handlers: symbols of kernels that call handlers; they change no line. registers: for the state of loops.
    """
    loops, meetings = _loops(root), numbers_of(root)
    writer = _Writer(
        seconds=seconds or {},
        pausable=loops > 0,
        device=LEFT + loops,
        meetings=meetings,
        handlers=handlers,
        registers=registers,
    )
    entry = ENTRY if mode is None else f"{ENTRY}_steps"
    with writer.function(entry, internal=mode is not None):
        writer.bases(root)
        writer.steps([root])
        writer.status()
    digest = _digest(root)
    head = [f"  llvm.mlir.global external constant @{VERSION}({digest} : i64) : i64"]
    for symbol, count in writer.symbols.items():
        head.append(f"  func.func private {symbol_name(symbol)}({', '.join(['!llvm.ptr'] * count)})")
    for symbol, (count, split) in writer.split.items():
        head += chunk_function(symbol, count, split.private > 0)
    tail = [] if mode is None else [IN_MODE[mode[0]].format(entry=ENTRY, steps=entry, mode=mode[1])]
    text = "\n".join(["module {", *head, *writer.lines, *tail, "}"]) + "\n"
    runtime = {PROFILE, *FUNCTIONS} & writer.symbols.keys()
    kernels = (*(s for s in writer.symbols if s not in runtime), *writer.split)
    whole = tuple(loop for loop in writer.loops if loop is not None)
    return HostModule(text, digest, kernels, whole, bool(runtime), bool(writer.split), depends_on_device(root))


def _digest(root: SequentialThunk) -> int:
    text = to_text(root).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") >> 1 | 1


@dataclass(eq=False, kw_only=True)
class _Writer(Steps):
    """Writes lines of MLIR. pausable: the position may differ from 0 at this point of the program. light: this point is
    in a loop that looks at STOP once an iteration.
    """

    seconds: Mapping[str, float]
    pausable: bool
    handlers: Container[str]
    registers: Registers
    loops: list[HostLoop | None] = field(default_factory=list)  # None: not complete
    around: list[int] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)  # lines that make them
    light: bool = False

    @contextmanager
    def function(self, name: str, internal: bool) -> Iterator[None]:
        kind = ' attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"]}' if internal else ""
        with self.block(f"func.func @{name}(%bases: !llvm.ptr, %control: !llvm.ptr) -> i64{kind} {{"):
            head = len(self.lines)
            yield
            if self.frame:
                count = self.constant(self.frame)
                self.lines.insert(head, f"    %arguments = llvm.alloca {count} x !llvm.ptr : (i64) -> !llvm.ptr")
            self.lines[head:head] = self.variables
            self.lines[head:head] = self.constants()

    def bases(self, root: SequentialThunk) -> None:
        """Load the addresses of all allocations that the program uses."""
        for number in sorted({use.slice.allocation for use in root.uses}):
            self.line(f"%base{number} = llvm.load {self.pointer('%bases', 8 * number)} : !llvm.ptr -> !llvm.ptr")

    # Whether a step runs

    def stop(self) -> str:
        """The word STOP: another thread may set it at any time."""
        word = self.word(STOP)
        return self.value(f"llvm.load {word} atomic monotonic {{alignment = 8 : i64}} : !llvm.ptr -> i64")

    def going(self) -> str:
        """Whether steps run: no stop is wanted, and the position is 0."""
        held = self.stop()
        if self.pausable:
            held = self.value(f"arith.ori {held}, {self.load(self.word(POSITION))} : i64")
        return self.compare("eq", held, self.constant(0))

    def within(self, position: str, first: int, last: int) -> str:
        """Whether a position is the number of a loop from first to last."""
        distance = self.value(f"arith.subi {position}, {self.constant(first)} : i64")
        return self.compare("ule", distance, self.constant(last - first))

    def status(self) -> None:
        stopped = self.compare("ne", self.stop(), self.constant(0))
        end = self.load(self.word(POSITION)) if self.pausable else self.constant(0)
        self.line(f"return {self.value(f'arith.select {stopped}, {self.constant(STOPPED)}, {end} : i64')} : i64")

    # Thunks

    def steps(self, thunks: Iterable[Thunk]) -> None:
        for straight, run in groupby(_flat(thunks), lambda t: type(t) in STRAIGHT):
            if straight:
                for group in self.groups(run):
                    if self.light:
                        self.calls(group)
                        continue
                    with self.block(f"scf.if {self.going()} {{"):
                        self.calls(group)
            else:
                for thunk in run:
                    _CONTROL[type(thunk)](self, thunk)

    def groups(self, thunks: Iterable[Thunk]) -> Iterator[list[Thunk]]:
        """Thunks in groups that run for TOGETHER at most, by the estimate, or that are one kernel."""
        group: list[Thunk] = []
        left = TOGETHER
        for thunk in thunks:
            cost = self.cost(thunk)
            if group and cost > left:
                yield group
                group, left = [], TOGETHER
            group.append(thunk)
            left -= cost
        yield group

    def cost(self, thunk: Thunk) -> float:
        """An upper estimate of the seconds that a thunk takes; TOGETHER if there is none."""
        if isinstance(thunk, KernelThunk):
            return self.seconds.get(thunk.symbol, TOGETHER)
        if isinstance(thunk, Meeting):
            return TOGETHER
        return thunk.source.size / 1e9 if isinstance(thunk, CopyThunk) else 0.0

    def is_light(self, loop: WhileThunk) -> bool:
        """Whether an iteration is a straight line of kernels that run without a look at STOP between them."""
        thunks = list(_flat([loop.condition, loop.body]))
        return all(type(t) in STRAIGHT for t in thunks) and sum(map(self.cost, thunks)) < TOGETHER

    def conditional(self, thunk: ConditionalThunk) -> None:
        """scf.index_switch; its default is the last branch. To resume, take the branch with the loop."""
        counts = [_loops(branch) for branch in thunk.branches]
        if not self.pausable or not any(counts):
            with self.block(f"scf.if {self.going()} {{"):
                self.switch(thunk, self.selected(thunk))
            return
        position = self.load(self.word(POSITION))
        going = self.going()
        spans = _spans(len(self.loops) + 1, counts)
        inside = [(number, self.within(position, *span)) for number, span in enumerate(spans) if span]
        entered = going
        for _, here in inside:
            entered = self.either(entered, here)
        with self.block(f"scf.if {entered} {{"):
            choice = self.selected(thunk)
            for number, here in inside:
                choice = self.value(f"arith.select {here}, {self.constant(number, 'index')}, {choice} : index")
            self.switch(thunk, choice)

    def selected(self, thunk: ConditionalThunk) -> str:
        """The index of the branch that the selector selects."""
        place, last = self.place(thunk.selector), len(thunk.branches) - 1
        if thunk.selector_is_pred:
            false = self.compare("eq", self.load(place, "i8"), self.constant(0, "i8"), "i8")
            return self.value(f"arith.index_castui {false} : i1 to index")
        chosen = self.value(f"arith.minui {self.load(place, 'i32')}, {self.constant(last, 'i32')} : i32")
        return self.value(f"arith.index_castui {chosen} : i32 to index")

    def switch(self, thunk: ConditionalThunk, choice: str) -> None:
        self.line(f"scf.index_switch {choice}")
        last = len(thunk.branches) - 1
        for number, branch in enumerate(thunk.branches):
            with self.block("default {" if number == last else f"case {number} {{"):
                self.steps([branch])
                self.line("scf.yield")

    def loop(self, thunk: WhileThunk) -> None:
        """scf.while. Loops of the condition have the numbers after this one, then those of the body."""
        number, tested, inner = len(self.loops) + 1, _loops(thunk.condition), _loops(thunk.body)
        self.loops.append(None)
        outer = tuple(self.around)
        self.around.append(number - 1)
        before, self.light = self.pausable, self.is_light(thunk)
        position = self.load(self.word(POSITION))
        idle = self.compare("eq", position, self.constant(0))
        entered = self.either(idle, self.within(position, number, number + tested + inner))
        if self.light:
            entered = self.both(entered, self.compare("eq", self.stop(), self.constant(0)))
        with self.block(f"scf.if {entered} {{"):
            here = self.compare("eq", position, self.constant(number))
            span = _spans(number + tested + 1, [inner])[0]
            inside = self.within(position, *span) if span else self.truth(False)
            self.pausable = tested + inner > 0
            with self.state_in_registers(thunk):
                left, tested_now = self.iterations(thunk, number, here, inside)
                due = self.both(self.both(tested_now, self.predicate(thunk)), self.going())
                with self.block(f"scf.if {due} {{"):
                    self.store(self.constant(number), self.word(POSITION))
            self.store(left, self.word(LEFT + number - 1))
        self.pausable, self.light = before, False
        self.around.pop()
        written = tuple(dict.fromkeys(use.slice for use in thunk.uses if use.access is Access.WRITE))
        self.loops[number - 1] = HostLoop(
            outer, written, most_rounds(thunk, self.handlers), settles(thunk, self.handlers)
        )

    @contextmanager
    def state_in_registers(self, loop: WhileThunk) -> Iterator[None]:
        """Let the steps of a loop work on variables. What it writes is in memory behind it, also when it pauses."""
        regions = kept_in_registers(loop, self.registers, self.locals)
        first = len(self.variables)
        local = [Local(*region, f"%local{first + number}") for number, region in enumerate(regions)]
        for new in local:
            count = self.constant(new.lead + new.part.size)
            alignment = f"{{alignment = {POOL_ALIGNMENT} : i64}}"
            self.variables.append(f"    {new.name} = llvm.alloca {count} x i8 {alignment} : (i64) -> !llvm.ptr")
            self.copied(self.pointer(new.name, new.lead), self.memory(new.part), new.part.size)
        outer = len(self.locals)
        self.locals += local
        yield
        del self.locals[outer:]
        for new in local:
            if new.written:
                self.copied(self.memory(new.part), self.pointer(new.name, new.lead), new.part.size)

    def iterations(self, thunk: WhileThunk, number: int, here: str, inside: str) -> tuple[str, str]:
        """The scf.while. here: it resumes at this loop; inside: at one in its body. Returns the iterations left, and
        whether the condition was tested last: where it holds and nothing else has stopped the loop, a pause is due.
        """
        left = self.load(self.word(LEFT + number - 1))
        name = self.name()
        arguments = f"%here{number} = {here}, %inside{number} = {inside}, %left{number} = {left}"
        with self.block(
            f"{name}:2 = scf.while ({arguments}) : (i1, i1, i64) -> (i64, i1) {{",
            f"}} do {{ ^bb0(%now{number}: i64, %tested{number}: i1):",
        ):
            result = self.name()
            self.line(f"{result}:3 = scf.if %here{number} -> (i1, i64, i1) {{")
            self.depth += 1
            self.store(self.constant(0), self.word(POSITION))
            goes_on = self.compare("sgt", f"%left{number}", self.constant(0))
            self.line(f"scf.yield {goes_on}, %left{number}, {self.truth(False)} : i1, i64, i1")
            self.depth -= 1
            with self.block("} else {"):
                self.again(thunk, number)
            self.line(f"scf.condition({result}#0) {result}#1, {result}#2 : i64, i1")
        self.depth += 1
        self.steps([thunk.body])
        no = self.truth(False)
        self.line(f"scf.yield {no}, {no}, %now{number} : i1, i1, i64")
        self.depth -= 1
        self.line("}")
        return f"{name}#0", f"{name}#1"

    def again(self, thunk: WhileThunk, number: int) -> None:
        """The condition, and whether the body follows: the predicate holds and no pause is due, or to resume in it.

        It costs time in each iteration, so why a loop ends is found behind it.
        """
        self.steps([thunk.condition])
        counted, goes_on = self.constant(1), self.predicate(thunk)
        if self.pausable:
            passed = self.compare("eq", self.load(self.word(POSITION)), self.constant(0))
            counted, goes_on = self.value(f"arith.extui {passed} : i1 to i64"), self.both(goes_on, passed)
        left = self.value(f"arith.subi %left{number}, {counted} : i64")
        remain = self.compare("sgt", left, self.constant(0))
        goes_on = self.both(self.both(goes_on, remain), self.compare("eq", self.stop(), self.constant(0)))
        self.line(f"scf.yield {self.either(goes_on, f'%inside{number}')}, {left}, {self.truth(True)} : i1, i64, i1")

    def predicate(self, thunk: WhileThunk) -> str:
        return self.compare("ne", self.load(self.place(thunk.predicate), "i8"), self.constant(0, "i8"), "i8")


_CONTROL: dict[type, Callable[..., None]] = {ConditionalThunk: _Writer.conditional, WhileThunk: _Writer.loop}


def _flat(thunks: Iterable[Thunk]) -> Iterator[Thunk]:
    """Thunks without the sequences around them."""
    for thunk in thunks:
        if isinstance(thunk, SequentialThunk):
            yield from _flat(thunk.thunks)
        else:
            yield thunk


def _loops(thunk: Thunk) -> int:
    """The number of loops in a thunk, itself included."""
    return isinstance(thunk, WhileThunk) + sum(map(_loops, children(thunk)))


def _spans(first: int, counts: Sequence[int]) -> list[tuple[int, int] | None]:
    """The first and last number of each group of loops that are numbered in order; None for an empty group."""
    spans: list[tuple[int, int] | None] = []
    for count in counts:
        spans.append((first, first + count - 1) if count else None)
        first += count
    return spans
