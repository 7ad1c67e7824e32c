"""Times a program end to end and its steps: runs without marks, with marks around the run, around each step."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..backends.forms import Form, Forms
from ..codegen.threads import threads
from ..hlo.analysis.cost_analysis import Cost
from ..profiling.facts import Facts, Known, StepFacts, facts_of
from ..profiling.report import Report, Step
from ..profiling.totals import MOST_COST, Times, Totals, parents_of, times_of, totals, undisturbed
from ..thunks.events import MOST_EVENTS
from ..thunks.kinds import ConditionalThunk, KernelThunk, Thunk, WhileThunk, kind_of
from ..thunks.marked import numbered_steps

if TYPE_CHECKING:
    from ..profiling.recorder import Recording

ROUNDS, LEAST_ROUNDS = 101, 11
"""Rounds in which each form of the program runs a burst: the most, and the fewest."""

BURST = 1e-3
"""Seconds of a burst, in which a busy machine seldom interrupts; one run, where that takes longer."""

FIRST_RUNS = 3
"""Runs of each form that are not timed, because the first ones prepare the entry and fill caches."""

SECONDS = 0.5
"""Seconds of all bursts of a form, more where LEAST_ROUNDS take longer."""


PLAIN, RUN, STEPS = range(3)
"""Places of these forms among those that take turns."""


@dataclass(frozen=True)
class Measured:
    """Nanoseconds a run; lower quartiles of bursts. wall: by the host's timer, without marks. least: of the shortest.

    entry: before and after the run itself: arguments, results. ratio: of entry and run together to wall. overhead: of
    wall with marks around each step to wall. event: what an event costs in a row of them. runs: of each form. lost:
    events of a run that did not fit. recordings: the events of the last burst.
    """

    wall: float
    least: float
    entry: float
    ratio: float
    overhead: float
    times: Times
    event: float
    runs: int
    lost: int
    recordings: tuple[Recording, ...]


@dataclass(frozen=True)
class _Burst:
    """wall: nanoseconds a run. totals: of its events, if it has any."""

    wall: float
    totals: Totals


def measure(forms: Forms, inputs: Sequence[np.ndarray], iterations: int | None = None) -> Measured:
    """Run the forms in turn. iterations: runs of each; None: as many as fit SECONDS."""
    steps = numbered_steps(forms.plain.thunks)
    executables = (forms.plain, forms.run, forms.steps, forms.empty, forms.empty_run)
    runs = _plan(*_prepare(executables, inputs), iterations)
    bursts, last, lost = _in_turn(executables, inputs, runs, len(steps) + 1)
    plain, run, inside, empty, empty_run = (undisturbed(b.wall for b in kind) for kind in bursts)
    event = forms.run.event_cost()
    whole = [burst.totals for burst in bursts[RUN]]
    length = max(undisturbed(float(t.times[0]) / max(t.runs, 1) for t in whole) - event, 0.0)
    times = times_of(
        [burst.totals for burst in bursts[STEPS]], parents_of([depth for depth, _ in steps]), length, event
    )
    marks = float(np.clip(empty_run - empty, 2 * event, 2 * MOST_COST * event))
    call = run if event else plain  # a device notes times by itself: the run is as long without marks
    entry = max(call - times.run - marks, 0.0)
    return Measured(
        wall=plain,
        least=min(burst.wall for burst in bursts[PLAIN]),
        entry=entry,
        ratio=(entry + times.run) / plain,
        overhead=inside / plain,
        times=times,
        event=event,
        runs=sum(runs),
        lost=lost,
        recordings=last,
    )


def _in_turn(
    executables: Sequence[Form], inputs: Sequence[np.ndarray], runs: Sequence[int], count: int
) -> tuple[list[list[_Burst]], tuple[Recording, ...], int]:
    """(the bursts of each executable, the events of the last burst of STEPS, the most that a burst of it lost)."""
    bursts: list[list[_Burst]] = [[] for _ in executables]
    last: tuple[Recording, ...] = ()
    lost = 0
    enabled = gc.isenabled()
    gc.disable()
    try:
        for number, repeats in enumerate(runs):
            for place in range(len(executables)):
                which = (number + place) % len(executables)
                wall, events = _burst(executables[which], inputs, repeats)
                bursts[which].append(_Burst(wall, _added(events, count)))
                if which == STEPS:
                    last, lost = events, max([lost, *(r.lost for r in events)])
    finally:
        if enabled:
            gc.enable()
    return bursts, last, lost


def report(name: str, emitters: str, forms: Forms, measured: Measured) -> Report:
    """The report of a program. name: as the caller knows it. emitters: what it was compiled with."""
    executable, times = forms.plain, measured.times
    steps = tuple(
        Step(
            *(facts.facts.name, facts.kind, depth, facts.facts.opcode, facts.facts.family, facts.shape, facts.stack),
            op_name=facts.facts.op_name,
            source=facts.facts.source,
            calls=float(times.calls[n]),
            total=float(times.total[n]),
            own=float(times.own[n]),
            least=float(times.least[n]),
            bytes=float(facts.work.bytes),
            flops=float(facts.work.flops),
            transcendentals=float(facts.work.transcendentals),
            split=facts.split and threads() > 1,
            iterations=iterations,
            parts=facts.parts,
            form=facts.form,
        )
        for n, (depth, facts, iterations) in enumerate(_described(executable, times))
    )
    return Report(
        *(name, emitters, executable.host_program, threads()),
        wall=measured.wall,
        least=measured.least,
        entry=measured.entry,
        run=times.run,
        between=times.between,
        overhead=measured.overhead,
        event=measured.event,
        marginal=times.event,
        scale=times.scale,
        runs=measured.runs,
        lost=measured.lost,
        steps=steps,
    )


def _described(executable: Form, times: Times) -> Iterator[tuple[int, StepFacts, float | None]]:
    """(depth, facts, iterations of a loop) by step."""
    steps = numbered_steps(executable.thunks)
    stacks = dict(executable.kernels)
    planned: list[StepFacts] = []
    if executable.is_planned:
        planned = facts_of(executable.plan, stacks, executable.program.attributes, executable.form_names)
    known = Known(planned)
    for n, (depth, thunk) in enumerate(steps):
        iterations = None
        if isinstance(thunk, WhileThunk):
            body = n + 1 + len(numbered_steps(thunk.condition))
            iterations = float(times.calls[body]) if numbered_steps(thunk.body) else None
        yield depth, known.take(thunk.name, kind_of(thunk)) or _facts_of_thunk(thunk, stacks), iterations


def _facts_of_thunk(thunk: Thunk, stacks: Mapping[str, str]) -> StepFacts:
    """What a thunk says of its step, of a program from a file, which has no HLO."""
    kind = kind_of(thunk)
    moved = 0.0 if isinstance(thunk, (WhileThunk, ConditionalThunk)) else float(sum(u.slice.size for u in thunk.uses))
    stack = stacks.get(thunk.symbol, "") if isinstance(thunk, KernelThunk) else ""
    opcode = "" if isinstance(thunk, KernelThunk) else kind
    split = isinstance(thunk, KernelThunk) and thunk.split is not None
    return StepFacts(Facts(thunk.name, opcode), kind, "", stack, Cost(bytes=moved), split=split)


def _prepare(executables: Sequence[Form], inputs: Sequence[np.ndarray]) -> tuple[float, int]:
    """(seconds of a run with all marks, events of it), after runs that pay for what only the first ones do."""
    longest, events = 0.0, 0
    for executable in executables:
        seconds = []
        for _ in range(FIRST_RUNS):
            start = time.perf_counter()
            executable.execute(inputs)
            seconds.append(time.perf_counter() - start)
            if executable.is_recording:
                events = max([events, *(len(r.marks) + r.lost for r in executable.take_events())])
        longest = max(longest, min(seconds))
    return longest, events


def _plan(seconds: float, events: int, iterations: int | None) -> list[int]:
    """The runs of each round's burst: the events of a burst fit into a frame."""
    most = max(1, MOST_EVENTS // max(events, 1) - 1)
    if iterations is None:
        count = min(most, max(1, int(BURST / max(seconds, 1e-7))))
        return [count] * min(ROUNDS, max(LEAST_ROUNDS, int(SECONDS / max(seconds * count, 1e-7))))
    rounds = max(min(ROUNDS, iterations), -(-iterations // most))
    return [(n + 1) * iterations // rounds - n * iterations // rounds for n in range(rounds)]


def _burst(executable: Form, inputs: Sequence[np.ndarray], count: int) -> tuple[float, tuple[Recording, ...]]:
    """(nanoseconds a run, the events of all runs)."""
    execute = executable.execute
    execute(inputs)  # not timed: it pays for the cold caches after another form
    if executable.is_recording:
        executable.take_events()
    start = time.perf_counter_ns()
    for _ in range(count):
        execute(inputs)
    wall = (time.perf_counter_ns() - start) / count
    return wall, tuple(executable.take_events()) if executable.is_recording else ()


def _added(events: Sequence[Recording], count: int) -> Totals:
    """The sums of a burst; events are not kept, as there may be millions. count: of ids."""
    parts = [totals(r.marks, r.times, count) for r in events]
    nothing = np.zeros(count)
    return Totals(
        sum(p.runs for p in parts),
        sum((p.calls for p in parts), nothing),
        sum((p.times for p in parts), nothing),
        sum((p.events for p in parts), nothing),
        np.min([p.least for p in parts], axis=0) if parts else np.full(count, np.inf),
    )
