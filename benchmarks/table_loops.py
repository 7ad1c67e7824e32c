"""Loops over a table (table_programs.py) at lengths n, 2n and 4n: whether time is linear in them, and against XLA.

Run: .venv/bin/python -m testbed.benchmarks.table_loops [NAME…] [--length N] [--stacks S,…] [--most F]
Each step of a loop touches a few rows. A table that is copied in a step costs its length, so that 4n steps take 16
times as long as n. Exits 1 if 4n steps take more than `most` times as long.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen.threads import set_threads
from ..formats.program import Program
from ..formats.text.parser import parse_module
from ..hlo.errors import InputError
from ..migration.stacks import STACKS, prepare, run_prepared
from .table_programs import TABLE_LOOPS, TableLoop, inputs_of
from .tables import left, right, text_table

FACTORS = (1, 2, 4)
"""Lengths of the table, in units of the shortest."""

NOISE = 20e-6
"""Seconds that a run may take longer by chance, and for the call."""


@dataclass(frozen=True)
class Slope:
    """Seconds of a loop on one stack, by FACTORS."""

    seconds: tuple[float, ...]

    @property
    def growth(self) -> float:
        """How many times longer the longest run takes than the shortest; linear: 4."""
        return self.seconds[-1] / max(self.seconds[0], NOISE)


def measure(loop: TableLoop, stack: str, length: int) -> Slope:
    """Run a loop on a stack at each length."""
    seconds = []
    for factor in FACTORS:
        n = factor * length
        text = loop.text(n)
        prepared = prepare(stack, Program(loop.name, text, parse_module(text)))
        seconds.append(run_prepared(prepared, inputs_of(loop, n)).run_seconds)
    return Slope(tuple(seconds))


def cells(name: str, slopes: dict[str, Slope]) -> list[str]:
    """A row of the table: ms of the longest run, growth, and the ratio to XLA, by stack."""
    row = [name]
    for stack, slope in slopes.items():
        row += [f"{slope.seconds[-1] * 1e3:.3f}", f"{slope.growth:.1f}"]
        if "xla" in slopes and stack != "xla":
            row.append(f"{slope.seconds[-1] / slopes['xla'].seconds[-1]:.4f}")
    return row


def headings(stacks: Sequence[str]) -> list[str]:
    found = []
    for stack in stacks:
        found += [f"{stack} ms", "growth", *(["ratio"] if "xla" in stacks and stack != "xla" else [])]
    return found


def chosen(names: Sequence[str]) -> list[TableLoop]:
    """The loops whose names contain one of `names`; all without names. Raises InputError if there is none."""
    found = [loop for loop in TABLE_LOOPS if not names or any(n in loop.name for n in names)]
    if not found:
        raise InputError(f"no loop is named {names[0]!r}", remedy=f"loops: {', '.join(x.name for x in TABLE_LOOPS)}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the loops' names (all)")
    parser.add_argument("--length", type=int, default=4000, help="rows of the shortest table (4000)")
    parser.add_argument("--stacks", default="legacy,mlir,xla", help=f"of {', '.join(STACKS)} (legacy,mlir,xla)")
    parser.add_argument("--most", type=float, default=8.0, help="the largest growth from n to 4n (8)")
    options = parser.parse_args(argv)
    set_threads(1)
    stacks = options.stacks.split(",")
    unknown = [s for s in stacks if s not in STACKS]
    if unknown or options.length < 8:
        parser.error(f"no stack {unknown[0]}" if unknown else "a table has at least 8 rows")
    try:
        loops = chosen(options.names)
    except InputError as error:
        parser.error(str(error))
    rows, steep = [], []
    for loop in loops:
        slopes = {stack: measure(loop, stack, options.length) for stack in stacks}
        rows.append(cells(loop.name, slopes))
        steep += [f"{loop.name} on {s}" for s, slope in slopes.items() if s != "xla" and slope.growth > options.most]
    print(text_table([left(f"loop, {options.length * FACTORS[-1]} rows"), *map(right, headings(stacks))], rows))
    for what in steep:
        print(f"not linear: {what}")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
