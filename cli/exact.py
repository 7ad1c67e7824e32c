"""`testbed exact MODULE|DIR`: kernels over a finite field, on both stacks and by the HLO, compared bit for bit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .diff_exact import body_of
from .json_output import json_option, print_document
from .output import say, wrapped
from .params import MODULE

if TYPE_CHECKING:
    from ..differential.exact.corpus import Checked


@click.command()
@click.argument("module", metavar="MODULE|DIR", type=MODULE)
@click.option("--kernel", "names", multiple=True, metavar="NAME", help="Only this kernel. Repeatable.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of fields and operands.")
@click.option("--program", "whole", is_flag=True, help="Run whole programs, step by step, instead of their kernels.")
@click.option("--every", type=click.IntRange(1), default=1, help="Only each N-th module of DIR.", metavar="N")
@click.option("--brief", is_flag=True, help="Leave out kernels that are equal.")
@json_option("a row for each kernel")
def command(module: str, names: tuple[str, ...], seed: int, whole: bool, every: int, brief: bool, as_json: bool) -> int:
    """Run each kernel of MODULE, or each distinct one of the modules in DIR, over a finite field in place of floats
    (docs/exact.md): sums in any order, tiles, tails and index arithmetic then agree bit for bit, or are wrong.

    With --program, the steps of a program's plan run on both stacks and are compared with the planned module; the row
    also says if a pass changed what the module computes over the field, and which.

    Rounding, overflow, NaN and LLVM's passes are not tested. Exit 1 if a kernel differs, 3 if one did not run.
    """
    from ..differential.exact.check import Status
    from ..hlo.errors import InputError

    if whole and names:
        raise InputError("--kernel is not for --program", remedy="leave out one of them")
    start = time.perf_counter()
    rows = []
    for found in _rows(Path(module), names, seed, whole, every):
        rows.append(found)
        if not as_json and not (brief and found.row.status is Status.EQUAL):
            _print(found)
    missing = set(names) - {r.row.kernel for r in rows}
    if missing:
        raise InputError(f"no kernel '{min(missing)}'", remedy="testbed forms MODULE prints their names")
    counts = {status: sum(r.row.status is status for r in rows) for status in Status}
    status = 1 if counts[Status.DIFFER] else 3 if any(_is_open(r) for r in rows) else 0
    if as_json:
        return print_document("exact", status, {"kernels": [_body(r) for r in rows]})
    seconds = time.perf_counter() - start
    told = ", ".join(f"{n} {status.value}" for status, n in counts.items() if n) or "no kernels"
    say(f"{told}, in {seconds:.1f} s")
    return status


def _rows(path: Path, names: tuple[str, ...], seed: int, whole: bool, every: int) -> Iterator[Checked]:
    from ..differential.exact.corpus import check_files, check_programs, modules_in
    from ..hlo.errors import InputError

    files = modules_in(path)[::every] if path.is_dir() else [path]
    if files:
        return check_programs(files, path, seed) if whole else check_files(files, path, seed, names)
    raise InputError(f"{path}: no module", remedy="give a folder with files that end in .hlo, or one module")


def _is_open(found: Checked) -> bool:
    """Whether a kernel might be wrong and was not run."""
    from ..differential.exact.check import Status

    return found.row.status is Status.NOT_RUN


def _print(found: Checked) -> None:
    row = found.row
    of = f"{row.draws} draws modulo {row.prime}" if row.draws else row.reason
    why = f": {row.reason}" if row.draws and row.reason else ""
    say(wrapped(f"{row.status.value}  {found.module}  {row.kernel or '(module)'}  {of}{why}"))


def _body(found: Checked) -> dict[str, Any]:
    return {"module": found.module, **body_of(found.row), "seconds": round(found.seconds, 4)}
