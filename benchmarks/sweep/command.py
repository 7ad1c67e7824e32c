"""Many small programs on both stacks and XLA:CPU: does any of them fall off a cliff? SUITES names the programs.

Run: .venv/bin/python -m testbed.benchmarks.sweep SUITE [--only REGEX] [--stacks legacy,mlir] [--threads N] [--limit 2]
[--cpu x86-64-v3]
Times are minima of rounds in which the stacks take turns, on as many processors as threads. A line is printed for each
program of which a stack takes more than --limit times XLA's time; exit status 1 if there is one. Products by
size and layout have a command of their own: `python -m testbed.benchmarks.dot_shapes`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...backends.xla.installed import installed
from ...formats.whole_files import write_text
from ...hlo.errors import InputError
from ...hlo.shapes import Shape
from ...migration.flags import STACK_NAMES
from ...migration.stacks import parse_stacks
from ..suite.machine import as_on, levels
from ..tables import left, right, text_table
from ..xla_inputs import SMALL, drawn_inputs
from .suites import SUITES, Programs, Suite


def measure(text: str, stacks: Sequence[str], rounds: int, seconds: float, integers: int = SMALL) -> dict[str, float]:
    """Microseconds of a run by stack, XLA's under `xla`. integers: limit of those in inputs.

    Raises TestbedError for what a stack does not take.
    """
    from ...formats.program import Program
    from ...formats.text.parser import parse_module
    from ..contestants import contestant
    from ..paired import race

    module = parse_module(text)
    program = Program("op", text, module)
    drawn = zip(drawn_inputs(module, integers=integers), module.entry.parameters, strict=True)
    inputs = [_laid_out(x, parameter.shape) for x, parameter in drawn]
    runs = {stack: contestant(stack, program, inputs).run for stack in (*stacks, "xla")}
    times = race(runs, rounds=rounds, seconds=seconds)
    return {stack: timing.minimum * 1e6 for stack, timing in times.items()}


def _laid_out(array: np.ndarray, shape: Shape) -> np.ndarray:
    """The array in the layout of its parameter: in another one, our stacks would copy it in each run, XLA once."""
    order = tuple(reversed(shape.minor_to_major))
    return array.transpose(order).copy("C").transpose(np.argsort(order))


def ratios(times: Mapping[str, float], least: float = 0.0) -> dict[str, float]:
    """Our stacks' multiples of XLA's time. least: microseconds below which no time counts: a call's own."""
    return {s: max(t, least) / max(times["xla"], least) for s, t in times.items() if s != "xla"}


def parse_arguments(argv: Sequence[str] | None, suites: Mapping[str, Suite]) -> argparse.Namespace:
    listed = "\n".join(f"{name:<13}{suite.about}" for name, suite in suites.items())
    about = f"{__doc__}\n{listed}"
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suite", choices=suites, help="whose programs")
    parser.add_argument("--only", default="", metavar="REGEX", help="only programs whose name matches")
    parser.add_argument("--stacks", default="legacy,mlir")
    parser.add_argument(
        "--limit", type=float, default=2.0, help="print a line for at least this multiple of XLA's time"
    )
    parser.add_argument("--least", type=float, default=10.0, help="microseconds that a program counts for at least")
    parser.add_argument("--threads", type=int, default=1, help="processors that the process keeps")
    parser.add_argument(
        "--cpu", default="host", choices=levels(), help="as on a processor of this level, XLA's own code too"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.03, help="of each stack and program")
    parser.add_argument("--json", type=Path, help="also write all times, in microseconds, to this file")
    options = parser.parse_args(argv)
    options.programs = suites[options.suite].programs()
    try:
        options.names = [name for name in options.programs if re.search(options.only, name)]
        options.stacks = parse_stacks(options.stacks, STACK_NAMES)
    except (re.error, InputError) as error:
        parser.error(str(error))
    if not options.names:
        parser.error(f"--only {options.only!r} matches no program")
    if not installed():
        parser.error("jaxlib is not installed: ./testbed setup --xla")
    options.cpus = sorted(os.sched_getaffinity(0))[-options.threads :]
    if not 0 < options.threads == len(options.cpus):
        parser.error(f"--threads {options.threads}: this process may use {len(os.sched_getaffinity(0))} processors")
    return options


def measure_all(programs: Programs, options: argparse.Namespace, integers: int) -> dict[str, dict[str, float]]:
    """`measure` of each program that is taken. Prints what is above the limit, and why a program was refused."""
    from ...hlo.errors import TestbedError

    found: dict[str, dict[str, float]] = {}
    for number, name in enumerate(options.names):
        try:
            found[name] = measure(programs[name](), options.stacks, options.rounds, options.seconds, integers)
        except TestbedError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        high = {s: r for s, r in ratios(found[name], options.least).items() if r > options.limit}
        if high:
            told = ", ".join(f"{s} {r:.1f}" for s, r in high.items())
            place = f"[{number + 1}/{len(options.names)}]"
            print(f"{place} {name}: {told} of {found[name]['xla']:.0f} us", file=sys.stderr)
    return found


def main(argv: Sequence[str] | None = None, suites: Mapping[str, Suite] = SUITES) -> int:
    """The command. Returns 1 if a program is above the limit."""
    from ...codegen.options import assume_host, assumed_host
    from ...codegen.threads import set_threads

    options = parse_arguments(argv, suites)
    before, host, given = os.sched_getaffinity(0), assumed_host(), dict(os.environ)
    os.sched_setaffinity(0, options.cpus)  # before XLA counts them
    os.environ.update(as_on(options.cpu, given))  # and reads its flags
    try:
        assume_host(options.cpu)
        set_threads(options.threads)
        found = measure_all(options.programs, options, suites[options.suite].integers)
    finally:
        os.sched_setaffinity(0, before)
        assume_host(host)
        os.environ.clear()
        os.environ.update(given)
    if options.json:
        write_text(options.json, json.dumps(found, indent=1) + "\n")
    above = {n: r for n, t in found.items() if max((r := ratios(t, options.least)).values()) > options.limit}
    rows = sorted(above.items(), key=lambda item: -max(item[1].values()))
    cells = [(n, f"{found[n]['xla']:.0f}", *(f"{r[s]:.2f}" for s in options.stacks)) for n, r in rows]
    if cells:
        print(text_table([left("program"), right("xla us"), *map(right, options.stacks)], cells))
    print(f"{len(found)} programs, {len(rows)} above {options.limit:g} times XLA's time")
    return int(bool(rows))
