"""The limits of the machine: memory bandwidth by array size, peak of fused multiply-adds, cost of a call.

Run as a program, it measures them in its process (on the processors given as arguments) and prints them as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ...hlo.analysis.cost_analysis import CostAnalysis
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Module
from ...hlo.opcodes import Op

SIZES = tuple(1 << power for power in range(17, 29))
"""Bytes of the three arrays of a triad together."""

ACCUMULATORS, STEPS = 10, 100_000
"""Independent chains of multiply-adds, and their length: more than latency times ports, and at most 16 registers."""

TRIES = 20
"""Short tries, of which the fastest counts: another process may take the core for a while."""

UNCOUNTED = frozenset({Op.WHILE, Op.REDUCE_WINDOW, Op.SELECT_AND_SCATTER, Op.SORT, Op.CONDITIONAL, Op.FFT})

LAUNCH = "HloModule launch\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} negate(p)\n}\n"


@dataclass(frozen=True)
class Limits:
    """bandwidth: (bytes touched, bytes a second) of the better of two triads (cached and streaming stores), per size.

    copy: bytes read and written a second by memcpy of 128 MiB. flops: operations a second by type, where a fused
    multiply-add is two. launch: seconds of a call of a kernel of 8 elements, by contestant.
    """

    threads: int
    bandwidth: tuple[tuple[int, float], ...] = ()
    copy: float = 0.0
    flops: Mapping[str, float] = field(default_factory=dict)
    launch: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Limits:
        pairs = tuple((int(size), float(speed)) for size, speed in values["bandwidth"])
        return Limits(**{**values, "bandwidth": pairs})

    def seconds(self, bytes_touched: float, flops: float, double: bool) -> float:
        """A lower bound in seconds: of the memory traffic at the bandwidth of such arrays, and of the operations."""
        near = min(self.bandwidth, key=lambda row: abs(np.log(row[0] / max(bytes_touched, 1.0))))
        return max(bytes_touched / near[1], flops / self.flops["f64" if double else "f32"])


@dataclass(frozen=True)
class Work:
    """bytes_touched: of inputs and results, each once. flops: arithmetic outside of loops, windows and sorts.

    double: whether there is arithmetic on f64.
    """

    bytes_touched: int
    flops: float
    double: bool


def work_of(module: Module) -> Work:
    leaves = [leaf for shape in (*module.parameter_shapes, module.result_shape) for _, leaf in shape.leaves()]
    double = any(leaf.dtype in (DType.F64, DType.C128) for leaf in leaves)
    return Work(sum(leaf.bytes for leaf in leaves), _flops(module.entry, CostAnalysis()), double)


def _flops(computation: Computation, costs: CostAnalysis) -> float:
    """A lower bound: the ops in UNCOUNTED count as 0, as windows may share sums and trip counts may be unknown."""
    total = 0.0
    for i in computation.instructions:
        if i.opcode is Op.CALL:
            total += sum(_flops(c, costs) for c in i.called())
        elif i.opcode not in UNCOUNTED:
            total += costs.of(i).flops
    return total


def measure(threads: int, launches: bool = True) -> Limits:
    """Measure in this process, with as many threads of kernels. About three seconds."""
    code, width = _kernels()
    with ThreadPoolExecutor(threads) as pool:

        def together(call: Callable[[int], object]) -> float:
            """Seconds of the fastest try in which all threads make the call, each with its number."""
            best = np.inf
            for _ in range(TRIES):
                start = time.perf_counter()
                list(pool.map(call, range(threads)))
                best = min(best, time.perf_counter() - start)
            return best

        flops = {t: _peak(code, t, width[t], threads, together) for t in ("f32", "f64")}
        bandwidth = tuple((size, _triad(code, size, threads, together)) for size in SIZES)
        half = [np.ones((1 << 24) // threads, np.float32) for _ in range(2 * threads)]
        copy = 2 * (1 << 26) / together(lambda n: np.copyto(half[2 * n], half[2 * n + 1]))
    return Limits(threads, bandwidth, copy, flops, _launches() if launches else {})


def _peak(code: Any, dtype: str, width: int, threads: int, together: Callable[..., float]) -> float:
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address(f"fma_{dtype}"))
    results = [np.zeros(64 * ACCUMULATORS) for _ in range(threads)]
    seconds = together(lambda n: kernel(results[n].ctypes.data, STEPS))
    return 2.0 * width * ACCUMULATORS * STEPS * threads / seconds


def _triad(code: Any, size: int, threads: int, together: Callable[..., float]) -> float:
    """a = b + s·c, repeated until about 64 MiB are touched."""
    count = size // (3 * 4 * threads) // 64 * 64
    repeats = max(1, (1 << 26) // size)
    blocks = [[np.ones(count + 64, np.float32) for _ in range(3)] for _ in range(threads)]
    places = [[b.ctypes.data + -b.ctypes.data % 64 for b in three] for three in blocks]
    best = np.inf
    for name in ("triad", "triad_streaming"):
        kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)(code.address(name))
        best = min(best, together(lambda n, kernel=kernel: kernel(*places[n], count, repeats)))
    return 12.0 * count * threads * repeats / best


def _launches() -> dict[str, float]:
    from ...formats.text.parser import parse_module
    from .rivals import DEFAULT, missing, prepare
    from .workload import Case

    module, inputs, found = parse_module(LAUNCH), (np.ones(8, np.float32),), {}
    for column in DEFAULT:
        if missing(column) is None:
            rival = prepare(column, Case(inputs, LAUNCH), module, inputs, 1)
            rival.first()
            times = []
            for _ in range(5):
                start = time.perf_counter()
                for _ in range(2000):
                    rival.run()
                times.append((time.perf_counter() - start) / 2000)
            found[column] = min(times)
    return found


def _kernels() -> tuple[Any, dict[str, int]]:
    """(loaded code, lanes of a vector by type)."""
    from ...codegen.load import load
    from ...codegen.optimize import compile_object
    from ...codegen.options import EmitOptions

    options = EmitOptions.host()
    width = {"f32": max(1, options.target.vector_bits // 32), "f64": max(1, options.target.vector_bits // 64)}
    names = {"f32": "float", "f64": "double"}
    parts = [_fma_ir(t, names[t], width[t]) for t in names]
    parts += [_triad_ir("triad", width["f32"], ""), _triad_ir("triad_streaming", width["f32"], ", !nontemporal !0")]
    ir = "\n".join([*parts, "!0 = !{i32 1}", ""])
    return load([compile_object(ir, options, cache=None)]), width


def _fma_ir(dtype: str, scalar: str, width: int) -> str:
    vector, chains = f"<{width} x {scalar}>", range(ACCUMULATORS)
    suffix = f"v{width}{dtype}"

    def splat(value: float) -> str:
        return "<" + ", ".join([f"{scalar} {value}"] * width) + ">"

    phis = "\n".join(f"  %x{k} = phi {vector} [ {splat(k + 1.0)}, %entry ], [ %y{k}, %loop ]" for k in chains)
    steps = "\n".join(
        f"  %y{k} = call {vector} @llvm.fmuladd.{suffix}({vector} %x{k}, {vector} {splat(0.5)}, {vector} {splat(0.25)})"
        for k in chains
    )
    stores = "\n".join(
        f"  %p{k} = getelementptr {vector}, ptr %out, i64 {k}\n  store {vector} %y{k}, ptr %p{k}, align 8"
        for k in chains
    )
    return f"""declare {vector} @llvm.fmuladd.{suffix}({vector}, {vector}, {vector})
define void @fma_{dtype}(ptr %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
{stores}
  ret void
}}"""


def _triad_ir(name: str, width: int, metadata: str) -> str:
    """a = b + 1.5·c over n floats, a multiple of 64, the whole of it `repeats` times."""
    vector, size = f"<{width} x float>", width * 4
    factor = "<" + ", ".join(["float 1.5"] * width) + ">"
    return f"""define void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %n, i64 %repeats) {{
entry:
  br label %again
again:
  %r = phi i64 [ 0, %entry ], [ %s, %next ]
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %j, %loop ]
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %x = load {vector}, ptr %pb, align {size}
  %y = load volatile {vector}, ptr %pc, align {size}
  %p = fmul {vector} %y, {factor}
  %z = fadd {vector} %x, %p
  store {vector} %z, ptr %pa, align {size}{metadata}
  %j = add i64 %i, {width}
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %next
next:
  %s = add i64 %r, 1
  %rest = icmp slt i64 %s, %repeats
  br i1 %rest, label %again, label %done
done:
  ret void
}}"""


def main(arguments: Sequence[str]) -> int:
    cpus = {int(a) for a in arguments}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)
    print(json.dumps(asdict(measure(len(cpus)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
