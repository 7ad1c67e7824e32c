"""`testbed run MODULE…`: runs modules on inputs from a file, the command line, a seed, or their own io.npz."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .devices import (
    Done,
    Wish,
    device_options,
    feed_forms,
    has_feeds,
    prefix_of,
    read_feeds,
    run_evaluator,
    run_executable,
    values_for,
)
from .inputs import Inputs, input_options
from .json_output import json_option
from .output import milliseconds, say, wrapped
from .params import FILE, MODULE, emitters_option, handlers_option, host_program_option, xla_flags_option
from .programs import each_program
from .replacing import replace_option, with_replacements
from .run_debug import KINDS, Checked, checked_of, print_checked, stopped
from .run_profile import prepare_watched, print_profile
from .run_shadow import Shadowed, prepare_plain, print_shadowed, shadowed_of

if TYPE_CHECKING:
    import numpy as np

    from ..formats.program import Program
    from ..hlo.devices import Devices
    from ..migration.stacks import Prepared, Run
    from ..profiling.profile import Profile


@dataclass(frozen=True)
class Iteration:
    """One run on one set of inputs. profile: the times of its steps, with --profile. checked: what --debug found."""

    origin: str
    inputs: list[np.ndarray]
    done: Done
    devices: Devices
    compile_seconds: float
    run_seconds: float
    profile: Profile | None = None
    checked: Checked | None = None
    shadowed: Shadowed | None = None


@click.command()
@click.argument("modules", metavar="MODULE...", nargs=-1, required=True, type=MODULE)
@input_options()
@replace_option
@emitters_option(
    "evaluator, legacy, mlir, xla, ledger, or flags such as mlir,reduce=legacy; shadow runs legacy and compares mlir."
)
@xla_flags_option
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run N times, compiled once; what is drawn comes from the next seed each time.",
)
@device_options
@click.option(
    "--red-zones", is_flag=True, help="Run kernels between guard bytes and report the one that writes out of bounds."
)
@click.option("--profile", is_flag=True, help="Print how often each kernel, copy, loop and branch ran, and how long.")
@click.option(
    "--debug",
    type=click.Choice(KINDS),
    help="Check what each kernel computes: the first NaN (nan), infinities, too (finite), a checksum of each result; "
    "writes out of bounds (redzone); or run kernels with junk around their arguments and name the one that reads "
    "foreign or unwritten memory (memory).",
)
@click.option(
    "--findings",
    type=FILE,
    default="shadow-findings",
    show_default=True,
    metavar="DIR",
    help="Where --emitters shadow writes what differs, a folder each.",
)
@host_program_option
@handlers_option
@click.option("--output", type=FILE, metavar="OUT.NPZ", help="Save inputs and results in the form of io.npz.")
@json_option("results and times")
def command(
    modules: tuple[str, ...],
    inputs: Inputs,
    replacements: tuple[str, ...],
    emitters: str,
    xla_flags: str | None,
    iterations: int,
    wish: Wish,
    red_zones: bool,
    profile: bool,
    debug: str | None,
    findings: str,
    host_program: str,
    handlers: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> int:
    """Run MODULEs and print a line for each result leaf, with its first and last elements where it is large.

    Exit 1 if two iterations on the same inputs give different bits, or if checks of --debug find something wrong.
    """
    for option, given in (("--red-zones", red_zones), ("--profile", profile), ("--debug", debug)):
        if given and emitters in ("evaluator", "xla"):
            raise click.UsageError(f"{option} needs compiled kernels, and {emitters} has none")
    if debug and (red_zones or profile):
        raise click.UsageError("--debug, --red-zones and --profile need a program of their own: give one of them")
    if xla_flags is not None and emitters != "xla":
        raise click.UsageError("--xla-flags needs --emitters xla")
    if emitters == "xla" and wish != Wish():
        raise click.UsageError("xla runs on one device, without feeds; choose other --emitters")
    if output is not None and (len(modules) > 1 or iterations > 1 or (wish.replicas or 1) * (wish.partitions or 1) > 1):
        raise click.UsageError("--output takes one MODULE, one iteration and one device")

    from ..backends.device import MemoryFault

    def one(_: str, program: Program) -> tuple[int, dict[str, Any]]:
        program = with_replacements(program, replacements)
        on_devices = wish != Wish() or (has_feeds(program.module) and emitters != "xla")
        if on_devices and debug:
            raise click.UsageError("--debug looks at a run on one device, without feeds")
        prepare = (
            _on_devices(program, wish, emitters, red_zones, profile, host_program)
            if on_devices
            else _prepared(program, emitters, xla_flags, red_zones, profile, debug or "", findings, host_program)
        )
        done: list[Iteration] = []
        status = 0
        for number in range(iterations):
            try:
                done.append(prepare(inputs, number))
            except MemoryFault as error:
                if not as_json:
                    say(wrapped(str(error)))
                body = {"emitters": emitters, "iterations": [_body(i, program) for i in done]}
                return 1, {**body, "checks": stopped(error).to_json()}
            if output is not None:
                from ..formats.program import save_io

                save_io(Path(output), done[0].inputs, done[0].done.results[0])
            status |= _report(done, inputs, quiet=as_json)
        return status, {"emitters": emitters, "iterations": [_body(i, program) for i in done]}

    return each_program("run", modules, one, as_json)


def _prepared(
    program: Program,
    emitters: str,
    xla_flags: str | None,
    red_zones: bool,
    profile: bool,
    debug: str,
    findings: str,
    host_program: str,
) -> Callable[[Inputs, int], Iteration]:
    """A function from inputs and the number of an iteration to that iteration; the program is compiled at once."""
    from ..backends.base import CompileOptions
    from ..hlo.devices import ONE_DEVICE
    from ..migration import Flags
    from ..migration.checked import prepare_checked
    from ..migration.stacks import prepare, run_prepared

    stack = emitters if emitters in ("evaluator", "xla") else "legacy"
    flags = xla_flags if stack == "xla" else emitters
    options = CompileOptions(red_zones=red_zones, profile=profile, debug=debug, host_program=host_program)
    plain: Prepared | None = None
    if stack != emitters and Flags.parse(emitters).has_shadows:
        from ..differential.shadow import tolerances

        options = replace(options, tolerances=tolerances)
        plain = prepare_plain(program, emitters, host_program)
    prepared: Prepared = (
        prepare_checked(program, emitters, host_program=host_program)
        if debug == "memory"
        else prepare_watched(program, emitters, options)
        if profile or debug or plain is not None
        else prepare(stack, program, flags, red_zones, host_program)
    )

    def run(inputs: Inputs, number: int) -> Iteration:
        values = inputs.values(program, number, expected=False)
        result: Run = run_prepared(prepared, values.inputs)
        made = prepared.executable.profile(clear=True) if profile else None
        times = result.compile_seconds, result.run_seconds
        found = checked_of(prepared.executable, debug) if debug else None
        done = Done([result.results], [[]])
        shadowed = None
        if plain is not None:
            plain.run(values.inputs)  # the first run prepares the next ones
            shadowed = shadowed_of(prepared, result, run_prepared(plain, values.inputs), Path(findings), emitters)
        return Iteration(values.origin, values.inputs, done, ONE_DEVICE, *times, made, found, shadowed)

    return run


def _on_devices(
    program: Program, wish: Wish, emitters: str, red_zones: bool, profile: bool, host_program: str
) -> Callable[[Inputs, int], Iteration]:
    """The same on several devices, or with feeds."""
    import time

    devices = wish.devices(program.module)
    feeds = read_feeds(wish.infeed, feed_forms(program.module), devices)
    executable, start = None, time.perf_counter()
    if emitters != "evaluator":
        from ..backends.base import CompileOptions
        from ..migration import Flags
        from ..migration.compile import compile_program

        options = CompileOptions(red_zones=red_zones, profile=profile, host_program=host_program)
        options = replace(options, replicas=devices.replicas, partitions=devices.partitions)
        executable = compile_program(program, Flags.parse(emitters), options)
    compiled = time.perf_counter() - start if executable is not None else 0.0

    def run(inputs: Inputs, number: int) -> Iteration:
        values, origin = values_for(program, inputs, devices, number)
        start = time.perf_counter()
        given = [v.inputs for v in values]
        done = (
            run_evaluator(program.module, devices, given, feeds)
            if executable is None
            else run_executable(executable, given, feeds, wish.wait_limit)
        )
        seconds = time.perf_counter() - start
        made = executable.profile(clear=True) if executable is not None and profile else None
        return Iteration(origin, given[0], done, devices, compiled, seconds, made)

    return run


def _report(done: Sequence[Iteration], inputs: Inputs, quiet: bool) -> int:
    """Print the last iteration. Inputs that are the same again must give the same bits; returns 1 if they do not."""
    now, first = done[-1], done[0]
    again = len(done) > 1 and not inputs.are_drawn
    differing = [
        f"{prefix_of(now.devices, d)}out{i}"
        for d, (ours, theirs) in enumerate(zip(now.done.results, first.done.results, strict=True))
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
        if again and (a.shape != b.shape or a.tobytes() != b.tobytes())
    ]
    if not quiet:
        if len(done) > 1:
            same = "the same bits" if again and not differing else now.origin
            say(f"iteration {len(done)}: {same}")
        if not again or differing:
            now.done.print(now.devices)
        if now.profile is not None:
            print_profile(now.profile)
        if now.checked is not None:
            print_checked(now.checked)
        if now.shadowed is not None:
            print_shadowed(now.shadowed)
        say(f"compile {now.compile_seconds:.3f} s, run {milliseconds(now.run_seconds)} ms", err=True)
    if differing:
        say(
            f"iteration {len(done)} gives other bits than the first on the same inputs: {', '.join(differing)}",
            err=True,
        )
    wrong = any(found is not None and found.wrong for found in (now.checked, now.shadowed))
    return 1 if differing or wrong else 0


def _body(iteration: Iteration, program: Program) -> dict[str, Any]:
    from ..formats.program import result_leaves

    shapes = [str(shape.without_layout()) for shape in result_leaves(program.module)]
    profile = {} if iteration.profile is None else {"profile": iteration.profile.to_json()}
    checked = {} if iteration.checked is None else {"checks": iteration.checked.to_json()}
    return {
        "inputs": iteration.origin,
        "compile_seconds": iteration.compile_seconds,
        "run_seconds": iteration.run_seconds,
        "replicas": iteration.done.body(shapes),
        **profile,
        **checked,
        **({} if iteration.shadowed is None else {"shadow": iteration.shadowed.to_json()}),
    }
