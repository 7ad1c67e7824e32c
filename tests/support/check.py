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
from ...differential.comparison import compare
from ...evaluator.evaluator import evaluate
from ...formats.program import parameter_leaves, save_io
from ...formats.text.parser import parse_module
from ...hlo.dtypes import FROM_NUMPY, DType
from ...hlo.errors import TestbedError
from ...hlo.ir import Module
from ...migration import Flags, compile_module

STACKS = ("evaluator", "legacy", "mlir")
"""'evaluator', or flags of a compiled run: 'legacy', 'mlir', 'mlir,reduce=legacy'. The first stack is the reference."""


@dataclass(frozen=True)
class Bounds:
    """Limits of the difference between results; None for the rule's own. one_op: see differential/comparison.py."""

    atol: float | None = None
    rtol: float | None = None
    one_op: str | None = None


def check(
    hlo_text: str,
    inputs: Sequence[np.ndarray] | None = None,
    stacks: Sequence[str] = STACKS,
    *,
    seed: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
    one_op: str | None = None,
) -> list[np.ndarray]:
    """Raise AssertionError that names a repro folder unless all stacks agree. Returns the first stack's results.

    inputs: None makes them from `seed`. Errors of a stage (UnsupportedError, VerificationError, …) pass through.
    """
    module = parsed(hlo_text)
    values = make_inputs(module, seed) if inputs is None else [np.asarray(x) for x in inputs]
    results = {stack: run_stack(hlo_text, stack, values) for stack in stacks}
    bounds = Bounds(atol, rtol, one_op)
    complaints = [c for stack in stacks[1:] for c in disagreements(results, stacks[0], stack, bounds)]
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
    results: Mapping[str, Sequence[np.ndarray]], reference: str, stack: str, bounds: Bounds = Bounds()
) -> list[str]:
    """One line for each leaf in which two stacks differ."""
    expected, actual = results[reference], results[stack]
    if len(expected) != len(actual):
        return [f"{stack} returns {len(actual)} leaves, {reference} {len(expected)}"]
    lines = []
    for leaf, (a, e) in enumerate(zip(actual, expected)):
        d = compare(a, e, FROM_NUMPY[e.dtype], atol=bounds.atol, rtol=bounds.rtol, one_op=bounds.one_op)
        if not d.agrees:
            at = d.first_bad_index
            values = "" if at is None else f"; first at {list(at)}: {a[at]!r} where {reference} has {e[at]!r}"
            size = f"max abs {d.max_abs:.3g}, rel {d.max_rel:.3g}, ulp {d.max_ulp:.3g}"
            line = f"out{leaf}: {stack} differs from {reference} in {d.failures} of {e.size} elements ({size}){values}"
            lines.append(f"{line}; {d.message}" if d.message else line)
    return lines


def make_inputs(module: Module, seed: int = 0) -> list[np.ndarray]:
    """Random inputs: floats uniform in [-1, 1), integers from 0 to 4, random preds."""
    rng = np.random.default_rng(seed)
    return [_random(rng, shape.dtype, shape.dims) for shape in parameter_leaves(module)]


def _random(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    if dtype is DType.PRED:
        return rng.integers(0, 2, dims).astype(np.bool_)
    if dtype.is_integer:
        return rng.integers(0, 2 if dtype.bits <= 2 else 5, dims).astype(dtype.numpy)
    if dtype.is_complex:
        return (rng.uniform(-1, 1, dims) + 1j * rng.uniform(-1, 1, dims)).astype(dtype.numpy)
    return np.asarray(rng.uniform(-1, 1, dims)).astype(dtype.numpy)


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
