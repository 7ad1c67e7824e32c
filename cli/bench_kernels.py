"""`testbed bench --kernels DIR`: the ratio of each distinct kernel of the programs in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .json_output import print_document
from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..benchmarks.kernel_ratios import KernelRatio, LoneKernel
    from ..differential.harvest import Harvest, Kernel


def bench_kernels(
    places: Sequence[str], stacks: Sequence[str], least: float, rounds: int, seconds: float, as_json: bool
) -> int:
    """Time the kernels and print them, the slowest ratio first. 1 if a program or a kernel was left out."""
    from ..benchmarks.kernel_ratios import kernel_ratios
    from ..hlo.errors import InputError

    kernels, failed = _kernels(places)
    if not kernels:
        raise InputError(f"no kernel in {', '.join(places)}", remedy="give a folder of modules or of suites")
    found = list(kernel_ratios(map(_alone, kernels.values()), stacks, least, rounds, seconds))
    status = int(failed > 0 or any(k.refused for k in found))
    if as_json:
        return print_document("bench", status, {"stacks": list(stacks), "kernels": [_body(k) for k in found]})
    _print(found, stacks, least)
    return status


def _kernels(places: Sequence[str]) -> tuple[Harvest, int]:
    """(The distinct kernels, how many programs were left out)."""
    from ..differential.harvest import harvest
    from ..hlo.errors import TestbedError
    from .harvest import programs

    kernels: Harvest = {}
    failed = 0
    for place in places:
        for name, load in programs(Path(place)):
            try:
                harvest(load(), kernels)
            except TestbedError as error:
                failed += 1
                say(wrapped(f"left out: {name}: {error}"), err=True)
    return kernels, failed


def _alone(kernel: Kernel) -> LoneKernel:
    from ..benchmarks.kernel_ratios import LoneKernel
    from ..differential.filled_inputs import filled_inputs
    from ..formats.program import Program
    from ..formats.text.printer import print_module

    module, root = kernel.module, kernel.module.entry.root
    program = Program(module.name, print_module(module), module)
    name = f"{root.opcode.value} {root.name} {root.shape}"
    return LoneKernel(name, tuple(kernel.programs), program, filled_inputs(module, "random"))


def _body(kernel: KernelRatio) -> dict[str, object]:
    """A kernel of the document (docs/json.md)."""
    return {
        "name": kernel.name,
        "programs": list(kernel.programs),
        "median_seconds": kernel.seconds,
        "ratios": [[r.median, r.low, r.high] for r in kernel.ratios],
        "refused": kernel.refused or None,
    }


def _print(found: Sequence[KernelRatio], stacks: Sequence[str], least: float) -> None:
    from ..benchmarks.kernel_ratios import CLOSE, FAR, parity
    from ..benchmarks.tables import left, right

    timed = sorted((k for k in found if k.ratios), key=lambda k: -k.ratios[0].median)
    rows = [
        [
            f"{1e6 * k.seconds:.1f}",
            *(f"{r.median:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in k.ratios),
            k.name,
            k.programs[0],
        ]
        for k in timed
    ]
    heads = [right("µs"), *(left(f"{s} [95%]") for s in stacks[1:]), left("kernel"), left("first in")]
    if timed:
        say(table(heads, rows))
    for number, stack in enumerate(stacks[1:]):
        if timed:
            p = parity([k.ratios[number] for k in timed])
            say(
                wrapped(
                    f"{stack} to {stacks[0]}: {p.kernels} kernels, geometric mean {p.mean:.3f}, {p.close:.1%} at most"
                    f" {CLOSE:g}, {p.far} above {FAR:g}"
                )
            )
    short = sum(not k.ratios and not k.refused for k in found)
    say(wrapped(f"{short} kernels take less than {1e6 * least:g} µs on {stacks[0]} and are not compared"))
    for kernel in found:
        if kernel.refused:
            say(wrapped(f"left out: {kernel.name}: {kernel.refused}"), err=True)
