"""Compares plans with XLA:CPU's on the conformance programs: kernels, temporary memory, packing, optimiser time.

Run: .venv/bin/python -m testbed.benchmarks.plans [--corpus DIR] [--no-xla] [--passes] [--memory] [--json FILE]
(XLA's memory needs ./testbed setup --xla). XLA's kernels are counted in the corpus's xla_optimized.hlo: fusions,
unfused ops, copies and library calls. Ours are the kernel and copy steps of the plan, library calls included. Both
are counted once per occurrence in the text, also in loops. Times are CPU seconds of the optimiser's thread, so that
other processes do not affect them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import tracemalloc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ..formats.text.parser import parse_module
from ..hlo.ir import Module
from ..hlo.opclasses import CONTROL, FORWARDING, control_computations
from ..hlo.opcodes import Op
from ..passes.pipeline import PassRecord, count_instructions
from ..planning.buffer_report import report_buffers
from ..planning.plan import AllocationKind, ConditionalStep, CopyStep, Plan, WhileStep
from ..planning.planner import PlanOptions, plan
from .tables import left, right, text_table

FREE = FORWARDING | CONTROL | {Op.PARAMETER, Op.CONSTANT, Op.BITCAST, Op.PARTITION_ID, Op.REPLICA_ID}
"""Ops of XLA's optimised modules that run no code by themselves."""

NEAR = 1.05
"""An arena of at most NEAR times the lower bound counts as well packed."""

MOST_RATIO = 1.5
"""A program whose kernels and copies exceed MOST_RATIO times XLA's needs an entry in REASONS."""

REASONS: Mapping[str, str] = {}
"""Program → why it may run more kernels than MOST_RATIO times XLA's."""

REST = "schedule, buffers, kernels"
"""The name of the time after the passes."""

SIZES = (2_500, 5_000, 10_000, 20_000, 40_000)
"""Numbers of instructions of the generated programs."""


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """One program. seconds: of passes, schedule and buffers. Memory is in bytes; xla_temporary: None if not measured.

    passes: seconds by pass name, summed over all runs of the pass.
    """

    name: str
    instructions: int
    seconds: float
    kernels: int
    copies: int
    xla_kernels: int
    arena: int
    bound: int
    xla_temporary: int | None
    passes: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return (self.kernels + self.copies) / max(self.xla_kernels, 1)

    @property
    def memory(self) -> float | None:
        """The ratio of the arena to XLA's; None if not measured. Sizes below 64 bytes count as 64, so 0 / 0 is 1."""
        return None if self.xla_temporary is None else max(self.arena, 64) / max(self.xla_temporary, 64)


def count_steps(made: Plan) -> tuple[int, int]:
    """(computing steps, copy steps) of a plan. Computing steps call a kernel or a library."""
    steps = [s for s in made.walk() if not isinstance(s, WhileStep | ConditionalStep)]
    copies = sum(isinstance(s, CopyStep) for s in steps)
    return len(steps) - copies, copies


def count_xla_kernels(module: Module) -> int:
    """The number of kernels that XLA dispatches for a module that it optimised."""
    return sum(i.opcode not in FREE for c in control_computations(module) for i in c.instructions)


def timed_plan(module: Module) -> tuple[Plan, float, dict[str, float]]:
    """A plan, the CPU seconds of the fastest of five runs, and the part of them that each pass took."""
    best = math.inf
    for _ in range(5):
        start = time.thread_time()
        made = plan(module)
        best = min(best, time.thread_time() - start)
    return made, best, _shares(module, best)


def _shares(module: Module, seconds: float) -> dict[str, float]:
    """Divide `seconds` among the passes as the wall time of another run: reading CPU time is too expensive."""
    records: list[PassRecord] = []
    start = time.perf_counter()
    plan(module, PlanOptions(), records.append)
    everything = time.perf_counter() - start
    found = dict.fromkeys((r.name for r in records), 0.0)
    for r in records:
        found[r.name] += r.seconds * seconds / everything
    return {**found, REST: seconds - sum(found.values())}


