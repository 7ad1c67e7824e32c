"""Measures one workload in a process of its own: reads a request from stdin, writes events to stdout as JSON lines.

Events: {"stage": NAME} before each stage, so that a crash or a time-out can be told; {"set": {…}} with what is known of
the workload; {"column": NAME, "set": {…}} with what is known of a contestant.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """One workload for one process. workload: a name of the suite, or the absolute path of a MODULE with inputs.

    cpus: the processors that the process may use. level: of the processor that our stacks make code for, or 'host'.
    exact: also compute the errors. Seconds are per contestant. limit: seconds until the starting process ends this one;
    a little later it ends by itself, should that be gone.
    """

    workload: str
    cpus: tuple[int, ...]
    columns: tuple[str, ...]
    rounds: int
    seconds: float
    compiles: int = 3
    exact: bool = True
    limit: float = 120.0
    level: str = "host"


PAUSE = 0.03
"""Seconds after which the threads of the last contestant have stopped to wait actively: OpenBLAS's take 25 ms."""

Send = Callable[[Mapping[str, Any]], None]


def main() -> int:
    values: dict[str, Any] = json.loads(sys.stdin.readline())
    values |= {key: tuple(values[key]) for key in ("cpus", "columns")}
    request = Request(**values)
    signal.alarm(int(request.limit) + 10)
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints does not mix with the events

    def send(event: Mapping[str, Any]) -> None:
        channel.write(json.dumps(event) + "\n")
        channel.flush()

    if hasattr(os, "sched_setaffinity"):  # before any library counts the processors
        os.sched_setaffinity(0, set(request.cpus))
    from ...codegen.options import assume_host
    from ...codegen.threads import set_threads
    from ...hlo.errors import TestbedError

    set_threads(len(request.cpus))
    try:
        assume_host(request.level)
        measure(request, send)
    except TestbedError as error:
        send({"set": {"failure": str(error)}})
    return 0


def measure(request: Request, send: Send) -> None:
    """Make the workload, compile it for each contestant, run it once for its memory, race, and compute the errors."""
    from ...formats.text.parser import parse_module
    from ...hlo.errors import TestbedError
    from ...hlo.verify.verifier import verify
    from ..growth import growth
    from .limits import work_of
    from .rivals import missing, prepare

    send({"stage": "make"})
    case, text, inputs = load(request.workload)
    module = parse_module(text, request.workload)
    verify(module)
    send({"set": asdict(work_of(module))})
    rivals, results = {}, {}
    for column in request.columns:
        reason = missing(column, case)
        if reason is not None:
            send({"column": column, "set": {"status": "absent", "reason": reason}})
            continue
        send({"stage": column})
        try:
            _warm_up(column)
            rival = prepare(column, case, module, inputs, request.compiles)
            peak, first = growth(rival.first)
            results[column] = [_kept(leaf) for leaf in first]
        except TestbedError as error:
            send({"column": column, "set": {"status": "failed", "reason": str(error)}})
            continue
        found = {
            "compile_seconds": list(rival.compile_seconds),
            "compile_bytes": rival.compile_bytes,
            "stages": dict(rival.stages),
            "temporary_bytes": rival.temporary_bytes,
        }
        send({"column": column, "set": {**found, "growth_bytes": peak}})
        rivals[column] = rival
    send({"stage": "race"})
    _race({c: r.run for c, r in rivals.items()}, request, send)
    if request.exact and results:
        rivals.clear()
        send({"stage": "exact"})
        _errors(case, module, inputs, results, send)
    send({"stage": "done"})


