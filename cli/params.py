"""Types of the commands' parameters: what their values complete to in a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem


class FileName(click.ParamType[str]):
    """A file's name; `-` and names that do not exist are for the command to judge."""

    def __init__(self, name: str):
        self.name = name

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class NameList(click.ParamType[str]):
    """Names with commas between them, each one of `known()`, which is called for completion only."""

    name = "text"

    def __init__(self, known: Callable[[], Iterable[str]]):
        self.known = known

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        given = set(before.split(","))
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in self.known()
            if name.startswith(last) and name not in given
        ]


def emitters_option(values: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option --emitters of commands that compile; TESTBED_EMITTERS is its default."""
    return click.option(
        "--emitters", envvar="TESTBED_EMITTERS", default="ledger", show_default=True, show_envvar=True, help=values
    )


xla_flags_option = click.option(
    "--xla-flags", metavar="FLAGS", help="XLA's own flags for the stack xla, as in XLA_FLAGS: '--xla_NAME=VALUE …'."
)

host_program_option = click.option(
    "--host-program",
    type=click.Choice(("auto", "compiled", "interpreted")),
    default="auto",
    show_default=True,
    help="How kernels are called: by one native function, or by a table that native code follows.",
)


def _load_handlers(context: click.Context, parameter: click.Parameter, specs: tuple[str, ...]) -> tuple[str, ...]:
    if specs:
        from ..ffi.from_files import load_handlers

        load_handlers(specs)
    return specs


handlers_option = click.option(
    "--handlers",
    multiple=True,
    metavar="X.so|X.py|jaxlib",
    callback=_load_handlers,
    help="Load handlers of custom calls (docs/adding-a-custom-call.md): a library that registers them, or with "
    "X.so:TARGET=SYMBOL,… one that exports them, or a Python file; jaxlib: its own. Repeatable.",
)

patience_option = click.option(
    "--patience",
    type=click.FloatRange(0, min_open=True),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to look for what else the float rules permit, where results differ beyond their bounds.",
)

MODULE = FileName("module")
FILE = FileName("file")


def _stacks() -> Iterable[str]:
    from ..migration.stacks import STACKS

    return STACKS


def _passes() -> Iterable[str]:
    from ..passes.pipeline import PASSES

    return PASSES


def _case_stacks() -> Iterable[str]:
    from ..differential.corpus import ALL_STACKS

    return ALL_STACKS


STACK_LIST, CASE_STACK_LIST, PASS_LIST = NameList(_stacks), NameList(_case_stacks), NameList(_passes)