def peak_memory(module: Module) -> int:
    """Peak bytes of Python objects that the optimiser allocates, without the module."""
    tracemalloc.start()
    plan(module)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def xla_temporary_bytes(text: str) -> int:
    """temp_size_in_bytes of XLA:CPU's memory analysis."""
    from ..backends.xla import XlaExecutable

    return XlaExecutable(text).temporary_bytes


def measure(folder: Path, with_xla: bool) -> PlanFigures:
    """Measure one program of the corpus."""
    text = (folder / "module.hlo").read_text()
    module = parse_module(text, str(folder / "module.hlo"))
    made, seconds, passes = timed_plan(module)
    report = report_buffers(made)
    kernels, copies = count_steps(made)
    optimized = parse_module((folder / "xla_optimized.hlo").read_text(), str(folder / "xla_optimized.hlo"))
    arena = sum(a.size for a in made.assignment.allocations if a.kind is AllocationKind.TEMPORARY)
    theirs = xla_temporary_bytes(text) if with_xla else None
    instructions = count_instructions(module)
    xla_kernels = count_xla_kernels(optimized)
    return PlanFigures(
        folder.name, instructions, seconds, kernels, copies, xla_kernels, arena, report.bound, theirs, passes
    )


def timed_again(row: PlanFigures, folder: Path) -> PlanFigures:
    """Time a program again and keep the faster time: a shared machine may be slow for several seconds."""
    _, seconds, passes = timed_plan(parse_module((folder / "module.hlo").read_text()))
    return replace(row, seconds=seconds, passes=passes) if seconds < row.seconds else row


def geomean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def chain_text(instructions: int) -> str:
    """A generated program on f32[8,8]: elementwise ops, every 16th op a dot. Op n reads ops n - 1 and n - 3."""
    lines = [
        "  v0 = f32[8,8]{1,0} parameter(0)",
        "  v1 = f32[8,8]{1,0} parameter(1)",
        "  v2 = f32[8,8]{1,0} add(v0, v1)",
    ]
    for n in range(3, instructions):
        if n % 16 == 0:
            op = f"dot(v{n - 1}, v{n - 3}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        else:
            op = f"{('add', 'multiply', 'maximum', 'subtract')[n % 4]}(v{n - 1}, v{n - 3})"
        lines.append(f"  {'ROOT ' if n == instructions - 1 else ''}v{n} = f32[8,8]{{1,0}} {op}")
    return "HloModule made_up\n\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def scaling(sizes: Sequence[int] = SIZES) -> list[tuple[int, float]]:
    """(instructions, CPU seconds of the optimiser) of the generated programs."""
    return [(n, timed_plan(parse_module(chain_text(n)))[1]) for n in sizes]


def growth(times: Sequence[tuple[int, float]]) -> float:
    """The exponent e of time ~ size**e between the smallest and the largest program; 1 is linear."""
    (n, t), (m, u) = times[0], times[-1]
    return math.log(u / t) / math.log(m / n)


def table(rows: Sequence[PlanFigures]) -> str:
    """One line per program, then the summary."""
    names = ("kernels", "copies", "XLA", "ratio", "arena", "bound", "XLA", "ratio", "ms/instr")
    lines = [text_table([left("program"), *map(right, names)], map(_cells, rows)), ""]
    near = sum(r.arena <= NEAR * r.bound for r in rows)
    worst = max(rows, key=lambda r: r.ratio)
    over = sorted((r for r in rows if r.ratio > MOST_RATIO), key=lambda r: -r.ratio)
    memories = [r.memory for r in rows if r.memory is not None]
    slowest = max(r.seconds * 1e3 / r.instructions for r in rows)
    lines += [
        f"(a) kernels and copies against XLA: geomean {geomean(r.ratio for r in rows):.3f}, worst {worst.ratio:.2f}",
        f"    above {MOST_RATIO}: {'; '.join(map(_excused, over)) or 'none'}",
        f"    kernels alone: geomean {geomean(max(r.kernels, 1) / max(r.xla_kernels, 1) for r in rows):.3f}",
        f"(b) temporary memory against XLA: geomean {geomean(memories):.3f} of {len(memories)} programs",
        f"(c) arena within {NEAR - 1:.0%} of the most bytes alive at once: {near} of {len(rows)}",
        f"(d) optimiser: at most {slowest:.3f} ms an instruction",
    ]
    return "\n".join(lines)


