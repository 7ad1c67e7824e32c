"""The contestants of a workload by column: each compiles the same module and runs it on the same inputs."""

from __future__ import annotations

import importlib.util
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...backends.base import CompileOptions
from ...backends.xla import REMEDY, XlaExecutable, installed
from ...formats.text.printer import print_module
from ...hlo.attributes import Alias
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...migration.compile import compile_module
from ...migration.flags import STACK_NAMES, Flags
from ...planning.plan import AllocationKind
from ..growth import growth
from .workload import Case

COLUMNS = ("xla", "recycled", *STACK_NAMES, "numpy", "torch", "iree")
"""All contestants, in the order of the tables. recycled: XLA that writes its results over those of the run before."""

DEFAULT = ("xla", "recycled", *STACK_NAMES)

COMPILING = ("xla", *STACK_NAMES, "iree")
"""Those whose compile time is measured; numpy and torch do not compile, `recycled` compiles as xla does."""

OURS = STACK_NAMES
"""Our own stacks."""


@dataclass
class Rival:
    """run: one execution; what it returns stays valid until the next. first: one with fresh results.

    temporary_bytes: the arena of a run, besides inputs and results. compile_bytes: growth of resident memory in the
    first compilation, at its peak. None where they are not known. stages: seconds of the last one; threads add up.
    """

    run: Callable[[], Any]
    first: Callable[[], Sequence[Any]]
    compile_seconds: tuple[float, ...] = ()
    temporary_bytes: int | None = None
    compile_bytes: int | None = None
    stages: Mapping[str, float] = field(default_factory=dict)


def missing(column: str, case: Case | None = None) -> str | None:
    """Why a column cannot be measured here, or on this case; None if it can."""
    if column in ("xla", "recycled"):
        return None if installed() else f"jaxlib is not installed: {REMEDY}"
    if column == "torch" and importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    if column == "iree":
        for name in ("iree.compiler", "iree.runtime"):
            if importlib.util.find_spec("iree") is None or importlib.util.find_spec(name) is None:
                return f"{name} is not installed"
        return None if installed() else f"jaxlib, which turns HLO into StableHLO, is not installed: {REMEDY}"
    if column in ("numpy", "torch") and case is not None and getattr(case, column) is None:
        return f"the workload has no form for {column}"
    return None


@dataclass(frozen=True)
class Compiled:
    """What compiling cost: the seconds of each time, and the growth of resident memory in the first one, in bytes."""

    made: Any
    seconds: tuple[float, ...]
    growth: int | None


def compiled(make: Callable[[], Any], times: int, seconds: float) -> Compiled:
    """What `make` makes in up to `times` calls; no more once `seconds` have passed."""
    spent: list[float] = []

    def once() -> Any:
        start = time.perf_counter()
        made = make()
        spent.append(time.perf_counter() - start)
        return made

    grown, made = growth(once)
    while len(spent) < times and sum(spent) < seconds:
        made = once()
    return Compiled(made, tuple(spent), grown)


def prepare(column: str, case: Case, module: Module, inputs: Sequence[np.ndarray], compiles: int = 3) -> Rival:
    """A contestant, compiled with caches off. Raises TestbedError if it does not support the module."""
    if column in STACK_NAMES:
        return _ours(column, module, inputs, compiles)
    if column in ("xla", "recycled"):
        return _xla(module, inputs, column == "recycled", compiles)
    if column == "iree":
        return _iree(module, inputs, compiles)
    return _numpy(case) if column == "numpy" else _torch(case)


def _ours(stack: str, module: Module, inputs: Sequence[np.ndarray], compiles: int) -> Rival:
    flags, options = Flags.parse(stack), CompileOptions(cache=None)
    cost = compiled(lambda: compile_module(module, flags, options), compiles, 0.5)
    executable = cost.made
    outputs: list[np.ndarray | None] = []

    def first() -> Sequence[Any]:
        results = executable.execute(inputs)
        bounds = [leaf.shape.dims for leaf in executable.outputs]
        outputs[:] = [r if r.shape == b else None for r, b in zip(results, bounds, strict=True)]
        return results

    allocations = executable.plan.assignment.allocations
    temporary = sum(a.size for a in allocations if a.kind is AllocationKind.TEMPORARY)
    run = lambda: executable.execute(inputs, outputs=outputs)  # noqa: E731
    return Rival(run, first, cost.seconds, temporary, cost.growth, dict(executable.timings))


