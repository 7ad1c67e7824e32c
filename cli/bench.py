"""`testbed bench MODULE…`: times stacks against each other, interleaved; prints medians of compile and run times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .inputs import Inputs, input_options
from .json_output import json_option
from .output import say, width, wrapped
from .params import FILE, MODULE, STACK_LIST, host_program_option, xla_flags_option
from .pinning import pin, pin_option
from .programs import each_program
from .replacing import replace_option, with_replacements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..benchmarks.contestants import Contestant
    from ..benchmarks.paired import Timing
    from ..formats.program import Program


@click.command()
@click.argument("modules", metavar="[MODULE]...", nargs=-1, type=MODULE)
@click.option(
    "--kernels",
    "folders",
    multiple=True,
    metavar="DIR",
    type=FILE,
    help="Time each distinct kernel of the programs in DIR by itself, instead of MODULEs. Repeatable.",
)
@click.option(
    "--least",
    type=click.FloatRange(0),
    default=5e-6,
    show_default=True,
    metavar="SECONDS",
    help="Of --kernels: compare none that takes less on the first stack.",
)
@click.option(
    "--ab",
    "stacks",
    default="legacy,mlir",
    show_default=True,
    type=STACK_LIST,
    help="Stacks from: evaluator, optimized, legacy, mlir, xla, xla-old, xla-new. Ratios are relative to the first.",
)
@xla_flags_option
@host_program_option
@input_options()
@replace_option
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
    "--limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Leave out a stack that does not compile a program and run it once in this time, tried in a child process.",
)
@pin_option
@json_option("times and ratios")
def command(
    modules: tuple[str, ...],
    folders: tuple[str, ...],
    least: float,
    stacks: str,
    xla_flags: str | None,
    host_program: str,
    inputs: Inputs,
    replacements: tuple[str, ...],
    rounds: int,
    seconds: float,
    limit: float | None,
    pinned: int | None,
    as_json: bool,
) -> int:
    """Time MODULEs on several stacks, interleaved. Prints medians, paired ratios with 95% intervals, and the stages of
    compiling.

    Exit 1 if a stack was left out by --limit.
    """
    pin(pinned)
    from ..migration.stacks import STACKS, parse_stacks

    names = parse_stacks(stacks, list(STACKS))
    if bool(folders) == bool(modules):
        raise click.UsageError("give MODULEs, or --kernels DIR")
    if folders:
        from .bench_kernels import bench_kernels

        return bench_kernels(folders, names, least, rounds, seconds, as_json)
    if limit is not None and replacements:
        raise click.UsageError("--limit reads MODULE again in a child process, without --replace: leave one out")
    if limit is not None and "-" in modules:
        raise click.UsageError("--limit reads MODULE again in a child process: give a file instead of -")

    def one(spec: str, program: Program) -> tuple[int, dict[str, Any]]:
        program = with_replacements(program, replacements)
        from ..benchmarks.contestants import contestant
        from ..benchmarks.paired import race, stage_table, table

        values = inputs.values(program, expected=False)
        left_out = {} if limit is None else _left_out(names, spec, program, values.inputs, limit)
        racing = {
            name: contestant(name, program, values.inputs, xla_flags, host_program)
            for name in names
            if name not in left_out
        }
        result = race({n: c.run for n, c in racing.items()}, rounds=rounds, seconds=seconds) if racing else {}
        if not as_json:
            if racing:
                say(table(result, {name: c.compile_seconds for name, c in racing.items()}, width()))
                stages = stage_table({name: c.stages for name, c in racing.items()}, width())
                if stages:
                    say(f"\n{stages}")
            for name, reason in left_out.items():
                say(wrapped(f"{name}: left out, {reason}"))
        return 1 if left_out else 0, {"inputs": values.origin, "stacks": _body(names, racing, result, left_out)}

    return each_program("bench", modules, one, as_json)


def _left_out(names: tuple[str, ...], spec: str, program: Program, inputs: Any, limit: float) -> dict[str, str]:
    """The stacks that are too slow, and what happened."""
    from ..benchmarks.limits import why_too_slow
    from ..codegen.options import Target

    reasons = {name: why_too_slow(name, spec, program, inputs, limit, Target.host()) for name in names}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _body(
    names: tuple[str, ...],
    racing: Mapping[str, Contestant],
    result: Mapping[str, Timing],
    left_out: Mapping[str, str],
) -> list[dict[str, Any]]:
    from ..benchmarks.paired import ratio

    rows: list[dict[str, Any]] = []
    base = next(iter(result.values()), None)
    for name in names:
        if name in left_out:
            rows.append({"name": name, "ran": False, "reason": left_out[name]})
            continue
        timing = result[name]
        to_first = ratio(timing, base) if base is not None else None
        rows.append(
            {
                "name": name,
                "ran": True,
                "reason": None,
                "compile_seconds": racing[name].compile_seconds,
                "compile_stages": [{"name": n, "seconds": s} for n, s in racing[name].stages.items()],
                "median_seconds": timing.median,
                "min_seconds": timing.minimum,
                "rounds": list(timing.rounds),
                "ratio": None if to_first is None else [to_first.median, to_first.low, to_first.high],
            }
        )
    return rows
