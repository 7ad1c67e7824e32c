"""Judges damaged LHLO in child processes: it is refused with its place, or it runs; nothing else may happen."""

from __future__ import annotations

import multiprocessing
import random
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from pebble import ProcessExpired, ProcessPool

from ...backends.base import CompileOptions
from ...differential.fake_inputs import fake_inputs
from ...formats.program import Program
from ...hlo.errors import TestbedError
from ...hlo.verify.verifier import verify
from ...migration import Flags
from ...migration.compile import compile_program
from ...migration.programs import load_any, plan_of
from ..generators.mutated_lhlo import damaged_bytecode, damaged_text

SECONDS = 5.0
"""How long a mutant may take. One that takes longer is a loop without an end, as far as anybody can tell."""

BIGGEST = 1 << 24
"""Bytes of memory past which an accepted program is not run."""


@dataclass
class Findings:
    """counts: how many mutants were refused, ran, …. wrong: (seed, what happened) of those that show an error."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)


def mutant(bases: Sequence[str], seed: int, bytecode: bool) -> tuple[bytes, str]:
    """The bytes and the file's name of a mutant."""
    draw = random.Random(seed)
    text = draw.choice(bases)
    if bytecode:
        return damaged_bytecode(text, draw), "mutant.lhlo.mlirbc"
    return damaged_text(text, draw), "mutant.lhlo.mlir"


def _outcome(job: Future[tuple[str, str]]) -> tuple[str, str]:
    try:
        return job.result()
    except TimeoutError:
        return "endless", ""
    except ProcessExpired as died:
        return "died", f"the process died with status {died.exitcode}"


def findings(bases: Sequence[str], seeds: Sequence[int], bytecode: bool = False) -> Findings:
    """What happened to the mutants of all seeds."""
    found = Findings()
    with ProcessPool(1, context=multiprocessing.get_context("spawn")) as pool:
        pool.schedule(_start).result()
        jobs = [(seed, pool.schedule(_judged, (list(bases), seed, bytecode), timeout=SECONDS)) for seed in seeds]
        for seed, job in jobs:
            state, reason = _outcome(job)
            found.counts[state] += 1
            if reason:
                found.wrong.append((seed, reason))
    return found


def _start() -> None:
    import faulthandler
    import resource

    import llvmlite.binding  # noqa: F401

    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _judged(bases: Sequence[str], seed: int, bytecode: bool) -> tuple[str, str]:
    try:
        return judge(*mutant(bases, seed, bytecode))
    except Exception:
        return "raised", traceback.format_exc()[-1500:]


def judge(data: bytes, file: str) -> tuple[str, str]:
    """(what became of a file, "" or what is wrong with that). Raises what is no TestbedError."""
    try:
        loaded = load_any(data, file)
    except TestbedError as error:
        return "refused", _unplaced(error, file)
    try:
        verify(loaded.module)
    except TestbedError as error:
        return "accepted", f"its HLO is refused: {error}"
    program = Program(file, loaded.text, loaded.module, plan=loaded.plan)
    made = plan_of(program)
    assert made is not None
    if sum(a.size for a in made.assignment.allocations) > BIGGEST:
        return "too big to run", ""
    inputs = fake_inputs(loaded.module)
    state = "ran"
    for stack in ("legacy", "mlir"):
        try:
            executable = compile_program(program, Flags.parse(stack), CompileOptions(cache=None, red_zones=True))
        except TestbedError as error:
            state = "unsupported"
            if reason := _unplaced(error, file):
                return state, f"{stack}: {reason}"
            continue
        try:
            executable.execute([x.copy() for x in inputs])
        except TestbedError as error:
            return "failed", f"{stack}: {error}"
    return state, ""


def _unplaced(error: TestbedError, file: str) -> str:
    place = error.location
    return "" if place is not None and place.file == file else f"no place in {type(error).__name__}: {error}"
