"""Judges damaged LHLO in child processes: it is refused with its place, or it runs; nothing else may happen."""

from __future__ import annotations

import multiprocessing
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.context import BaseContext

from pebble import ProcessExpired, ProcessPool

from ...backends.base import CompileOptions
from ...codegen.options import EmitOptions
from ...differential.fake_inputs import fake_inputs
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError
from ...hlo.verify.verifier import verify
from ...lhlo import from_kernels, from_plan, parse
from ...migration import Flags
from ...migration.compile import compile_program
from ...migration.programs import load_any, plan_of
from ...planning.planner import plan
from ...profiling.insert import profiled
from ..generators.mutated_lhlo import damaged_bytecode, damaged_text
from .corpus import sample
from .lhlo_programs import LOOP, SMALL_LOOP
from .lhlo_reader import forked

SECONDS = 90.0
"""How long a mutant may take, on a busy machine, too. One that takes longer is a loop without an end."""

LONGEST = 5_000
"""Characters of the longest text that is damaged: in a longer one most damage is of the same few kinds."""

BIGGEST = 1 << 24
"""Bytes of memory past which an accepted program is not run."""

TOGETHER = 50
"""Mutants that a process judges before it answers. If it dies, each of them is judged alone."""

Judged = tuple[int, str, str]
"""Seed, what became of the mutant, and what is wrong with that ("" if nothing is)."""


@dataclass
class Findings:
    """counts: how many mutants were refused, ran, …. wrong: (seed, what happened) of those that show an error."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, judged: Judged) -> None:
        seed, state, reason = judged
        self.counts[state] += 1
        if reason:
            self.wrong.append((seed, reason))


def forms(text: str) -> list[str]:
    """A module as a program and as kernels; nothing where it cannot be planned or written."""
    try:
        made = plan(parse_module(text))
        return [from_plan(made).to_text(), from_kernels(made.kernels).to_text()]
    except TestbedError:
        return []


@cache
def bases(count: int) -> tuple[str, ...]:
    """Programs and kernels of `count` cases of one op, as LHLO, of a loop, and a program with a profiler."""
    found = [from_plan(profiled(plan(parse_module(SMALL_LOOP)))).to_text()]
    for text in (LOOP, *(p.read_text() for p in sample("op_cases/*.hlo", count, seed=5))):
        found += forms(text)
    return tuple(t for t in found if len(t) <= LONGEST)


def mutant(texts: Sequence[str], seed: int, bytecode: bool) -> tuple[bytes, str]:
    """The bytes and the file's name of a mutant."""
    draw = random.Random(seed)
    text = draw.choice(texts)
    if bytecode:
        return damaged_bytecode(text, draw), "mutant.lhlo.mlirbc"
    return damaged_text(text, draw), "mutant.lhlo.mlir"


def findings(texts: Sequence[str], seeds: Sequence[int], bytecode: bool = False) -> Findings:
    """What happened to the mutants of all seeds: all text, or all bytecode."""
    found = Findings()
    for judged in judgements(texts, seeds, lambda seed: bytecode):
        found.add(judged)
    return found


def judgements(
    texts: Sequence[str], seeds: Sequence[int], bytecode: Callable[[int], bool], jobs: int = 1
) -> Iterator[Judged]:
    """What happened to each mutant, in order, judged by `jobs` processes. bytecode: of a seed."""
    context = multiprocessing.get_context("spawn")
    with ProcessPool(jobs, max_tasks=20, context=context, initializer=_start, initargs=[texts]) as pool:
        tasks = [[(seed, bytecode(seed)) for seed in seeds[n : n + TOGETHER]] for n in range(0, len(seeds), TOGETHER)]
        scheduled = [(task, pool.schedule(_judge_all, [task], timeout=SECONDS * 5)) for task in tasks]
        for task, job in scheduled:
            found = _outcome(job)
            if isinstance(found, str):
                found = [_alone(context, texts, one) for one in task]
            yield from found


def _outcome(job: Future[list[Judged]]) -> list[Judged] | str:
    """What a process answered, or how it ended."""
    try:
        return job.result()
    except TimeoutError:
        return f"no answer within {SECONDS:g} s"
    except ProcessExpired as died:
        return f"the process died with status {died.exitcode}"


def _alone(context: BaseContext, texts: Sequence[str], one: tuple[int, bool]) -> Judged:
    with ProcessPool(1, context=context, initializer=_start, initargs=[texts]) as pool:  # the others' tasks come later
        found = _outcome(pool.schedule(_judge_all, [[one]], timeout=SECONDS))
    return (one[0], "died", found) if isinstance(found, str) else found[0]


_TEXTS: list[str] = []
"""In a process that judges: what is damaged."""


def _start(texts: Sequence[str]) -> None:
    import faulthandler
    import resource

    import llvmlite.binding  # noqa: F401

    _TEXTS[:] = texts
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _judge_all(task: list[tuple[int, bool]]) -> list[Judged]:
    return [(seed, *_judged(seed, bytecode)) for seed, bytecode in task]


NEW_PROCESS = parse.child


def _judged(seed: int, bytecode: bool) -> tuple[str, str]:
    # One bytecode in ten of a campaign's is read as commands read it; a process for each would take most of the time.
    setattr(parse, "child", NEW_PROCESS if seed % 50 == 4 else forked)  # noqa: B010
    try:
        return judge(*mutant(_TEXTS, seed, bytecode), optimized=seed % 4 == 0)
    except Exception:
        return "raised", traceback.format_exc()[-1500:]


def judge(data: bytes, file: str, optimized: bool) -> tuple[str, str]:
    """(what became of a file, "" or what is wrong with that). optimized: by LLVM. Raises what is no TestbedError."""
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
    options = CompileOptions(replace(EmitOptions.host(), optimized=optimized), cache=None, red_zones=True)
    state = "ran"
    for stack in ("legacy", "mlir"):
        try:
            executable = compile_program(program, Flags.parse(stack), options)
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
