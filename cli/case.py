"""The argument CASE of `reduce` and `bisect`: the folder of a finding, or any MODULE, with the stacks to run it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .params import MODULE, patience_option
from .switches import switch_options, switched

if TYPE_CHECKING:
    from ..differential.finding import Finding


def case_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """CASE, --stacks, --seed, --exact, --patience, --without-form and --without-rewrite."""
    command = switch_options(command)
    for option in (
        patience_option,
        click.option("--exact", is_flag=True, help="Compare over finite fields, without bounds (docs/exact.md)."),
        click.option("--seed", type=click.IntRange(0), metavar="S", help="Seed of inputs, in place of those of CASE."),
        click.option(
            "--stacks",
            metavar="A:B:…",
            help="Stacks with colons between them: evaluator, optimized, xla, or flags such as mlir,reduce=legacy. "
            "[default: those of the finding, else evaluator:legacy:mlir, and XLA's for a folder of its kernels]",
        ),
        click.argument("spec", metavar="CASE", type=MODULE),
    ):
        command = option(command)
    return command


def load_case(
    spec: str,
    stacks: str | None,
    seed: int | None,
    patience: float,
    exact: bool = False,
    without_form: tuple[str, ...] = (),
    without_rewrite: tuple[str, ...] = (),
) -> Finding:
    """The case. Raises InputError, ParseError, VerificationError or FlagError."""
    from ..differential.finding import CASE_FILE, case_of, read_finding
    from ..migration.flags import Flags
    from ..migration.programs import load_program
    from ..migration.stacks import STACKS

    names = tuple(s.strip() for s in stacks.split(":") if s.strip()) if stacks else None
    commas = [name.strip() for name in (stacks or "").split(",")]
    if len(commas) > 1 and all(name in STACKS for name in commas):
        raise click.UsageError(f"--stacks has colons between stacks here: {':'.join(commas)}")
    for name in names or ():
        if name not in STACKS:
            Flags.parse(name)
    if names is not None and len(set(names)) < 2:
        raise click.UsageError("--stacks needs two stacks or more to compare")
    if (Path(spec) / CASE_FILE).is_file() and seed is None:
        case = read_finding(Path(spec))
    else:
        case = case_of(load_program(spec), seed=seed)
    exact = exact or case.setting.exact
    setting = switched(replace(case.setting, budget=patience, exact=exact), without_form, without_rewrite)
    case = replace(case, setting=setting)
    return case if names is None else replace(case, stacks=names)
