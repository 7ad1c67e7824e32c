"""Runs one corpus case on one stack in a worker process. Errors become rows; no exception leaves this file."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..backends.xla import XlaCrashed
from ..codegen.c_compiler import set_c_compiler
from ..codegen.options import Target, assume_host
from ..codegen.threads import set_threads
from ..evaluator.evaluator import evaluate
from ..ffi.from_files import load_handlers
from ..formats.program import Program, read_text
from ..hlo.dtypes import FROM_NUMPY, DType
from ..hlo.errors import TestbedError, UnsupportedError
from ..migration.platforms import keeps_subnormals
from ..migration.stacks import prepare
from .bounds import Bound, Tolerance
from .comparison import Difference, bounds, disagreeing, nearest_of
from .corpus import EXACT, EXECUTIONS, LHLO, PARSE, Case, compare_leaves, load_case
from .permitted import BUDGET, Permitted
from .report import CaseResult


def run_case(
    case: Case,
    stack: str,
    target: Target | None = None,
    xla_flags: str | None = None,
    threads: int | None = None,
    c_compiler: str | None = None,
    budget: float = BUDGET,
    handlers: tuple[str, ...] = (),
) -> CaseResult:
    """The row of a case on a stack. A module that does not parse fails.

    target: the processor that this worker process compiles for; None: this machine's. xla_flags: of the stack xla.
    threads: that may work at a kernel; None: one a processor. c_compiler: of the stack c; None: the first there is.
    budget: seconds to find out what else the float rules permit. handlers: as of load_handlers.
    """
    assume_host(target)
    set_c_compiler(c_compiler)
    set_threads(threads)
    start = time.perf_counter()
    try:
        load_handlers(handlers)
        flags = xla_flags if stack == "xla" else None
        row = _PSEUDO[stack](case) if stack in _PSEUDO else _run(case, load_case(case), stack, flags, budget)
    except XlaCrashed as error:
        row = CaseResult(case.id, stack, "crashed", error.what)
    except UnsupportedError as error:
        row = CaseResult(case.id, stack, "unsupported", error.what)
    except TestbedError as error:
        row = CaseResult(case.id, stack, "failed", _one_line(error))
    except (Exception, RecursionError) as error:  # a bug of the testbed: the row reports it, and the run continues
        row = CaseResult(case.id, stack, "crashed", f"{type(error).__name__}: {_one_line(error)}{_where(error)}")
    return replace(row, seconds=round(time.perf_counter() - start, 4))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""


def _round_trip(case: Case) -> CaseResult:
    from .roundtrip import roundtrip

    reason = roundtrip(read_text(Path(case.hlo)))
    return CaseResult(case.id, PARSE, "failed" if reason else "passed", reason or "")


def _as_lhlo(case: Case) -> CaseResult:
    from .lhlo_identity import difference

    with np.errstate(all="ignore"):
        reason = difference(load_case(case))
    return CaseResult(case.id, LHLO, "failed" if reason else "passed", reason or "")


def _in_every_way(case: Case) -> CaseResult:
    from .executions import difference

    with np.errstate(all="ignore"):
        reason = difference(load_case(case))
    return CaseResult(case.id, EXECUTIONS, "failed" if reason else "passed", reason or "")


def _over_fields(case: Case) -> CaseResult:
    from .exact.check import Status
    from .exact.program import check_all

    rows = check_all(load_case(case).module)
    wrong = next((r for r in rows if r.status is Status.DIFFER), None)
    if wrong is None and all(r.status is Status.NOT_RUN for r in rows):
        return CaseResult(case.id, EXACT, "unsupported", rows[0].reason if rows else "no kernels")
    return CaseResult(
        case.id, EXACT, "failed" if wrong else "passed", f"{wrong.kernel}: {wrong.reason}" if wrong else ""
    )


_PSEUDO = {PARSE: _round_trip, LHLO: _as_lhlo, EXECUTIONS: _in_every_way, EXACT: _over_fields}


def _run(case: Case, program: Program, stack: str, flags: str | None, budget: float) -> CaseResult:
    if program.expected is None:
        raise UnsupportedError(stack, "a case with no inputs and results", remedy="use --stacks parse")
    with np.errstate(all="ignore"):
        results = prepare(stack, program, flags).run(program.inputs or ())
        differences = compare_leaves(case, results, program.expected)
        if not all(d.agrees for d in differences) and keeps_subnormals(stack):
            differences = compare_leaves(case, results, _with_subnormals(program, results))
        bad = [(i, d) for i, d in enumerate(differences) if not d.agrees]
        status, why = _judged(case, program, stack, results, [i for i, _ in bad], budget)
    return CaseResult(
        case.id,
        stack,
        status,
        _describe(*bad[0]) + why if status != "passed" else "",
        _most(d.max_abs for d in differences),
        _most(d.max_rel for d in differences),
        _most(d.max_ulp for d in differences),
    )


def _judged(
    case: Case, program: Program, stack: str, results: Sequence[np.ndarray], bad: Sequence[int], budget: float
) -> tuple[str, str]:
    """(Status, what to add to the reason) of a case with result leaves that are beyond its bounds."""
    if not bad:
        return "passed", ""
    if stack in INTERPRETED:  # the float rules permit whatever the evaluator gives
        return "failed", ""
    assert program.expected is not None
    inputs = program.inputs or ()
    permitted = Permitted(program.module, inputs, budget=budget, subnormals=keeps_subnormals(stack))
    permitted.ask_about(bad)
    answers = []
    for leaf in bad:
        a, e = results[leaf], program.expected[leaf]
        if a.shape != e.shape or a.dtype != e.dtype:
            return "failed", ""
        dtype = FROM_NUMPY[e.dtype]
        allowed = Tolerance(*bounds(dtype, case.atol, case.rtol, case.one_op), 0.0) if _is_near(dtype) else Bound()
        answers.append(permitted.permits(leaf, [a, e], allowed, disagreeing(a, e, dtype, allowed)))
    if False in answers:
        return "failed", ""
    return ("undecided", f"; undecided, {permitted.skipped}") if None in answers else ("passed", "")


INTERPRETED = frozenset({"evaluator", "optimized"})


def _is_near(dtype: DType) -> bool:
    """Whether values of a type may be near one another without being the same."""
    return dtype.is_float or dtype.is_complex


def _with_subnormals(program: Program, results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What is expected, or where subnormals make the oracle's result another one, the nearer of that and the former."""
    assert program.expected is not None
    oracle = [evaluate(program.module, program.inputs or (), flush_subnormals=flush) for flush in (True, False)]
    return [
        nearest_of(r, [e, np.where((zeros == kept) | (zeros != zeros) & (kept != kept), e, kept)])
        for r, e, zeros, kept in zip(results, program.expected, *oracle, strict=True)
    ]


def _describe(leaf: int, difference: Difference) -> str:
    if difference.message:
        return f"result {leaf}: {difference.message}"
    where = f", first at {list(difference.first_bad_index)}" if difference.first_bad_index else ""
    return (
        f"result {leaf}: {difference.failures} elements differ{where}; largest error "
        f"{difference.max_abs:.3g} absolute, {difference.max_rel:.3g} relative, {difference.max_ulp:.3g} ulp"
    )


def _most(values: Iterator[float | None]) -> float | None:
    """The largest finite value; None if there is none, because JSON has no infinity."""
    finite = [float(v) for v in values if v is not None and math.isfinite(v)]
    return max(finite, default=None)
