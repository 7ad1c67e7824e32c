"""`--cpu`: compile as for another processor; `--threads`: how many may run a kernel; `--cc`: the C compiler.

TESTBED_CPU, TESTBED_THREADS and CC stand for them, the first two in the tests too.
"""

from __future__ import annotations

from functools import partial

import click

from ..codegen.metadata import METADATA, assume_metadata, assumed_metadata, metadata_of
from ..codegen.options import assume_host, assumed_host
from ..codegen.threads import set_threads, threads


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


def metadata_option() -> click.Option:
    """The option of subcommands that compile in this process; it holds until the subcommand ends."""
    return click.Option(
        ["--metadata"],
        envvar="TESTBED_METADATA",
        metavar="NAMES",
        expose_value=False,
        callback=_assume_metadata,
        help=f"What kernels tell LLVM: all, none, default, or of {', '.join(METADATA)}. Also TESTBED_METADATA.",
    )


def _assume_metadata(context: click.Context, parameter: click.Parameter, names: str | None) -> None:
    if names is not None:
        context.call_on_close(partial(assume_metadata, assumed_metadata()))
        assume_metadata(metadata_of(names))


def threads_option() -> click.Option:
    """The option of every subcommand that runs programs; it holds until the subcommand ends."""
    return click.Option(
        ["--threads"],
        type=click.IntRange(1),
        envvar="TESTBED_THREADS",
        metavar="N",
        expose_value=False,
        callback=_set_threads,
        help="Let N threads work at a kernel (default: one a processor). All give equal bits. Also TESTBED_THREADS.",
    )


def _set_threads(context: click.Context, parameter: click.Parameter, count: int | None) -> None:
    if count is not None:
        context.call_on_close(partial(set_threads, threads()))
        set_threads(count)


def cc_option() -> click.Option:
    """The option of every subcommand that compiles C; it holds until the subcommand ends."""
    return click.Option(
        ["--cc"],
        envvar="CC",
        metavar="PROG",
        expose_value=False,
        callback=_set_compiler,
        help="The C compiler of the stack and the platform c (default: gcc, clang or tcc). Also CC.",
    )


def _set_compiler(context: click.Context, parameter: click.Parameter, name: str | None) -> None:
    if name:
        from ..codegen.c_compiler import chosen_c_compiler, set_c_compiler

        context.call_on_close(partial(set_c_compiler, chosen_c_compiler()))
        set_c_compiler(name)
