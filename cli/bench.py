"""`testbed bench MODULE`: times stacks against each other, interleaved; prints medians of compile and run times."""

from __future__ import annotations

import click


@click.command()
@click.argument("module")
@click.option(
    "--ab",
    "stacks",
    default="legacy,mlir",
    show_default=True,
    help="Stacks from: evaluator, optimized, legacy, mlir, xla. Ratios are relative to the first.",
)
@click.option("--inputs", metavar="IO.NPZ", help="Inputs: in0, in1, …, one per parameter leaf.")
@click.option("--seed", type=int, metavar="N", help="Make inputs from a seed instead.")
@click.option(
    "--rounds",
    type=click.IntRange(3),
    default=15,
    show_default=True,
    help="Number of rounds. Each round runs every stack, in rotating order.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=0.05,
    show_default=True,
    help="Seconds per stack and round. The run is repeated until they have passed.",
)
@click.option(
    "--pin", type=click.IntRange(0), metavar="CPU", help="Pin the process, including XLA's threads, to one CPU."
)
def command(
    module: str, stacks: str, inputs: str | None, seed: int | None, rounds: int, seconds: float, pin: int | None
) -> int:
    """Time MODULE on several stacks, interleaved. Prints medians and paired ratios with 95% intervals."""
    import os

    if inputs is not None and seed is not None:
        raise click.UsageError("--inputs and --seed exclude each other")
    if pin is not None:
        _pin(pin, os.cpu_count() or 1)
    from ..benchmarks.contestants import contestant
    from ..benchmarks.paired import race, table
    from ..formats.program import load_program
    from ..migration.stacks import STACKS, parse_stacks
    from .inputs import choose_inputs

    names = parse_stacks(stacks, list(STACKS))
    program = load_program(module)
    arrays = choose_inputs(program, inputs, seed)
    contestants = {name: contestant(name, program, arrays) for name in names}
    result = race({name: c.run for name, c in contestants.items()}, rounds=rounds, seconds=seconds)
    click.echo(table(result, {name: c.compile_seconds for name, c in contestants.items()}))
    return 0


def _pin(cpu: int, cpus: int) -> None:
    import os

    if not hasattr(os, "sched_setaffinity"):
        raise click.UsageError("--pin needs Linux")
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:
        raise click.UsageError(f"--pin {cpu}: no such CPU; this machine has 0 to {cpus - 1}") from None
