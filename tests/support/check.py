"""`check(hlo_text, inputs)` runs a module on the evaluator and both stacks and compares the results.

A mismatch writes a finding (module, inputs, stacks, IR of both, verdict, a command to run it again, a unit test) and
names its folder.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...backends.base import MemoryFault
from ...backends.host.executable import HostExecutable
from ...differential.bounds import Bound, bounds_of
from ...differential.comparison import compare, compare_within
from ...differential.finding import Finding, write_finding
from ...differential.outcome import OutcomeKind
from ...differential.setting import USUAL, Setting
from ...evaluator.evaluator import evaluate
from ...formats.program import parameter_leaves
from ...formats.text.parser import parse_module
from ...hlo.dtypes import FROM_NUMPY
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from ...migration.choose import present
from .inputs import make_inputs

STACKS = ("evaluator", *([os.environ["TESTBED_EMITTERS"]] if os.environ.get("TESTBED_EMITTERS") else present()))
"""'evaluator', or flags of a compiled run: 'legacy', 'mlir', 'mlir,reduce=legacy'. The first stack is the reference.
These are all stacks that the package has, or the one that `bazel test --config=mlir` names.
"""


@dataclass(frozen=True)
class Tolerance:
    """Limits given by hand, for the corpus' rule."""

    atol: float = 0.0
    rtol: float = 0.0


MOST_CHECKED_BYTES = int(os.environ.get("TESTBED_CHECKED_BYTES", 1 << 20))
"""Bytes of inputs and results up to which `check` runs the executables in the checking mode, too; -1: none."""


def check(
    hlo_text: str,
    inputs: Sequence[np.ndarray] | None = None,
    stacks: Sequence[str] = STACKS,
    *,
    seed: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
    memory: bool = True,
) -> list[np.ndarray]:
    """Raise AssertionError that names a repro folder unless all stacks agree. Returns the first stack's results.

    The stacks must agree within the bounds that differential/bounds.py derives from the module, or within atol and rtol
    where one of them is given. inputs: None makes them from `seed`, once ordinary ones and once with special values
    among them; the results are those of the ordinary ones. Errors of a stage (UnsupportedError, VerificationError, …)
    pass through. memory: whether small cases run once more in the checking mode (docs/debugging.md): no kernel may read
    foreign or unwritten memory, and the results must have the same bits.
    """
    module = parsed(hlo_text)
    limits = bounds_of(module) if atol is None and rtol is None else Tolerance(atol or 0.0, rtol or 0.0)
    if inputs is not None:
        return _check(hlo_text, [np.asarray(x) for x in inputs], stacks, limits, memory)
    results = _check(hlo_text, make_inputs(module, seed), stacks, limits, memory)
    if parameter_leaves(module):
        _check(hlo_text, make_inputs(module, seed, special=True), stacks, limits, memory=False)  # of the same code
    return results


def _check(
    hlo_text: str,
    values: Sequence[np.ndarray],
    stacks: Sequence[str],
    limits: Sequence[Bound] | Tolerance,
    memory: bool,
) -> list[np.ndarray]:
    results = {stack: run_stack(hlo_text, stack, values) for stack in stacks}
    complaints = [c for stack in stacks[1:] for c in disagreements(results, stacks[0], stack, limits)]
    checked = memory and not complaints
    if checked:
        complaints = [c for stack in stacks for c in memory_faults(hlo_text, stack, values, results[stack])]
    if complaints:
        folder = write_repro(hlo_text, values, results, complaints, Setting(memory=checked))
        raise AssertionError("\n".join([*complaints[:10], f"repro: {folder}", (folder / "rerun").read_text().strip()]))
    return results[stacks[0]]


@functools.lru_cache(maxsize=256)
def parsed(hlo_text: str) -> Module:
    return parse_module(hlo_text)


@functools.lru_cache(maxsize=512)
def compiled(hlo_text: str, flags: str) -> HostExecutable:
    """A compiled module, cached, so that a property test over inputs compiles once."""
    return compile_module(parsed(hlo_text), Flags.parse(flags))


def run_stack(hlo_text: str, stack: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    if stack == "evaluator":
        return evaluate(parsed(hlo_text), inputs)
    return compiled(hlo_text, stack).execute(inputs)


def memory_faults(hlo_text: str, stack: str, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> list[str]:
    """One line if a kernel of a compiled stack goes wrong with memory, or a result then has other bits."""
    if stack == "evaluator" or sum(x.nbytes for x in (*inputs, *results)) > MOST_CHECKED_BYTES:
        return []
    if any("custom_call_has_side_effect" in i.attributes for i in parsed(hlo_text).instructions()):
        return []  # it would happen once more
    try:
        again = compiled(hlo_text, stack).execute_checked(inputs)
    except MemoryFault as fault:
        return [f"{stack}: {fault}"]
    differing = [leaf for leaf, (a, e) in enumerate(zip(again, results)) if a.tobytes() != e.tobytes()]
    return [f"{stack}: other bits in the checking mode in out{leaf}" for leaf in differing[:1]]


def disagreements(
    results: Mapping[str, Sequence[np.ndarray]], reference: str, stack: str, limits: Sequence[Bound] | Tolerance
) -> list[str]:
    """One line for each leaf in which two stacks differ."""
    expected, actual = results[reference], results[stack]
    if len(expected) != len(actual):
        return [f"{stack} returns {len(actual)} leaves, {reference} {len(expected)}"]
    lines = []
    for leaf, (a, e) in enumerate(zip(actual, expected)):
        dtype = FROM_NUMPY[e.dtype]
        if isinstance(limits, Tolerance):
            d = compare(a, e, dtype, atol=limits.atol, rtol=limits.rtol)
        else:
            d = compare_within(a, e, dtype, limits[leaf])
        if not d.agrees:
            at = d.first_bad_index
            values = "" if at is None else f"; first at {list(at)}: {a[at]!r} where {reference} has {e[at]!r}"
            size = f"max abs {d.max_abs:.3g}, rel {d.max_rel:.3g}, ulp {d.max_ulp:.3g}"
            line = f"out{leaf}: {stack} differs from {reference} in {d.failures} of {e.size} elements ({size}){values}"
            lines.append(f"{line}; {d.message}" if d.message else line)
    return lines


def write_repro(
    hlo_text: str,
    inputs: Sequence[np.ndarray],
    results: Mapping[str, Sequence[np.ndarray]],
    complaints: Sequence[str],
    setting: Setting = USUAL,
) -> Path:
    """Write a finding (differential/finding.py). The expected outputs are those of the first stack."""
    digest = hashlib.sha256(hlo_text.encode() + b"".join(x.tobytes() for x in inputs)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / "testbed-repro" / digest
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier run of the same test
    stacks = tuple(results)
    case = Finding(hlo_text, parsed(hlo_text), tuple(inputs), stacks, OutcomeKind.DIFFER, sentence=complaints[0])
    case = replace(case, setting=setting)
    return write_finding(folder, case, expected=results[stacks[0]], verdict="\n".join(complaints))
