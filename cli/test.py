"""`testbed test`: runs all tests, through `bazel test //...` if Bazel is installed, otherwise through pytest."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run all tests. ARGUMENTS are passed to the runner."""
    from ..tools.run_tests import main

    return main(list(arguments))