def _cells(r: PlanFigures) -> tuple[str, ...]:
    theirs, memory = ("-", "-") if r.memory is None else (str(r.xla_temporary), f"{r.memory:.2f}")
    counts = (str(r.kernels), str(r.copies), str(r.xla_kernels), f"{r.ratio:.2f}")
    return (r.name, *counts, str(r.arena), str(r.bound), theirs, memory, f"{r.seconds * 1e3 / r.instructions:.3f}")


def _excused(r: PlanFigures) -> str:
    reason = f" ({REASONS[r.name]})" if r.name in REASONS else ""
    return f"{r.name} {r.ratio:.2f}{reason}"


def pass_table(rows: Sequence[PlanFigures]) -> str:
    """One line per pass: its share of the total time, and the program with the highest time per instruction."""
    names = dict.fromkeys(name for r in rows for name in r.passes)
    everything = sum(r.seconds for r in rows)
    cells = []
    for name in names:
        total = sum(r.passes.get(name, 0.0) for r in rows)
        worst = max(rows, key=lambda r: r.passes.get(name, 0.0) / r.instructions)
        each = worst.passes[name] * 1e3 / worst.instructions
        cells.append((name, f"{total * 1e3:.1f}", f"{total / everything:.1%}", f"{each:.3f}", worst.name))
    return text_table([left("pass"), right("ms"), right("share"), right("worst ms/instr"), left("of")], cells)


def as_json(rows: Sequence[PlanFigures], times: Sequence[tuple[int, float]]) -> str:
    """The rows with their ratios, the summary, and the generated programs, as JSON."""
    memories = [r.memory for r in rows if r.memory is not None]
    figures = {
        "kernels_and_copies_geomean": geomean(r.ratio for r in rows),
        "temporary_memory_geomean": geomean(memories) if memories else None,
        "packed_within_5_percent": sum(r.arena <= NEAR * r.bound for r in rows),
        "programs": len(rows),
        "most_ms_an_instruction": max(r.seconds * 1e3 / r.instructions for r in rows),
        "growth": growth(times),
    }
    programs = [asdict(r) | {"ratio": r.ratio, "memory": r.memory, "reason": REASONS.get(r.name)} for r in rows]
    made_up = [{"instructions": n, "seconds": s} for n, s in times]
    return json.dumps({"figures": figures, "programs": programs, "made_up": made_up}, indent=1) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    repository = Path(__file__).resolve().parents[1]
    parser.add_argument("--corpus", default=str(repository.parent / "shared/corpus"))
    parser.add_argument("--no-xla", action="store_true", help="leave out XLA's memory")
    parser.add_argument("--passes", action="store_true", help="also print the time of each pass")
    parser.add_argument(
        "--memory", action="store_true", help="also measure the optimiser's memory on the largest program"
    )
    parser.add_argument("--json", metavar="FILE", help="also write all figures to FILE")
    options = parser.parse_args()
    folders = sorted(p.parent for p in Path(options.corpus, "jax_programs").glob("*/xla_optimized.hlo"))
    if not folders:
        parser.error(f"no programs in {options.corpus}/jax_programs")
    rows = [measure(folder, not options.no_xla) for folder in folders]
    times = scaling()
    rows = [timed_again(row, folder) for row, folder in zip(rows, folders, strict=True)]
    print(table(rows))
    each = ", ".join(f"{n}: {s:.2f} s ({s * 1e3 / n:.3f} ms each)" for n, s in times)
    print(f"    made-up programs: {each}; time grows with the size to the power {growth(times):.2f}")
    if options.memory:
        peak = peak_memory(parse_module(chain_text(SIZES[-1])))
        print(f"    memory at {SIZES[-1]} instructions: {peak / 2**20:.0f} MiB, {peak / SIZES[-1]:.0f} bytes each")
    if options.passes:
        print(pass_table(rows))
    if options.json:
        Path(options.json).write_text(as_json(rows, times))


if __name__ == "__main__":
    main()
