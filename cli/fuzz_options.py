"""What `testbed fuzz` draws from: its options as one value, which a campaign keeps so that --resume draws the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from shlex import join
from typing import TYPE_CHECKING, Any

import click

from ..hlo.errors import InputError
from .params import FILE, NameList

if TYPE_CHECKING:
    from ..differential.campaign.task import Orders


@dataclass(frozen=True)
class Profile:
    """seconds: of a run; instructions: of an entry computation at most."""

    seconds: float
    instructions: int


PROFILES = {"ci": Profile(20, 8), "dev": Profile(300, 12), "campaign": Profile(4 * 3600, 24)}


@dataclass(frozen=True)
class Options:
    """The options of what is drawn, by their names on the command line, as they were given."""

    profile: str = "dev"
    ops: str | None = None
    dtypes: str | None = None
    stacks: str = "evaluator,legacy,mlir"
    no_mixtures: bool = False
    optimized: int = 20
    checked: int = 25
    exact: int = 10
    focus: str | None = None
    corpus: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def resumed(self, stored: dict[str, Any] | None, given: Sequence[str]) -> Options:
        """The options of a campaign that goes on: its own. given: names of those on the command line.

        Raises click.UsageError if one of these has another value there.
        """
        if stored is None:  # of a version that kept none
            return self
        try:
            kept = Options(**stored)
        except TypeError:
            raise InputError("the options of the campaign are of another version", remedy="begin another one") from None
        for name in given:
            if getattr(kept, name) != getattr(self, name):
                raise click.UsageError(
                    f"{_flag(name)}: the campaign was begun with {getattr(kept, name)!r}; leave it out, or begin"
                    " another campaign with -o"
                )
        return kept

    def again(self) -> str:
        """The command that runs a blob of these options again, up to the blob."""
        usual = Options()
        given = [f.name for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)]
        words = ([_flag(n)] if n == "no_mixtures" else [_flag(n), str(getattr(self, n))] for n in given)
        return join(["./testbed", "fuzz", *chain(*words), "--blob"])

    def orders(self) -> Orders:
        """What tasks are drawn from. Raises click.UsageError for unknown names, InputError for an unfit corpus."""
        from ..differential.campaign.task import Orders
        from ..differential.generate.corpus import read_corpus
        from ..differential.generate.program import Limits
        from ..differential.generate.values import DRAWN
        from ..hlo.dtypes import BY_NAME
        from ..hlo.opcodes import Op
        from ..migration.stacks import STACKS, parse_stacks

        names = parse_stacks(self.stacks, list(STACKS))
        if len(names) < 2:
            raise click.UsageError("--stacks needs two stacks or more to compare")
        ops = frozenset(map(Op, names_of("--ops", self.ops, ops_drawn()))) if self.ops is not None else None
        wanted = names_of("--dtypes", self.dtypes, dtypes_drawn()) if self.dtypes is not None else None
        dtypes = tuple(BY_NAME[d] for d in wanted) if wanted is not None else DRAWN
        focus = frozenset(map(Op, names_of("--focus", self.focus, ops_drawn()))) if self.focus is not None else None
        if focus is not None and ops is not None and not focus & ops:
            raise click.UsageError("--focus: none of these opcodes is among those of --ops")
        limits = Limits(PROFILES[self.profile].instructions, ops=ops, dtypes=dtypes, focus=focus)
        if self.corpus is not None:
            read_corpus(self.corpus)
        return Orders(limits, names, not self.no_mixtures, self.optimized, self.checked, self.exact, self.corpus)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def ops_drawn() -> list[str]:
    from ..differential.generate.table import GROW

    return [op.value for op in GROW]


def dtypes_drawn() -> list[str]:
    from ..differential.generate.values import DRAWN

    return [dtype.value for dtype in DRAWN]


USUAL = Options()


def drawing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of Options."""
    for option in reversed(
        (
            click.option(
                "--profile",
                type=click.Choice(list(PROFILES)),
                default=USUAL.profile,
                show_default=True,
                help="ci: seconds, small programs; dev: minutes; campaign: hours, larger programs.",
            ),
            click.option(
                "--ops", type=NameList(ops_drawn), metavar="OP,…", help="Draw only these opcodes, and what they need."
            ),
            click.option(
                "--focus",
                type=NameList(ops_drawn),
                metavar="OP,…",
                help="Draw each program for one of these opcodes at least.",
            ),
            click.option(
                "--dtypes",
                type=NameList(dtypes_drawn),
                metavar="TYPE,…",
                help="Draw only these element types, pred and s32.",
            ),
            click.option(
                "--stacks",
                default=USUAL.stacks,
                show_default=True,
                help="Stacks to compare, from evaluator, optimized, legacy, mlir, xla, xla-old, xla-new. Of legacy and "
                "mlir, mixtures are drawn too.",
            ),
            click.option(
                "--corpus", metavar="DIR", type=FILE, help="Edit modules of this folder, too, in two of five programs."
            ),
            click.option("--no-mixtures", is_flag=True, help="Draw no mixtures of legacy and mlir."),
            click.option(
                "--optimized",
                type=click.IntRange(0, 100),
                default=USUAL.optimized,
                show_default=True,
                metavar="PERCENT",
                help="Programs whose code LLVM optimises. The others are made without its optimiser, which is faster.",
            ),
            click.option(
                "--checked",
                type=click.IntRange(0, 100),
                default=USUAL.checked,
                show_default=True,
                metavar="PERCENT",
                help="Programs whose kernels run in the checking mode, with junk where nothing was written.",
            ),
            click.option(
                "--exact",
                type=click.IntRange(0, 100),
                default=USUAL.exact,
                show_default=True,
                metavar="PERCENT",
                help="Programs that are compared over finite fields, without bounds (docs/exact.md).",
            ),
        )
    ):
        command = option(command)
    return command


def given_names(context: click.Context) -> list[str]:
    """The names of Options that are on the command line."""
    told = click.core.ParameterSource.COMMANDLINE
    return [f.name for f in fields(Options) if context.get_parameter_source(f.name) is told]


def names_of(option: str, text: str, known: Sequence[str]) -> list[str]:
    """The names in a list with commas. Raises click.UsageError for an unknown one or none."""
    import difflib

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known[:8])}, …"
            raise click.UsageError(f"{option}: {name!r} is not among them ({hint})")
    if not names:
        raise click.UsageError(f"{option}: give a name or more")
    return names