def load(workload: str) -> tuple[Any, str, list[Any]]:
    """(case, HLO text, input leaves) of a workload. Raises InputError for a MODULE without inputs.

    Inputs lie at multiples of 64 bytes, as XLA's copies do: each contestant reads them at the same places of lines.
    """
    from ...formats.program import load_program
    from ...hlo.errors import InputError
    from ..contestants import aligned
    from .workload import Case
    from .workloads import WORKLOADS

    make = WORKLOADS[workload].make if workload in WORKLOADS else None
    if make is None:
        program = load_program(str(Path(workload)))
        if program.inputs is None:
            raise InputError(f"{workload}: has no inputs", remedy="give a folder with a module and its io.npz")
        inputs = [aligned(x) for x in program.inputs]
        return Case(tuple(inputs), program.text), program.text, inputs
    case = make()
    if case.text is not None:
        inputs = [aligned(x) for x in case.inputs]
        return replace(case, inputs=tuple(inputs)), case.text, inputs
    import jax

    case = replace(case, inputs=jax.tree_util.tree_map(aligned, case.inputs))
    with jax.enable_x64(case.x64):
        lowered = jax.jit(case.function, keep_unused=True).lower(*case.inputs)
        return (
            case,
            lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True),
            jax.tree_util.tree_leaves(case.inputs),
        )


LONG = 1 << 18
"""Elements of an array that threads share."""


WARM = f"""HloModule warm
more {{
  t = (f32[{LONG}], s32[]) parameter(0)
  k = s32[] get-tuple-element(t), index=1
  zero = s32[] constant(0)
  ROOT r = pred[] compare(k, zero), direction=GT
}}
next {{
  t = (f32[{LONG}], s32[]) parameter(0)
  x = f32[{LONG}] get-tuple-element(t), index=0
  k = s32[] get-tuple-element(t), index=1
  y = f32[{LONG}] negate(x)
  one = s32[] constant(1)
  l = s32[] subtract(k, one)
  ROOT r = (f32[{LONG}], s32[]) tuple(y, l)
}}
ENTRY e {{
  p = f32[{LONG}] parameter(0)
  n = s32[] parameter(1)
  t = (f32[{LONG}], s32[]) tuple(p, n)
  w = (f32[{LONG}], s32[]) while(t), condition=more, body=next
  ROOT r = f32[{LONG}] get-tuple-element(w), index=0
}}
"""
"""A loop, whose end is an operand, over an op on an array that is long enough for threads."""


def _warm_up(column: str) -> None:
    """Compile and run a small module, so that the start of libraries, and what is compiled once a machine, count for no
    workload: the pool of threads and host programs are compiled, too.
    """
    import numpy as np

    from ...formats.text.parser import parse_module
    from .rivals import prepare
    from .workload import Case

    module, inputs = parse_module(WARM), (np.zeros(LONG, np.float32), np.array(3, np.int32))
    prepare(column, Case(inputs, WARM, numpy=lambda x, n: -x, torch=lambda torch, x, n: -x), module, inputs, 1).first()


def _kept(leaf: Any) -> Any:
    """A result as an array that later runs do not overwrite."""
    import numpy as np

    return np.array(leaf)


def _race(runs: Mapping[str, Callable[[], Any]], request: Request, send: Send) -> None:
    from ..paired import race

    if not runs:
        return
    pause = PAUSE if len(request.cpus) > 1 else 0.0
    seconds, budget = request.seconds / request.rounds, 2 * request.seconds
    timings = race(runs, rounds=request.rounds, seconds=seconds, budget=budget, pause=pause)
    for column, timing in timings.items():
        send({"column": column, "set": {"status": "ok", "rounds": list(timing.rounds)}})


def _errors(case: Any, module: Any, inputs: Sequence[Any], results: Mapping[str, Any], send: Send) -> None:
    from ...hlo.errors import TestbedError
    from .accuracy import error_of, exact_results

    try:
        exact = exact_results(module, inputs, case.exact)
    except TestbedError as error:
        send({"set": {"no_error": str(error)}})
        return
    for column, leaves in results.items():
        try:
            found = error_of(leaves, exact)
        except ValueError as wrong:
            send({"column": column, "set": {"status": "failed", "reason": str(wrong)}})
            continue
        send({"column": column, "set": {"error": found.norm, "worst_error": found.worst}})


if __name__ == "__main__":
    sys.exit(main())
