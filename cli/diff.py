"""`testbed diff MODULE`, the main command: a program on evaluator, legacy, MLIR and XLA:CPU; a table and a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from ..differential.verdict import Verdict
    from ..formats.program import Program
    from ..migration.stacks import Run


PEERS = ("evaluator", "legacy", "mlir")
DEFAULT = f"{','.join(PEERS)}, and xla where jaxlib is installed"


@click.command()
@click.argument("module")
@click.option("--inputs", metavar="IO.NPZ", help="Inputs: in0, in1, …, one per parameter leaf.")
@click.option("--seed", type=int, metavar="N", help="Make inputs from a seed instead.")
@click.option(
    "--stacks",
    help=f"Stacks from: evaluator, optimized (the evaluator after all passes), legacy, mlir, xla. [default: {DEFAULT}]",
)
@click.option("--emitters", metavar="FLAGS", help="Emitters of the mlir stack, such as mlir,reduce=legacy.")
def command(module: str, inputs: str | None, seed: int | None, stacks: str | None, emitters: str | None) -> int:
    """Compile MODULE on both stacks, run it on all, compare every pair of stacks. Exit 0 only if all agree."""
    from ..backends.xla import installed
    from ..differential.bounds import bounds_of
    from ..differential.verdict import judge
    from ..formats.program import load_program
    from ..migration.stacks import STACKS, parse_stacks
    from .inputs import choose_values

    if inputs is not None and seed is not None:
        raise click.UsageError("--inputs and --seed exclude each other")
    names = parse_stacks(stacks, list(STACKS)) if stacks else PEERS + (("xla",) if installed() else ())
    if len(names) < 2:
        raise click.UsageError("--stacks needs two stacks or more to compare")
    program = load_program(module)
    arrays, golden = choose_values(program, inputs, seed)
    runs, refusals = _run_all(program, arrays, names, emitters)
    console = _console()
    results = {name: r.results for name, r in runs.items()}
    if golden is not None:
        results["golden"] = golden
    verdict = judge(results, bounds_of(program.module)) if len(results) > 1 else None
    if verdict is not None:
        _print_leaves(console, verdict, results)
    _print_stacks(console, runs, refusals)
    for name, refusal in refusals.items():
        click.echo(f"{name}: {refusal}")
    if not stacks and not installed():
        click.echo("xla: not compared, jaxlib is not installed (./testbed setup --xla)")
    if inputs is not None and golden is None:
        click.echo(f"golden: not compared, {inputs} holds no out0, …")
    click.echo(f"verdict: {_sentence(verdict, list(results), list(refusals))}")
    return 0 if verdict is not None and verdict.agrees and not refusals else 1


def _sentence(verdict: Verdict | None, results: list[str], refused: list[str]) -> str:
    """The verdict in words. It says that stacks agree only if all that were asked for ran."""
    if verdict is not None and not refused:
        return verdict.sentence
    missing = f"incomplete, {', '.join(refused)} did not run"
    if verdict is None:
        return f"{missing}; nothing to compare"
    return f"{missing}; " + (f"{', '.join(results)} match" if verdict.agrees else verdict.sentence)


def _run_all(
    program: Program, arrays: list[np.ndarray], names: tuple[str, ...], emitters: str | None
) -> tuple[dict[str, Run], dict[str, str]]:
    """Runs by stack, and the reason for each stack that cannot run the program."""
    from ..hlo.errors import UnsupportedError
    from ..migration.stacks import run

    runs, refusals = {}, {}
    for name in names:
        try:
            runs[name] = run(name, program, arrays, emitters if name == "mlir" else None)
        except UnsupportedError as error:
            refusals[name] = str(error)
    return runs, refusals


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120  # a pipe has no width, and 80 columns would truncate the tables
    return console


def _print_leaves(console: Console, verdict: Verdict, results: dict[str, list[np.ndarray]]) -> None:
    from rich.table import Table

    table = Table(
        "result",
        "shape",
        "pair",
        "max abs",
        "max rel",
        "max ulp",
        "agree",
        title="largest differences",
        title_justify="left",
    )
    shapes = next(iter(results.values()))
    for c in verdict.comparisons:
        value, d = shapes[c.leaf], c.difference
        table.add_row(
            f"out{c.leaf}",
            f"{value.dtype.name}{list(value.shape)}",
            f"{c.left} / {c.right}",
            _number(d.max_abs),
            _number(d.max_rel),
            _number(d.max_ulp),
            "yes" if d.agrees else "NO",
            style=None if d.agrees else "red",
        )
    console.print(table)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _print_stacks(console: Console, runs: dict[str, Run], refusals: dict[str, str]) -> None:
    from collections import Counter

    from rich.table import Table

    table = Table("stack", "kernels emitted", "compile s", "run ms", title="stacks", title_justify="left")
    for name, run in runs.items():
        emitted = Counter(stack for _, stack in run.kernels)
        kernels = ", ".join(f"{n} by {stack}" for stack, n in emitted.items()) or "–"
        table.add_row(
            name, kernels, f"{run.compile_seconds:.3f}" if run.compile_seconds else "–", f"{run.run_seconds * 1e3:.3f}"
        )
    for name in refusals:
        table.add_row(name, "unsupported", "–", "–", style="yellow")
    console.print(table)
    names = [f"  {kernel}: {stack}" for name, run in runs.items() if name == "mlir" for kernel, stack in run.kernels]
    if any(not line.endswith(": mlir") for line in names):
        click.echo("kernels of the mlir run, by the stack that emitted them:\n" + "\n".join(names))
