"""Processor time of compiling the suite's programs on both stacks against XLA, and the stages of ours.

Run: .venv/bin/python -m testbed.benchmarks.compile_cost [--only REGEX] [--part K/N] [--cpu x86-64-v3] [--times 3]
     [--json FILE] [--against FILE]
Each program is compiled `--times` times by each contestant, in turns, in this process, without a cache of objects; the
minimum counts. Functions that programs share are compiled once a process, so they count for the first program only.
XLA starts from HLO text, our stacks from the parsed module. Programs are not run.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..backends.base import CompileOptions
from ..backends.xla import XlaExecutable, installed
from ..codegen.options import assume_host
from ..formats.text.parser import parse_module
from ..formats.text.printer import print_module
from ..hlo.errors import TestbedError
from ..hlo.ir import Module
from ..migration.compile import compile_module
from ..migration.flags import STACK_NAMES, Flags
from .suite.child import load
from .suite.workloads import WORKLOADS
from .tables import left, right, text_table

BASE = "xla"

Stages = Mapping[str, float]


@dataclass
class Cost:
    """Milliseconds of one program by contestant, and of the stages of our stacks' fastest compilations."""

    name: str
    spent: dict[str, float] = field(default_factory=dict)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)

    def ratio(self, stack: str) -> float | None:
        """A stack's time as a multiple of XLA's."""
        mine, base = self.spent.get(stack), self.spent.get(BASE)
        return mine / base if mine and base else None


def contestants(module: Module) -> dict[str, Callable[[], Stages]]:
    """What each compiles, and the seconds of the stages of that."""

    def ours(stack: str) -> Callable[[], Stages]:
        flags, options = Flags.parse(stack), CompileOptions(cache=None, threads=1)
        return lambda: dict(compile_module(module, flags, options).timings)

    found: dict[str, Callable[[], Stages]] = {stack: ours(stack) for stack in STACK_NAMES}
    if installed():
        text = print_module(module)

        def xla() -> Stages:
            XlaExecutable(text)
            return {}

        found[BASE] = xla
    return found


def measure(name: str, times: int) -> Cost:
    """The cost of one program; a contestant that does not support it has none."""
    cost = Cost(name)
    makers = contestants(parse_module(load(name)[1], name))
    for _ in range(times):
        for who, make in list(makers.items()):
            start = time.process_time()
            try:
                stages = make()
            except TestbedError:
                del makers[who]
                continue
            spent = (time.process_time() - start) * 1e3
            if spent < cost.spent.get(who, math.inf):
                cost.spent[who] = spent
                cost.stages[who] = {stage: seconds * 1e3 for stage, seconds in stages.items()}
    return cost


def report(costs: Sequence[Cost], against: Mapping[str, Cost]) -> str:
    """All programs, those with the largest ratios first, and the means."""
    stacks = list(STACK_NAMES)
    rows = sorted(costs, key=lambda c: -max((c.ratio(s) or 0.0 for s in stacks), default=0.0))
    columns = [left("program"), right("xla ms")]
    for stack in stacks:
        columns += [right(f"{stack} ms"), right("/ xla")] + ([right("before")] if against else [])
    lines = []
    for cost in rows:
        cells = [cost.name, _number(cost.spent.get(BASE))]
        for stack in stacks:
            cells += [_number(cost.spent.get(stack)), _number(cost.ratio(stack))]
            cells += [_number(against[cost.name].ratio(stack) if cost.name in against else None)] if against else []
        lines.append(cells)
    parts = [text_table(columns, lines)]
    for stack in stacks:
        ratios = [r for c in costs if (r := c.ratio(stack)) is not None]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            above = ", ".join(f"{sum(r > limit for r in ratios)} above {limit}" for limit in (1, 2))
            parts.append(f"{stack}: geometric mean {mean:.3f} of {len(ratios)}, {above}, most {max(ratios):.2f}")
        both = [(c.spent[stack], against[c.name].spent[stack]) for c in costs if _known(c, against, stack)]
        if both:
            change = math.exp(sum(math.log(now / then) for now, then in both) / len(both))
            parts.append(f"{stack}: {change:.3f} of the time before (geometric mean of {len(both)})")
    return "\n".join([*parts, _stages(costs)])


def _known(cost: Cost, against: Mapping[str, Cost], stack: str) -> bool:
    return stack in cost.spent and cost.name in against and stack in against[cost.name].spent


def _stages(costs: Sequence[Cost]) -> str:
    """The sums of the stages, and their mean shares of a program's compilation."""
    lines = []
    for stack in STACK_NAMES:
        found = [c.stages[stack] for c in costs if c.stages.get(stack)]
        for stage in dict.fromkeys(name for stages in found for name in stages):
            total = sum(stages.get(stage, 0.0) for stages in found)
            share = sum(stages.get(stage, 0.0) / sum(stages.values()) for stages in found) / len(found)
            lines.append([stack, stage, _number(total), f"{share:.1%}"])
    return text_table([left("stack"), left("stage"), right("ms"), right("mean share")], lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="programs whose name or group matches")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every N-th program, from the K-th on")
    parser.add_argument("--cpu", help="compile as for this processor")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with what --json wrote")
    options = parser.parse_args()
    if options.cpu:
        assume_host(options.cpu)
    chosen = [w.name for w in WORKLOADS.values() if re.search(options.only, w.name) or re.search(options.only, w.group)]
    first, step = map(int, options.part.split("/"))
    measure(next(iter(WORKLOADS)), 1)  # imports and the start of the libraries count for no program
    costs = [measure(name, options.times) for name in chosen[first - 1 :: step]]
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(c) for c in costs], indent=1) + "\n")
    loaded: list[dict[str, Any]] = json.loads(options.against.read_text()) if options.against else []
    print(report(costs, {values["name"]: Cost(**values) for values in loaded}))


if __name__ == "__main__":
    main()
