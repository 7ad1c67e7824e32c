"""`--cpu`: compile as for another processor. TESTBED_CPU stands for it, in the tests too."""

from __future__ import annotations

from functools import partial

import click

from ..codegen.options import assume_host, assumed_host


def cpu_option() -> click.Option:
    """The option of every subcommand that compiles; it holds until the subcommand ends."""
    return click.Option(
        ["--cpu"],
        envvar="TESTBED_CPU",
        metavar="CPU",
        expose_value=False,
        callback=_assume,
        help="Make code for x86-64-v2, x86-64-v3 or x86-64-v4 instead of this machine (host). Also TESTBED_CPU.",
    )


def _assume(context: click.Context, parameter: click.Parameter, cpu: str | None) -> None:
    if cpu is not None:
        context.call_on_close(partial(assume_host, assumed_host()))
        assume_host(cpu)
