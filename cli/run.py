"""`testbed run MODULE`: runs a module once on inputs from a file, from a seed or from its io.npz."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("module")
@click.option("--inputs", metavar="IO.NPZ", help="Inputs: in0, in1, …, one per parameter leaf.")
@click.option(
    "--seed", type=int, metavar="N", help="Make inputs from a seed instead, constrained as XLA's fake arguments."
)
@click.option(
    "--emitters",
    default="legacy",
    show_default=True,
    help="evaluator, legacy, mlir, or flags such as mlir,reduce=legacy.",
)
@click.option(
    "--red-zones", is_flag=True, help="Run kernels between guard bytes and report the one that writes out of bounds."
)
@click.option("--output", metavar="OUT.NPZ", help="Save inputs and results in the form of io.npz.")
def command(
    module: str, inputs: str | None, seed: int | None, emitters: str, red_zones: bool, output: str | None
) -> int:
    """Run MODULE and print a line for each result leaf; small results are printed in full."""
    import numpy as np

    from ..formats.program import load_program, save_io
    from ..migration.stacks import run
    from .inputs import choose_inputs

    if inputs is not None and seed is not None:
        raise click.UsageError("--inputs and --seed exclude each other")
    program = load_program(module)
    arrays = choose_inputs(program, inputs, seed)
    stack = "evaluator" if emitters == "evaluator" else "legacy"
    if red_zones and stack == "evaluator":
        raise click.UsageError("--red-zones needs compiled kernels, and the evaluator has none")
    result = run(stack, program, arrays, emitters, red_zones)
    if output is not None:
        save_io(Path(output), arrays, result.results)
    with np.printoptions(threshold=16, edgeitems=3, linewidth=120):
        for i, value in enumerate(result.results):
            text = np.array2string(value, separator=", ").replace("\n", " ")
            click.echo(f"out{i} {value.dtype.name}{list(value.shape)} {text}")
    click.echo(f"compile {result.compile_seconds:.3f} s, run {result.run_seconds * 1e3:.3f} ms", err=True)
    return 0