def _xla(module: Module, inputs: Sequence[np.ndarray], recycled: bool, compiles: int) -> Rival:
    text = print_module(with_donated_results(module) if recycled else module)
    cost = compiled(lambda: XlaExecutable(text), 1 if recycled else compiles, 0.5)
    executable, temporary = cost.made, cost.made.temporary_bytes
    results = [leaf for _, leaf in module.result_shape.leaves()]
    donated = [np.zeros(leaf.dims, leaf.dtype.numpy) for leaf in results] if recycled else []
    arrays = executable.put(list(inputs) + donated)
    given, state = arrays[: len(inputs)], arrays[len(inputs) :]
    if not recycled:
        once = lambda: executable.run(given)  # noqa: E731
        return Rival(once, once, cost.seconds, temporary, cost.growth)

    def run() -> Sequence[Any]:
        state[:] = executable.run([*given, *state])
        return state

    return Rival(run, run, (), temporary)


def with_donated_results(module: Module) -> Module:
    """The module with one more parameter per result leaf, which is not read and whose memory the result takes over."""
    entry, root = module.entry, module.result_shape
    leaves = list(root.leaves())
    if any(not leaf.is_array for _, leaf in leaves):
        raise UnsupportedError("recycled", "a result that is no array")
    count = len(entry.parameters)
    more = tuple(
        Instruction(
            Op.PARAMETER,
            f"donated.{n}",
            leaf,
            attributes=MappingProxyType({"parameter_number": count + n}),
        )
        for n, (_, leaf) in enumerate(leaves)
    )
    aliases = tuple(Alias(index, count + n, ()) for n, (index, _) in enumerate(leaves))
    changed = replace(entry, instructions=(*more, *entry.instructions))
    attributes = {k: v for k, v in module.attributes.items() if k != "entry_computation_layout"}
    attributes["input_output_alias"] = aliases
    computations = tuple(changed if c is entry else c for c in module.computations)
    return Module(module.name, computations, changed, MappingProxyType(attributes))


def _leaves(value: Any) -> list[Any]:
    """Array leaves of what a function returned, in JAX's order."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _numpy(case: Case) -> Rival:
    function = case.numpy
    assert function is not None
    return Rival(lambda: function(*case.inputs), lambda: _leaves(function(*case.inputs)))


def _torch(case: Case) -> Rival:
    import torch

    function = case.torch
    assert function is not None

    def to_torch(x: np.ndarray) -> Any:
        if x.dtype.name == "bfloat16":
            return torch.from_numpy(x.view(np.int16).copy()).view(torch.bfloat16)
        return torch.from_numpy(np.ascontiguousarray(x).copy())

    def to_numpy(t: Any) -> np.ndarray:
        return t.float().numpy() if t.dtype == torch.bfloat16 else t.numpy()

    inputs = [to_torch(np.asarray(x)) for x in case.inputs]

    def run() -> Any:
        with torch.inference_mode():
            return function(torch, *inputs)

    return Rival(run, lambda: [to_numpy(t) for t in _leaves(run())])


def _iree(module: Module, inputs: Sequence[np.ndarray], compiles: int) -> Rival:
    """IREE's CPU back end for this machine, on its local-sync driver, which uses the calling thread.

    Its compiler is called as a program: its Python bindings and jaxlib's cannot live in one process.
    """
    import iree.runtime as runtime
    from jaxlib import _hlo, xla_client

    proto = _hlo.hlo_module_from_text(print_module(module)).as_serialized_hlo_module_proto()
    stablehlo = xla_client._xla.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    cost = compiled(lambda: _iree_compile(str(stablehlo)), compiles, 0.5)
    configuration = runtime.Config("local-sync")
    loaded = runtime.load_vm_flatbuffer(cost.made, driver="local-sync")
    given = [runtime.asdevicearray(configuration.device, np.asarray(x)) for x in inputs]
    run = lambda: loaded.main(*given)  # noqa: E731
    return Rival(run, lambda: [np.asarray(x) for x in _leaves(run())], cost.seconds)


def _iree_compile(stablehlo: str) -> bytes:
    """Raises UnsupportedError with the compiler's first error."""
    found = importlib.util.find_spec("iree.compiler")
    assert found is not None and found.origin is not None
    options = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-input-type=stablehlo"]
    done = subprocess.run(
        [str(Path(found.origin).parent / "_mlir_libs" / "iree-compile"), "-", "-o", "-", *options],
        input=stablehlo.encode(),
        capture_output=True,
    )
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
        raise UnsupportedError("iree", next((line for line in lines if "error:" in line), lines[-1])[:200])
    return done.stdout
