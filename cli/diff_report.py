"""What `testbed diff` prints: results that disagree with their worst elements, a line for the rest, the stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .output import milliseconds, say, table, wrapped
from .status import UNDECIDED

if TYPE_CHECKING:
    import numpy as np

    from ..differential.bounds import Bound, Tolerance
    from ..differential.verdict import LeafComparison, Verdict
    from ..migration.stacks import Run
    from .inputs import Values


@dataclass(frozen=True)
class Compared:
    """One iteration. results: by stack, golden among them. refusals: why a stack did not run. verdict: None for one.
    stopped: what the checking mode said of a stack.
    """

    values: Values
    runs: dict[str, Run]
    refusals: dict[str, str]
    results: dict[str, Sequence[np.ndarray]]
    verdict: Verdict | None
    stopped: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        if self.verdict is None or self.refusals or self.stopped:
            return 1
        return 0 if self.verdict.agrees else UNDECIDED if self.verdict.undecided else 1

    @property
    def sentence(self) -> str:
        """The verdict in words. It says that stacks agree only if all that were asked for ran."""
        verdict = self.verdict
        if verdict is not None and not self.refusals and not self.stopped:
            return verdict.sentence
        parts = [f"suspect {', '.join(self.stopped)}, stopped by the checks of memory"] if self.stopped else []
        parts += [f"incomplete, {', '.join(self.refusals)} did not run"] if self.refusals else []
        missing = "; ".join(parts)
        if verdict is None:
            return f"{missing}; nothing to compare"
        return f"{missing}; " + (f"{', '.join(self.results)} match" if verdict.agrees else verdict.sentence)


Results = Mapping[str, Sequence["np.ndarray"]]
Bounds = Sequence["Bound | Tolerance"]

MOST_PAIRS = 12
"""Pairs of stacks and results whose elements are printed; others that disagree are counted."""


def print_iteration(verdict: Verdict | None, results: Results, bounds: Bounds, show_all: bool) -> None:
    """Print the differences between the stacks, if there was more than one."""
    if verdict is None:
        return
    failing = sorted((c for c in verdict.comparisons if not c.agrees), key=lambda c: c.leaf)
    for c in failing[:MOST_PAIRS]:
        _print_failing(c, results, bounds)
    if len(failing) > MOST_PAIRS:
        say(f"{len(failing) - MOST_PAIRS} more pairs of results disagree (--all lists them)")
    for c in verdict.comparisons:
        if c.permitted:
            say(wrapped(_permitted(c, results)))
    if show_all:
        _print_all(verdict, results)
    say(wrapped(_summary(verdict)))


def _ordered(c: LeafComparison) -> tuple[str, str]:
    """The pair with the one that relative errors refer to at the end, as verdict.py compares it."""
    return (c.right, c.left) if c.left == "evaluator" else (c.left, c.right)


def _print_failing(c: LeafComparison, results: Results, bounds: Bounds) -> None:
    from ..benchmarks.tables import left, right
    from ..differential.worst_elements import worst_elements

    actual, expected = _ordered(c)
    a, e = results[actual][c.leaf], results[expected][c.leaf]
    d = c.difference
    head = f"out{c.leaf} {shape_of(e)}: {actual} and {expected} differ"
    if a.shape != e.shape or a.dtype != e.dtype:
        say(wrapped(f"{head}: {shape_of(a)} and {shape_of(e)}"))
        return
    open_ = ", undecided" if c.undecided else ""
    say(wrapped(f"{head} in {d.failures} of {e.size} elements{open_}; {d.message or 'allowed: the same values'}"))
    cells = [
        (
            f"  [{','.join(map(str, w.index))}]",
            w.left,
            w.right,
            number(w.absolute),
            number(w.relative),
            number(w.ulp),
        )
        for w in worst_elements(a, e, bounds[c.leaf])
    ]
    columns = [left("  worst at"), right(actual), right(expected), right("abs"), right("rel"), right("ulp")]
    say(table(columns, cells))


def _permitted(c: LeafComparison, results: Results) -> str:
    actual, expected = _ordered(c)
    return (
        f"out{c.leaf} {shape_of(results[expected][c.leaf])}: {actual} and {expected} differ in {c.difference.failures} "
        "elements, as XLA's float rules permit: more runs of the evaluator, with other choices, show it"
    )


def _summary(verdict: Verdict) -> str:
    """One line on the pairs that agree, with the largest difference among them."""

    agreeing = [c for c in verdict.comparisons if c.difference.agrees]
    leaves = len({c.leaf for c in verdict.comparisons})
    pairs = len({(c.left, c.right) for c in verdict.comparisons})
    if not leaves:
        return "the result has no arrays to compare"
    good = leaves - len({c.leaf for c in verdict.comparisons if not c.agrees})
    what = f"{good} of {leaves} results agree" if leaves > 1 else f"the result {'agrees' if good else 'does not agree'}"
    head = f"{what} on {'all ' if good else ''}{pairs} {'pairs' if pairs > 1 else 'pair'} of stacks"
    if not agreeing:
        return head

    def key(c: LeafComparison) -> tuple[float, float]:
        return c.difference.max_ulp or 0.0, c.difference.max_abs or 0.0

    worst = max(agreeing, key=key)
    d = worst.difference
    if key(worst) == (0.0, 0.0):
        return f"{head}; where they agree, they are equal"
    return (
        f"{head}; the largest difference among those that agree: {number(d.max_ulp)} ulp, "
        f"{number(d.max_rel)} relative, {number(d.max_abs)} absolute (out{worst.leaf}, {worst.left} / {worst.right}"
        + (f"; {d.message})" if d.message else ")")
    )


def _print_all(verdict: Verdict, results: Results) -> None:
    from ..benchmarks.tables import left, right

    cells = [
        (
            f"out{c.leaf}",
            shape_of(results[c.left][c.leaf]),
            f"{c.left} / {c.right}",
            number(c.difference.max_abs),
            number(c.difference.max_rel),
            number(c.difference.max_ulp),
            "permitted" if c.permitted else "yes" if c.agrees else "undecided" if c.undecided else "NO",
        )
        for c in verdict.comparisons
    ]
    columns = [left("result"), left("shape"), left("pair"), right("abs"), right("rel"), right("ulp"), left("agree")]
    say(table(columns, cells))


def shape_of(value: np.ndarray) -> str:
    """The shape of an array as HLO writes it."""
    from ..hlo.dtypes import FROM_NUMPY

    return f"{FROM_NUMPY[value.dtype].value}[{','.join(map(str, value.shape))}]"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def print_stacks(runs: Mapping[str, Run], refusals: Mapping[str, str], stopped: Mapping[str, str] = {}) -> None:
    """Print a line a stack: how many kernels which stack emitted, and times."""
    from collections import Counter

    from ..benchmarks.tables import left, right

    cells = []
    for name, run in runs.items():
        emitted = Counter(stack for _, stack in run.kernels)
        kernels = ", ".join(f"{n} by {stack}" for stack, n in emitted.items()) or "–"
        seconds = f"{run.compile_seconds:.3f}" if run.compile_seconds else "–"
        cells.append((name, kernels, seconds, milliseconds(run.run_seconds)))
    cells += [(name, "did not run", "–", "–") for name in refusals]
    cells += [(name, "stopped by the checks", "–", "–") for name in stopped]
    columns = [left("stack"), left("kernels emitted"), right("compile s"), right("run ms")]
    say(table(columns, cells))
    names = [f"  {kernel}: {stack}" for name, run in runs.items() if name == "mlir" for kernel, stack in run.kernels]
    if any(not line.endswith(": mlir") for line in names):
        say("kernels of the mlir run, by the stack that emitted them:\n" + "\n".join(names))


# -- JSON -------------------------------------------------------------------------------------------------------------
def to_json(compared: Sequence[Compared], bounds: Bounds, given: bool) -> dict[str, Any]:
    """What the document says of a program: docs/json.md."""
    last = compared[-1]
    stacks = [
        {
            "name": name,
            "ran": True,
            "reason": None,
            "kernels": [{"name": kernel, "emitter": stack} for kernel, stack in run.kernels],
            "compile_seconds": run.compile_seconds,
            "run_seconds": run.run_seconds,
        }
        for name, run in last.runs.items()
    ]
    missing = (*last.refusals.items(), *last.stopped.items())
    stacks += [{"name": name, "ran": False, "reason": reason} for name, reason in missing]
    return {
        "stacks": stacks,
        "bounds": {"given": given, "results": [str(b) for b in bounds]},
        "iterations": [_iteration(c, bounds) for c in compared],
    }


def _iteration(done: Compared, bounds: Bounds) -> dict[str, Any]:
    comparisons = [] if done.verdict is None else done.verdict.comparisons
    return {
        "inputs": done.values.origin,
        "agrees": done.status == 0,
        "verdict": done.sentence,
        "groups": [] if done.verdict is None else [sorted(g) for g in done.verdict.groups],
        "undecided": done.verdict is not None and done.verdict.undecided,
        "permitted_skipped": (done.verdict.reason or None) if done.verdict is not None else None,
        "comparisons": [_comparison(c, done.results, bounds) for c in comparisons],
    }


def _comparison(c: LeafComparison, results: Results, bounds: Bounds) -> dict[str, Any]:
    from ..differential.worst_elements import worst_elements

    actual, expected = _ordered(c)
    a, e, d = results[actual][c.leaf], results[expected][c.leaf], c.difference
    return {
        "result": c.leaf,
        "shape": shape_of(e),
        "left": actual,
        "right": expected,
        "agrees": c.agrees,
        "permitted": c.permitted,
        "undecided": c.undecided,
        "failures": d.failures,
        "max_abs": d.max_abs,
        "max_rel": d.max_rel,
        "max_ulp": d.max_ulp,
        "worst": [
            {
                "index": list(w.index),
                "left": w.left,
                "right": w.right,
                "abs": w.absolute,
                "rel": w.relative,
                "ulp": w.ulp,
            }
            for w in (() if d.agrees else worst_elements(a, e, bounds[c.leaf]))
        ],
    }
