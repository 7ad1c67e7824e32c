"""`testbed ab MODULE…`: compares stacks on programs: run time with an interval, compile time, memory; and over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .inputs import Inputs, input_options
from .json_output import json_option, print_document
from .output import say, table, width, wrapped
from .params import FILE, MODULE, host_program_option, xla_flags_option
from .pinning import pin, pin_option
from .programs import each_program
from .progress import telling

if TYPE_CHECKING:
    from ..benchmarks.compare import Comparison
    from ..benchmarks.rounds import Settings
    from ..formats.program import Program

COVERED = 0.9
"""The part of calibrating comparisons that must be right. Of 100 intervals of 95%, 5 miss, and more than 10 rarely."""


@click.command()
@click.argument("modules", metavar="[MODULE]...", nargs=-1, type=MODULE)
@click.option("--a", default="legacy", show_default=True, help="A stack: evaluator, legacy, mlir, xla, or flags.")
@click.option("--b", default="mlir", show_default=True, help="The stack that is compared with it.")
@click.option("--c", help="A third one, compared with a, too.")
@click.option(
    "--width",
    "narrow",
    type=click.FloatRange(0, min_open=True),
    default=0.02,
    show_default=True,
    help="Stop once the 95% interval is narrower than this part of the ratio.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="Stop after N seconds of runs, however wide it is.",
)
@click.option("--order", type=click.IntRange(0), default=0, show_default=True, help="Seed of the order of runs.")
@pin_option
@xla_flags_option
@host_program_option
@input_options()
@click.option("--history", type=FILE, metavar="FILE", help="Append the comparisons; without MODULE, print them.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw the ratios of the history: .svg, .png or .pdf.")
@click.option(
    "--fail-above",
    type=click.FloatRange(0, min_open=True),
    metavar="RATIO",
    help="Exit 1 if the whole interval of a ratio is above it.",
)
@click.option(
    "--calibrate",
    type=click.IntRange(1),
    metavar="N",
    help="Compare a with itself N times: how many intervals hold 1?",
)
@click.option(
    "--planted",
    type=click.FloatRange(1),
    default=1.0,
    metavar="FACTOR",
    help="With --calibrate: the second runs take FACTOR times as long. How many intervals lie above 1?",
)
@json_option("times and ratios")
def command(
    modules: tuple[str, ...],
    a: str,
    b: str,
    c: str | None,
    narrow: float,
    seconds: float,
    order: int,
    xla_flags: str | None,
    host_program: str,
    inputs: Inputs,
    history: str | None,
    plot: str | None,
    fail_above: float | None,
    calibrate: int | None,
    planted: float,
    pinned: int | None,
    as_json: bool,
) -> int:
    """Compare two or three stacks on MODULEs by paired runs in random order. Ratios are b's, or c's, to a's.

    Both sides are loaded again for each block of runs, because where code and arrays lie matters. docs/benchmarks.md.
    """
    if plot is not None and history is None:
        raise click.UsageError("--plot draws a history: add --history FILE")
    if planted != 1 and calibrate is None:
        raise click.UsageError("--planted needs --calibrate N")
    if not modules:
        if history is None:
            raise click.UsageError("give a MODULE, or --history FILE to print")
        return _print_history(Path(history), plot, as_json)
    pin(pinned)
    from ..benchmarks import ab_history
    from ..benchmarks.compare import compare
    from ..benchmarks.rounds import Settings
    from ..benchmarks.suite.machine import commit, machine, versions
    from ..benchmarks.suite.plot import check_name

    if plot is not None:
        check_name(Path(plot))
    if history is not None and Path(history).exists():
        ab_history.read_history(Path(history))  # refused before anything is measured
    settings = Settings(width=narrow, seconds=seconds, seed=order)
    place = {"machine": machine(), "versions": versions(), "commit": commit()}

    def one(spec: str, program: Program) -> tuple[int, dict[str, Any]]:
        values = inputs.values(program, expected=False)

        def compared(other: str, seed: Settings, factor: float = 1.0) -> Comparison:
            with telling() as tell:
                return compare(
                    program,
                    a,
                    other,
                    values.inputs,
                    seed,
                    host_program=host_program,
                    xla_flags=xla_flags,
                    planted=factor,
                    on_step=tell,
                )

        if calibrate is not None:
            found = [compared(a, replace(settings, seed=order + n), planted) for n in range(calibrate)]
            return _calibration(found, planted, values.origin, place, as_json)
        found = [compared(other, settings) for other in (b, c) if other is not None]
        if history is not None:
            ab_history.append(Path(history), [ab_history.record_of(spec, program, f) for f in found])
            if plot is not None:  # before anything is printed: the reader of a pipe may go away
                ab_history.plot(ab_history.read_history(Path(history)), Path(plot))
        if not as_json:
            _print(found)
        status = int(fail_above is not None and any(f.low > fail_above for f in found))
        return status, {"inputs": values.origin, "comparisons": [_body(f) for f in found], **place}

    return each_program("ab", modules, one, as_json)


def _print(found: Sequence[Comparison]) -> None:
    from rich.table import Column

    rows = []
    for f in found:
        ratio = f"{f.ratio:.3f} [{f.low:.3f}, {f.high:.3f}]"
        times = (f"{f.seconds[0] * 1e3:.4f}", f"{f.seconds[1] * 1e3:.4f}")
        rows.append((f"{f.b} / {f.a}", ratio, *times, f"{f.compile_ratio:.2f}", f"{f.memory_ratio:.2f}"))
    right = [Column(head, justify="right") for head in ("a ms", "b ms", "compile", "memory")]
    say(table([Column("", no_wrap=True), Column("run time [95%]", no_wrap=True), *right], rows))
    wide = sum(not f.narrow for f in found)
    if wide:
        say(
            wrapped(f"{wide} of {len(found)}: the time was over before the interval was narrow; --seconds N gives more")
        )


def _body(f: Comparison) -> dict[str, Any]:
    return {**asdict(f), "blocks": [{**asdict(block), "warm": list(block.warm)} for block in f.blocks]}


def _calibration(
    found: Sequence[Comparison], planted: float, origin: str, place: dict[str, Any], as_json: bool
) -> tuple[int, dict[str, Any]]:
    """The status, and the body of the document."""
    right = sum(f.low > 1 if planted != 1 else f.low <= 1 <= f.high for f in found)
    if not as_json:
        what = f"lie above 1, with {planted:g} planted" if planted != 1 else "hold 1"
        say(wrapped(f"{right} of {len(found)} intervals {what}"))
        _print(found)
    body = {"planted": planted, "runs": len(found), "right": right}
    comparisons = [_body(f) for f in found]
    return int(right < COVERED * len(found)), {
        "inputs": origin,
        "calibration": body,
        "comparisons": comparisons,
        **place,
    }


def _print_history(path: Path, plot: str | None, as_json: bool) -> int:
    from ..benchmarks import ab_history

    records = ab_history.read_history(path)
    if plot is not None:
        ab_history.plot(records, Path(plot))
    if as_json:
        return print_document("ab", 0, {"history": [asdict(r) for r in records]})
    say(ab_history.table(records, width()))
    return 0
