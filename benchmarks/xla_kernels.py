"""Measures kernels of XLA's old and new emitters beside ours: distance from the evaluator, time, the IR's size and
metadata. A kernel is a program of its own; its time is that of its code in a native loop.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..backends.base import CompileOptions
from ..evaluator.evaluator import evaluate
from ..formats.program import Program
from ..hlo.errors import TestbedError
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..migration.compile import compile_program
from ..migration.flags import Flags
from ..migration.xla_programs import XlaProgram
from ..xla_kernels.kernels import XlaKernel
from .contestants import aligned
from .kernel_loop import Repeat, kernel_loop
from .paired import race
from .xla_inputs import drawn_inputs, ulp_distance

OURS = ("legacy", "mlir")

METADATA = {
    "alias scopes": re.compile(r"!alias\.scope !"),
    "noalias": re.compile(r"!noalias !"),
    "invariant loads": re.compile(r"!invariant\.load !"),
    "ranges": re.compile(r"!range !|\brange\(i"),
    "loop hints": re.compile(r"!llvm\.loop !"),
    "vector ops": re.compile(r"= [a-z]+ [^=\n]*<\d+ x "),
}
"""What XLA's emitters tell LLVM → how it stands in the IR."""


@dataclass(frozen=True)
class KernelRow:
    """One kernel of XLA's. seconds, ulps: by stack; ulps is the largest distance from the evaluator, 0 for equal bits.

    refused: by stack, why it did not run. key: of what it computes. lines: of IR before LLVM's passes.
    """

    program: str
    generation: str
    symbol: str
    emitter: str
    opcode: str
    key: Hashable = field(repr=False)
    seconds: Mapping[str, float]
    ulps: Mapping[str, float]
    refused: Mapping[str, str]
    lines: int
    metadata: Mapping[str, int]


@dataclass
class ProgramRow:
    """One whole program. seconds: a run, by stack; jaxlib-old and jaxlib-new are XLA's own runtime. compile_seconds:
    XLA's, by generation. ulps: the largest distance from jaxlib's new emitters. kernels: (all, matched) by generation.
    """

    program: str
    seconds: dict[str, float] = field(default_factory=dict)
    compile_seconds: dict[str, float] = field(default_factory=dict)
    ulps: dict[str, float] = field(default_factory=dict)
    kernels: dict[str, tuple[int, int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def key_of(i: Instruction) -> Hashable:
    """Equal for kernels that compute the same on arrays of equal shapes."""
    inner = unwrapped(i)
    return instruction_key(inner, tuple(o.shape for o in inner.operands))


def unwrapped(i: Instruction) -> Instruction:
    """The op in a fusion of one op: newer versions of XLA wrap one (wrapped_reduce), older ones leave it as it is."""
    if i.opcode is not Op.FUSION:
        return i
    body = i.called()[0]
    alone = len(body.instructions) == len(body.parameters) + 1 and body.root.operands == body.parameters
    return body.root if alone else i


def opcode_of(i: Instruction) -> str:
    """An op; or for a fusion the op that costs most to get right: its reduction, scatter, …, else its root."""
    if i.opcode is not Op.FUSION:
        return i.opcode.value
    body = i.called()[0]
    marked = (Op.REDUCE, Op.REDUCE_WINDOW, Op.SCATTER, Op.DYNAMIC_UPDATE_SLICE, Op.GATHER, Op.CONCATENATE, Op.DOT)
    return next((op.value for op in marked if op in body.opcodes), "elementwise")


def ir_facts(kernel: XlaKernel) -> tuple[int, dict[str, int]]:
    """(lines, metadata by name) of a kernel's IR, with the functions of its module that belong to it."""
    text = kernel.ir_text
    if kernel.ir is not None and kernel.emitter not in ("", "ir_emitter2"):
        text = kernel.ir.read_text(encoding="utf-8")  # a module of its own
    code = [line for line in text.splitlines() if line.startswith("  ") and not line.lstrip().startswith(";")]
    return len(code), {name: len(pattern.findall(text)) for name, pattern in METADATA.items()}


def measure_kernel(
    xla: XlaProgram, i: Instruction, program: str, stacks: Sequence[str], rounds: int, seconds: float, seed: int
) -> KernelRow:
    """Run and time one kernel of a program of XLA's on stacks. Raises what the evaluator raises."""
    match = xla.matches.found[i]
    alone = xla.alone(i)
    inputs = [aligned(x) for x in drawn_inputs(alone.module, seed)]
    expected = evaluate(alone.module, inputs)
    runs: dict[str, tuple[Repeat, int]] = {}
    ulps: dict[str, float] = {}
    refused: dict[str, str] = {}
    for stack in stacks:
        try:
            executable = compile_program(alone, Flags.parse(stack), CompileOptions())
            results = executable.execute(inputs)
        except TestbedError as error:
            refused[stack] = str(error.message)
            continue
        ulps[stack] = farthest(results, expected)
        repeat = kernel_loop(executable, inputs)
        if repeat is not None:
            runs[stack] = repeat, count_of(repeat, seconds)
    times = race({name: bursts(*run) for name, run in runs.items()}, rounds=rounds, seconds=seconds) if runs else {}
    lines, metadata = ir_facts(match.kernel)
    return KernelRow(
        program,
        xla.generation,
        match.kernel.symbol,
        match.kernel.emitter,
        opcode_of(i),
        key_of(i),
        {name: timing.minimum / runs[name][1] for name, timing in times.items()},
        ulps,
        refused,
        lines,
        metadata,
    )


def bursts(repeat: Repeat, count: int) -> Callable[[], object]:
    """A run of a loop as a contestant."""
    return lambda: repeat(count)


def count_of(repeat: Repeat, seconds: float) -> int:
    """Runs that take about a tenth of `seconds`."""
    count, spent = 1, 0.0
    while spent < seconds / 20 and count < 1 << 20:
        count *= 2
        start = time.perf_counter()
        repeat(count)
        spent = time.perf_counter() - start
    return count


def native(
    program: Program, stack: str, inputs: Sequence[np.ndarray], options: CompileOptions | None = None
) -> tuple[Callable[[], object], list[np.ndarray]]:
    """A call of a program on a stack that writes its results again, and the results of a first one."""
    executable = compile_program(program, Flags.parse(stack), options or CompileOptions())
    results = executable.execute(inputs)
    outputs = executable.execute(inputs)
    return lambda: executable.execute(inputs, outputs=outputs), results


def farthest(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest distance of any result."""
    return max((distance(np.asarray(r), e) for r, e in zip(results, expected, strict=True)), default=0.0)


def distance(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance in representable values; inf where only one is finite; 0 for equal bits or both NaN."""
    if actual.dtype.kind == "c":
        return max(distance(actual.real, expected.real), distance(actual.imag, expected.imag))
    if actual.tobytes() == expected.tobytes() or not actual.size:
        return 0.0
    if actual.dtype.kind in "biu":
        return float(np.max(np.abs(actual.astype(np.float64) - expected.astype(np.float64))))
    both = np.isnan(actual) & np.isnan(expected)
    one = np.isfinite(actual) != np.isfinite(expected)
    with np.errstate(all="ignore"):
        far = np.where(both | (actual == expected), 0.0, ulp_distance(actual, expected))
    return float(np.max(np.where(one & ~both, np.inf, far)))
