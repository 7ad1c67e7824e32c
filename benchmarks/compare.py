"""Compares two stacks on a program: run time with an interval, compile time, peak memory. `compare` is the way in.

A gate takes the ratios, which are b's to a's: below 1, b is better.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..backends.base import CompileOptions
from ..backends.xla import XlaExecutable
from ..formats.program import Program
from ..migration.compile import compile_program
from ..migration.flags import STACK_NAMES, XLA_STACKS, Flags
from ..migration.stacks import STACKS, Prepared, prepare
from .contestants import aligned, recycled, xla_in_this_process
from .growth import growth
from .paired import Ratio
from .rounds import Block, Clock, Run, Settings, interval, paired_blocks, random_order

UNKNOWN_BYTES = 1 << 20
"""Added to both peaks of memory: what a run takes besides its arrays, some pages, is not told from 0."""


@dataclass(frozen=True)
class Comparison:
    """b against a. ratio: b's run time as a multiple of a's, the median of all rounds; low, high: its 95% interval.

    compile_ratio, memory_ratio: of the medians of compile times, and of peak memory of a first run (1 where the
    system does not say). seconds, compile_seconds, memory_bytes: the medians themselves, of a and of b. narrow: whether
    the interval became as narrow as asked for. blocks: all times.
    """

    a: str
    b: str
    ratio: float
    low: float
    high: float
    compile_ratio: float
    memory_ratio: float
    seconds: tuple[float, float]
    compile_seconds: tuple[float, float]
    memory_bytes: tuple[int | None, int | None]
    narrow: bool
    blocks: tuple[Block, ...] = field(repr=False)


def compare(
    program: Program,
    a: str,
    b: str,
    inputs: Sequence[np.ndarray],
    settings: Settings | None = None,
    *,
    host_program: str = "auto",
    xla_flags: str | None = None,
    planted: float = 1.0,
    clock: Clock = time.perf_counter,
    on_step: Callable[[str], object] = lambda text: None,
) -> Comparison:
    """Compare two stacks: names of migration.stacks.STACKS, or flags ('mlir,reduce=legacy').

    planted: make b's runs this many times as long, to see whether it is found. clock: of run times, and of our stacks'
    compile times. on_step: called with what is being done, in words. Raises what compiling or running raises.
    """
    settings = settings or Settings()

    def on_block(count: int, left: float, found: Ratio | None) -> None:
        so_far = f"; {b} / {a} {found.median:.3f} [{found.low:.3f}, {found.high:.3f}]" if found is not None else ""
        on_step(f"{a} and {b} run: {count} blocks, {left:.0f} s left at most{so_far}")

    on_step(f"{a} and {b} compile, {settings.compiles + 1} times each")
    sides = [_side(stack, program, inputs, host_program, xla_flags, clock) for stack in (a, b)]
    _compile(sides, settings)

    def make(side: int, block: int) -> Run:
        run = sides[side].run()
        return run if planted == 1 else slowed(run, planted if side == 1 else 1.0)

    blocks, narrow = paired_blocks(make, settings, clock, on_block)
    found = interval(blocks, settings.seed)
    compiles = float(np.median(sides[0].seconds)), float(np.median(sides[1].seconds))
    peaks = _peak(sides[0].peaks), _peak(sides[1].peaks)
    return Comparison(
        a,
        b,
        found.median,
        found.low,
        found.high,
        compiles[1] / compiles[0] if compiles[0] else 1.0,
        memory_ratio(*peaks),
        (float(np.median([block.a for block in blocks])), float(np.median([block.b for block in blocks]))),
        compiles,
        peaks,
        narrow,
        tuple(blocks),
    )


def compile_times(
    program: Program, stacks: Sequence[str], inputs: Sequence[np.ndarray], settings: Settings, clock: Clock
) -> list[float]:
    """Seconds that compiling takes on each stack: medians of turns in random order."""
    sides = [_side(stack, program, inputs, "auto", None, clock) for stack in stacks]
    _compile(sides, settings)
    return [float(np.median(side.seconds)) for side in sides]


def _compile(sides: Sequence[Side], settings: Settings) -> None:
    rng = np.random.default_rng(settings.seed)
    for number in range(settings.compiles + 1):
        for side in random_order(rng):
            sides[side].compile()
            if number == 0:  # it also made what all programs share
                sides[side].forget()


def _peak(peaks: Sequence[int | None]) -> int | None:
    """The median; None if one is not known."""
    known = [peak for peak in peaks if peak is not None]
    return int(np.median(known)) if len(known) == len(peaks) else None


def memory_ratio(a: int | None, b: int | None, unknown: int = UNKNOWN_BYTES) -> float:
    """b's peak as a multiple of a's, with some bytes added to both; 1 where one is not known."""
    return 1.0 if a is None or b is None else (b + unknown) / (a + unknown)


def slowed(run: Run, factor: float) -> Run:
    """A run that takes `factor` times as long."""

    def slow() -> object:
        start = time.perf_counter()
        result = run()
        now = time.perf_counter()
        end = now + (factor - 1) * (now - start)
        while time.perf_counter() < end:
            pass
        return result

    return slow


# -- sides -------------------------------------------------------------------------------------------------------------
class Side(ABC):
    """One stack of a comparison. seconds, peaks: of each time that it was compiled."""

    def __init__(self, inputs: Sequence[np.ndarray]) -> None:
        self.inputs = inputs
        self.seconds: list[float] = []
        self.peaks: list[int | None] = []

    @abstractmethod
    def compile(self) -> None:
        """Compile, and run once; note the time and the peak of memory."""

    @abstractmethod
    def run(self) -> Run:
        """A run with arrays of its own, and with code at a place of its own where the stack is ours."""

    def forget(self) -> None:
        """What was noted so far does not count."""
        self.seconds.clear()
        self.peaks.clear()


class _Compiled(Side):
    """Flags of our stacks: compiled without the cache of objects, run from what a file would hold."""

    def __init__(
        self, flags: Flags, program: Program, inputs: Sequence[np.ndarray], host_program: str, clock: Clock
    ) -> None:
        super().__init__(inputs)
        self._clock = clock
        self._flags, self._program = flags, program
        self._options = CompileOptions(cache=None, host_program=host_program)
        self._file = b""

    def compile(self) -> None:
        from ..backends.host.memory import trim_memory

        start = self._clock()
        executable = compile_program(self._program, self._flags, self._options)
        self.seconds.append(self._clock() - start)
        trim_memory()
        self.peaks.append(growth(lambda: executable.execute(self.inputs))[0])
        self._file = self._file or executable.serialize()

    def run(self) -> Run:
        from ..backends.host.loader import deserialize_and_load

        return recycled(deserialize_and_load(self._file), [aligned(x) for x in self.inputs])


class _Other(Side):
    """XLA in this process, or a stack that evaluates."""

    def __init__(self, stack: str, program: Program, inputs: Sequence[np.ndarray], xla_flags: str | None) -> None:
        super().__init__(inputs)
        self._stack, self._program, self._flags = stack, program, xla_flags
        self._prepared: Prepared | None = None
        self._xla: XlaExecutable | None = None

    def compile(self) -> None:
        if self._stack == "xla":
            if self._xla is None:  # first in its child, because some modules end XLA's process
                prepare("xla", self._program, self._flags).run(self.inputs)
            self._xla, seconds = xla_in_this_process(self._program, self._flags)
            self.seconds.append(seconds)
        else:
            self._prepared = prepare(self._stack, self._program)
            self.seconds.append(self._prepared.seconds)
        run = self.run()
        self.peaks.append(growth(run)[0])

    def run(self) -> Run:
        if self._prepared is not None:
            evaluate, arrays = self._prepared.run, [aligned(x) for x in self.inputs]
            return lambda: evaluate(arrays)
        executable = self._xla
        assert executable is not None
        placed = executable.put(self.inputs)
        return lambda: executable.run(placed)


def _side(
    stack: str,
    program: Program,
    inputs: Sequence[np.ndarray],
    host_program: str,
    xla_flags: str | None,
    clock: Clock,
) -> Side:
    if stack in STACKS and stack not in (*STACK_NAMES, *XLA_STACKS):
        return _Other(stack, program, inputs, xla_flags)
    return _Compiled(Flags.parse(stack), program, inputs, host_program, clock)
