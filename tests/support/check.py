"""`check(hlo_text, inputs)` runs a module on the evaluator and both stacks and compares the results.

A mismatch writes a repro folder (module, inputs, flags, IR of both stacks, verdict, a command to run it again) and
names the folder.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...backends.base import CompileOptions
from ...backends.host.executable import HostExecutable
from ...differential.bounds import Bound, bounds_of
from ...differential.comparison import compare, compare_within
from ...evaluator.evaluator import evaluate
from ...formats.program import parameter_leaves, save_io
from ...formats.text.parser import parse_module
from ...hlo.dtypes import FROM_NUMPY
from ...hlo.errors import TestbedError
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from .inputs import make_inputs

STACKS = ("evaluator", "legacy", "mlir")
"""'evaluator', or flags of a compiled run: 'legacy', 'mlir', 'mlir,reduce=legacy'. The first stack is the reference."""


@dataclass(frozen=True)
class Tolerance:
    """Limits given by hand, for the corpus' rule."""

    atol: float = 0.0
    rtol: float = 0.0


def check(
    hlo_text: str,
    inputs: Sequence[np.ndarray] | None = None,
    stacks: Sequence[str] = STACKS,
    *,
    seed: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
) -> list[np.ndarray]:
    """Raise AssertionError that names a repro folder unless all stacks agree. Returns the first stack's results.

    The stacks must agree within the bounds that differential/bounds.py derives from the module, or within atol and rtol
    where one of them is given. inputs: None makes them from `seed`, once ordinary ones and once with special values
    among them; the results are those of the ordinary ones. Errors of a stage (UnsupportedError, VerificationError, …)
    pass through.
    """
    module = parsed(hlo_text)
    limits = bounds_of(module) if atol is None and rtol is None else Tolerance(atol or 0.0, rtol or 0.0)
    if inputs is not None:
        return _check(hlo_text, [np.asarray(x) for x in inputs], stacks, limits)
    results = _check(hlo_text, make_inputs(module, seed), stacks, limits)
    if parameter_leaves(module):
        _check(hlo_text, make_inputs(module, seed, special=True), stacks, limits)
    return results


def _check(
    hlo_text: str, values: Sequence[np.ndarray], stacks: Sequence[str], limits: Sequence[Bound] | Tolerance
) -> list[np.ndarray]:
    results = {stack: run_stack(hlo_text, stack, values) for stack in stacks}
    complaints = [c for stack in stacks[1:] for c in disagreements(results, stacks[0], stack, limits)]
    if complaints:
        folder = write_repro(hlo_text, values, results, complaints)
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
    hlo_text: str, inputs: Sequence[np.ndarray], results: Mapping[str, Sequence[np.ndarray]], complaints: Sequence[str]
) -> Path:
    """Write a folder that `testbed diff` accepts. The expected outputs are those of the first stack."""
    digest = hashlib.sha256(hlo_text.encode() + b"".join(x.tobytes() for x in inputs)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / "testbed-repro" / digest
    folder.mkdir(parents=True, exist_ok=True)
    stacks = list(results)
    (folder / "module.hlo").write_text(hlo_text)
    save_io(folder / "io.npz", inputs, results[stacks[0]])
    (folder / "flags.txt").write_text("\n".join(stacks) + "\n")
    (folder / "verdict.txt").write_text("\n".join(complaints) + "\n")
    for stack in stacks:
        if stack != "evaluator":
            _write_stages(folder / "stages" / stack, hlo_text, stack)
    names = ",".join(s for s in stacks if "=" not in s)
    mixed = next((f" --emitters {s}" for s in stacks if "=" in s), "")
    (folder / "rerun").write_text(f"./testbed diff {folder} --stacks {names}{mixed}\n")
    return folder


def _write_stages(folder: Path, hlo_text: str, flags: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    options = replace(CompileOptions(cache=None), keep_stages=True)
    try:
        stages = compile_module(parsed(hlo_text), Flags.parse(flags), options).stages
    except TestbedError as error:
        stages = (("error.txt", str(error)),)
    for name, text in stages:
        (folder / name).write_text(text)
