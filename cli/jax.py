"""`testbed jax -- python program.py`: runs a program of JAX on the compiler, and says which kernels ran where."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import click

from ..hlo.errors import InputError
from .output import say, table
from .params import emitters_option

REPORT_VARIABLE, PROFILE_VARIABLE, REPRO_VARIABLE = "TESTBED_JAX_REPORT", "TESTBED_JAX_PROFILE", "TESTBED_REPRO"
"""The environment that pjrt/ reads; tests/pjrt/test_jax_command.py compares the names."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@emitters_option("legacy, mlir, ledger, flags: mlir,reduce=legacy; or shadow: both, compared.")
@click.option("--times/--no-times", default=True, show_default=True, help="Note the times of kernels.")
@click.option("--most", type=int, default=25, show_default=True, help="Kernels to list.")
@click.option("--repro", metavar="DIR", help="Folder that receives programs that fail, and kernels that differ.")
@click.option("--json", "json_file", metavar="FILE", help="Write all rows as JSON.")
def command(
    program: tuple[str, ...], emitters: str, times: bool, most: int, repro: str | None, json_file: str | None
) -> int:
    """Run PROGRAM, a command such as `python train.py`, with JAX on this compiler. Put -- before it.

    Its exit status is that of the command. At the end the kernels are listed: stack, form, calls and time.
    """
    from ..migration.flags import Flags

    Flags.parse(emitters)
    with tempfile.TemporaryDirectory(prefix="testbed-jax-") as folder:
        report = Path(folder, "report.json")
        environment = {**os.environ, "JAX_PLATFORMS": "testbed", "TESTBED_EMITTERS": emitters}
        environment |= {REPORT_VARIABLE: str(report), PROFILE_VARIABLE: str(int(times))}
        if repro:
            environment[REPRO_VARIABLE] = str(Path(repro).absolute())
        try:
            status = subprocess.run(program, env=environment, check=False).returncode
        except OSError as error:
            remedy = "give a command, such as python train.py"
            raise InputError(f"{program[0]}: {error.strerror}", remedy=remedy) from None
        if not report.exists():
            say("testbed: the command used no JAX, or ended before it could report", err=True)
            return status
        found = json.loads(report.read_text())
    if json_file:
        Path(json_file).write_text(json.dumps(found, indent=1) + "\n")
    _print(found, most)
    return status


def _print(found: dict[str, Any], most: int) -> None:
    from rich.table import Column

    rows = merged(found["kernels"])
    total = sum(row["nanoseconds"] or 0 for row in rows) or 1.0
    stacks = {}
    for row in rows:
        number, time = stacks.get(row["stack"], (0, 0.0))
        stacks[row["stack"]] = number + row["number"], time + (row["nanoseconds"] or 0)
    say()
    for stack, (number, time) in sorted(stacks.items()):
        say(f"{stack}: {number} kernels, {time / 1e6:.2f} ms, {100 * time / total:.1f}%")
    heads = ("kernel", "program", "stack", "form", "calls", "ms", "share", "source")
    right = ("calls", "ms", "share")
    columns = [Column(head, justify="right" if head in right else "left") for head in heads]
    say(table(columns, [_cells(row, total) for row in rows[:most]]))
    say(f"{found['programs']} programs; {len(rows)} kernels, {max(0, len(rows) - most)} of them not listed")
    shadows = found["shadows"]
    if shadows["kernels"]:
        differing = sum(shadows["differing"].values())
        say(f"shadow: {shadows['kernels']} runs of kernels on both stacks, {differing} differ in some bit")
        for folder in shadows["findings"]:
            say(f"shadow: beyond the bounds; finding: {folder}")


def merged(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kernels of the same name, program, stack and form as one row; those that took most come first."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in kernels:
        key = row["program"], row["kernel"], row["stack"], row["form"]
        one = found.setdefault(key, {**row, "number": 0, "calls": 0, "nanoseconds": 0.0})
        one["number"] += 1
        one["calls"] += row["calls"] or 0
        one["nanoseconds"] += row["nanoseconds"] or 0.0
    return sorted(found.values(), key=lambda row: -row["nanoseconds"])


def short(source: str) -> str:
    """A place in a file without its folders, or the last part of an operation's name."""
    return source.partition(";")[0].rpartition("/")[2]


def _cells(row: dict[str, Any], total: float) -> list[str]:
    time = row["nanoseconds"]
    numbers = [str(row["calls"]), f"{time / 1e6:.2f}", f"{100 * time / total:.1f}%"]
    return [row["kernel"], row["program"], row["stack"], row["form"], *numbers, short(row["source"])]
