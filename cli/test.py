"""`testbed test`: runs all tests, through `bazel test //...` if Bazel is installed, otherwise through pytest."""

from __future__ import annotations

import click

from ..hlo.remedies import TESTS


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run all tests. ARGUMENTS are passed to the runner."""
    if not TESTS.is_dir():
        raise click.UsageError("only a checkout has the tests: run ./testbed test in one; this testbed is installed")
    from ..tools.run_tests import main

    return main(list(arguments))
