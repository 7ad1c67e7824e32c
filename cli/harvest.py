"""`testbed harvest DIR…`: the kernels of programs, each once, with their share of run time and the rows they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import say, table, wrapped
from .params import FILE

if TYPE_CHECKING:
    from ..differential.harvest import Harvest, Kernel
    from ..formats.program import Program


@click.command()
@click.argument("places", metavar="DIR...", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", type=FILE, metavar="FOLDER", help="Write each kernel as a module, and index.txt.")
@click.option("--weights", type=FILE, metavar="FILE", help="Write the shares of kernel time by rows, for toggles.")
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Kernels to print.")
def command(places: tuple[str, ...], output: str | None, weights: str | None, top: int) -> int:
    """Collect the kernels of all programs in DIRs: suites with a manifest.jsonl, or files of modules at any depth.

    Programs run with their own inputs, or with random ones. Exit 1 if one could not be read or run; it is named.
    """
    from ..differential.harvest import harvest, weights_of
    from ..hlo.errors import InputError, TestbedError
    from ..migration.weights import write_weights

    kernels: Harvest = {}
    count = failed = 0
    for place in places:
        for name, load in programs(Path(place)):
            count += 1
            try:
                harvest(load(), kernels)
            except TestbedError as error:
                failed += 1
                say(wrapped(f"left out: {name}: {error}"), err=True)
    if not kernels:
        raise InputError(f"no kernel in {', '.join(places)}", remedy="give a folder of modules or of suites")
    found = weights_of(kernels)
    ordered = sorted(kernels.values(), key=lambda kernel: -kernel.share)
    _print(ordered, top)
    say(wrapped(f"{found.kernels} kernels in {count - failed} programs; {failed} left out"))
    if output is not None:
        _write(Path(output), ordered)
    if weights is not None:
        write_weights(Path(weights), found)
    return 1 if failed else 0


def programs(place: Path) -> Iterator[tuple[str, Callable[[], Program]]]:
    """(name, what loads it) of each program in a folder, or of one file."""
    from ..differential.corpus import load_case, read_suite
    from ..formats.files import SUFFIXES
    from ..hlo.errors import InputError
    from ..migration.programs import load_program

    if (place / "manifest.jsonl").is_file():
        for case in read_suite(place):
            yield case.id, partial(load_case, case)
    elif place.is_dir():
        endings = SUFFIXES.keys() - {".txt"}  # in a folder that is mostly a text
        for path in sorted(p for p in place.rglob("*") if p.suffix in endings and p.is_file()):
            whole = (path.parent / "module.hlo").is_file()  # the folder is one program; other files are forms of it
            if not whole or path.name == "module.hlo":
                spec = str(path.parent if whole else path)
                yield spec, partial(load_program, spec)
    elif place.exists():
        yield str(place), partial(load_program, str(place))
    else:
        raise InputError(f"{place}: no such file or folder", remedy="give a folder of modules or of suites")


def _print(kernels: list[Kernel], top: int) -> None:
    from ..benchmarks.tables import left, right

    total = sum(kernel.share for kernel in kernels) or 1.0
    rows = [
        [
            f"{100 * kernel.share / total:.1f}%",
            str(len(kernel.programs)),
            kernel.module.entry.root.opcode.value,
            " ".join(name.removesuffix(".host") for name in kernel.rows) or "a library",
            next(iter(kernel.programs)),
        ]
        for kernel in kernels[:top]
    ]
    say(table([right("time"), right("programs"), left("root"), left("rows"), left("first in")], rows))


def _write(folder: Path, kernels: list[Kernel]) -> None:
    """A module a kernel, the slowest first, and a line for each in index.txt."""
    from ..formats.text.printer import print_module
    from ..formats.whole_files import write_folder

    def fill(work: Path) -> None:
        lines, total = [], sum(kernel.share for kernel in kernels) or 1.0
        for number, kernel in enumerate(kernels):
            name = f"{number:05}.hlo"
            (work / name).write_text(print_module(kernel.module), encoding="utf-8")
            share = f"{100 * kernel.share / total:.4f}%"
            lines.append(f"{name}\t{share}\t{' '.join(kernel.rows)}\t{' '.join(kernel.programs)}\n")
        (work / "index.txt").write_text("".join(lines), encoding="utf-8")

    write_folder(folder, fill)
