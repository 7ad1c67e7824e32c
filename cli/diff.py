"""`testbed diff MODULE…`, the main command: programs on evaluator, legacy, MLIR and XLA:CPU, and a verdict on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..hlo.remedies import adding
from .diff_exact import compare_exactly, refuse_with_exact
from .diff_report import Compared, print_iteration, print_stacks, to_json
from .inputs import Inputs, input_options
from .json_output import json_option
from .output import say, wrapped
from .params import MODULE, STACK_LIST, handlers_option, host_program_option, patience_option, xla_flags_option
from .programs import each_program
from .replacing import replace_option, with_replacements
from .status import heaviest
from .watch import OverLimit, Watch, limited

if TYPE_CHECKING:
    import numpy as np

    from ..differential.bounds import Bound, Tolerance
    from ..differential.conductor import Make
    from ..formats.program import Program

PEERS = ("evaluator", "legacy", "mlir")
DEFAULT = f"{','.join(PEERS)}, and xla where jaxlib is installed and no --handlers are given"


@click.command()
@click.argument("modules", metavar="MODULE...", nargs=-1, required=True, type=MODULE)
@input_options()
@replace_option
@click.option(
    "--stacks",
    type=STACK_LIST,
    help="Stacks from: evaluator, optimized (the evaluator after all passes), legacy, mlir, c, xla. "
    f"[default: {DEFAULT}]",
)
@click.option(
    "--platforms",
    metavar="NAMES",
    help="Compare platforms instead, such as host,c,interpreter (testbed platforms lists them).",
)
@click.option(
    "--emitters", metavar="FLAGS", help="Emitters of the mlir stack, or of the platform host: mlir,reduce=legacy."
)
@xla_flags_option
@click.option("--exact", is_flag=True, help="Compare both stacks, plan and passes over finite fields (docs/exact.md).")
@click.option(
    "--debug",
    type=click.Choice(["memory"]),
    help="memory: run the kernels of compiled stacks with junk around their arguments, and name the one that reads "
    "foreign or unwritten memory.",
)
@host_program_option
@handlers_option
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Compare N times, compiled once; what is drawn comes from the next seed each time.",
)
@click.option("--atol", type=click.FloatRange(0), metavar="X", help="Allow this absolute difference of floats.")
@click.option("--rtol", type=click.FloatRange(0), metavar="X", help="Allow this relative difference of floats.")
@click.option(
    "--ulp",
    type=click.FloatRange(0),
    metavar="X",
    help="Allow this many representable floats between two. Any of the three replaces the bounds of the module.",
)
@patience_option
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Give up a stack that takes longer, compilation included. [default: none]",
)
@click.option("--all", "show_all", is_flag=True, help="List every result and pair, also those that agree.")
@json_option("verdicts and differences")
def command(
    modules: tuple[str, ...],
    inputs: Inputs,
    replacements: tuple[str, ...],
    stacks: str | None,
    platforms: str | None,
    emitters: str | None,
    xla_flags: str | None,
    exact: bool,
    debug: str | None,
    host_program: str,
    handlers: tuple[str, ...],
    iterations: int,
    atol: float | None,
    rtol: float | None,
    ulp: float | None,
    patience: float,
    limit: float | None,
    show_all: bool,
    as_json: bool,
) -> int:
    """Compile MODULEs on both stacks, run them on all, compare every pair of stacks.

    Exit 0 only if all agree, 1 if some differ, 3 if that is undecided: results differ beyond the bounds of the module,
    and whether the float rules permit it was not found out in the time of --patience. --exact has no bounds.
    """
    from ..backends.xla import installed
    from ..differential.bounds import Tolerance
    from ..migration.stacks import STACKS, parse_stacks

    asked = any(bound is not None for bound in (atol, rtol, ulp))
    if exact:
        refuse_with_exact(
            {
                "--stacks": stacks,
                "--platforms": platforms,
                "--emitters": emitters,
                "--debug": debug,
                "--xla-flags": xla_flags,
                "--atol, --rtol or --ulp": asked,
            }
        )
        return each_program("diff", modules, lambda _, p: compare_exactly(p, as_json), as_json)
    if platforms and stacks:
        raise click.UsageError("--platforms and --stacks exclude each other")
    if platforms and debug:
        raise click.UsageError("--debug memory checks kernels on the host only: leave out --platforms")
    if platforms:
        stacks, make = platforms, _on_platforms(platforms, emitters, host_program)
    else:
        with_xla = installed() and not _foreign(handlers)  # which XLA does not have
        names = parse_stacks(stacks, list(STACKS)) if stacks else PEERS + (("xla",) if with_xla else ())
        make = _on_stacks(names, {"mlir": emitters, "xla": xla_flags}, host_program, debug)
    if len(make) < 2:
        raise click.UsageError("--stacks needs two stacks or more to compare")
    given = Tolerance(atol or 0.0, rtol or 0.0, ulp or 0.0) if asked else None

    def one(_: str, program: Program) -> tuple[int, dict[str, Any]]:
        program = with_replacements(program, replacements)
        bounds = _bounds(program, given)
        compared: list[Compared] = []
        for done in _iterations(program, make, inputs, iterations, bounds, patience, limit, xla_flags):
            compared.append(done)
            if not as_json:
                if iterations > 1:
                    say(f"iteration {len(compared)}: {done.values.origin}")
                print_iteration(done.verdict, done.results, bounds, show_all)
        if not as_json:
            last = compared[-1]
            print_stacks(last.runs, last.refusals, last.stopped)
            for note in _notes(last, inputs, stacks, given, _foreign(handlers)):
                say(wrapped(note))
            _print_verdict(compared)
        status = heaviest(c.status for c in compared)
        return status, to_json(compared, bounds, given is not None)

    return each_program("diff", modules, one, as_json)


def _bounds(program: Program, given: Tolerance | None) -> Sequence[Bound | Tolerance]:
    from ..differential.bounds import bounds_of
    from ..formats.program import result_leaves

    return bounds_of(program.module) if given is None else [given] * len(result_leaves(program.module))


def _on_stacks(
    names: Sequence[str], flags: Mapping[str, str | None], host_program: str, debug: str | None
) -> Mapping[str, Make]:
    """The stacks that run a plan of ours share it."""
    from ..migration.compile import Plans
    from ..migration.stacks import prepare

    plans = Plans()
    usual = partial(prepare, host_program=host_program, plans=plans)
    if debug:
        from ..migration.checked import NOT_COMPILED, prepare_checked

        memory = partial(prepare_checked, host_program=host_program, plans=plans)
        return {
            name: partial(usual, name, emitters=flags.get(name))
            if name in NOT_COMPILED
            else partial(memory, stack=name, emitters=flags.get(name))
            for name in names
        }
    return {name: partial(usual, name, emitters=flags.get(name)) for name in names}


def _on_platforms(text: str, emitters: str | None, host_program: str) -> Mapping[str, Make]:
    from ..migration.platforms import parse_platforms, prepare_on_platform

    names = parse_platforms(text)
    return {name: partial(prepare_on_platform, name, emitters=emitters, host_program=host_program) for name in names}


def _iterations(
    program: Program,
    make: Mapping[str, Make],
    inputs: Inputs,
    count: int,
    bounds: Sequence[Bound | Tolerance],
    patience: float,
    limit: float | None,
    xla_flags: str | None,
) -> Iterator[Compared]:
    """Each iteration, compared. A stack that refuses the program once is not asked again."""
    from ..differential.conductor import Conductor, Refused, judged

    @contextmanager
    def around(name: str) -> Iterator[Callable[[str], object]]:
        try:
            with Watch() as watch, limited(limit):
                yield lambda step: watch.doing(f"{name} {step}")
        except OverLimit:
            raise Refused(f"no answer within {limit:g} s (--limit gives it more)") from None

    conductor = Conductor(program, make, around)
    for number in range(count):
        values = inputs.values(program, number)
        runs = conductor.runs(values.inputs)
        results: dict[str, Sequence[np.ndarray]] = {name: run.results for name, run in runs.items()}
        if values.expected is not None:
            results["golden"] = values.expected
        verdict = None
        if len(results) > 1:
            with Watch() as watch:
                watch.doing("the results are judged")
                verdict = judged(program.module, values.inputs, results, bounds, patience, runs, xla_flags)
        yield Compared(values, runs, dict(conductor.refusals), results, verdict, dict(conductor.stopped))


def _notes(
    last: Compared, inputs: Inputs, stacks: str | None, given: Tolerance | None, has_handlers: bool
) -> list[str]:
    """What was not compared, and by which bounds the rest was, if not by the module's."""
    from ..backends.xla import installed

    notes = [f"{name}: {text}" for name, text in (*last.refusals.items(), *last.stopped.items())]
    if not stacks and installed() and has_handlers:
        notes.append("xla: not compared, it has no --handlers (--stacks names it)")
    if not stacks and not installed():
        notes.append(f"xla: not compared, jaxlib is not installed ({adding('xla')})")
    if inputs.file is not None and last.values.expected is None:
        notes.append(f"golden: not compared, {inputs.file} holds no out0, …")
    if given is not None:
        notes.append(f"bounds: as given, {given}; the bounds of the module itself were not used")
    return notes


def _foreign(handlers: Sequence[str]) -> bool:
    """Whether any of the given handlers is one that XLA does not have."""
    return any(spec != "jaxlib" for spec in handlers)


def _print_verdict(compared: Sequence[Compared]) -> None:
    if len(compared) == 1:
        say(wrapped(f"verdict: {compared[0].sentence}"))
        return
    wrong = [n for n, c in enumerate(compared, 1) if c.status]
    if not wrong:
        say(wrapped(f"verdict: {compared[0].sentence} in all {len(compared)} iterations"))
    for n in wrong:
        say(wrapped(f"verdict of iteration {n}, on {compared[n - 1].values.origin}: {compared[n - 1].sentence}"))
