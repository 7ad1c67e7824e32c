"""`testbed test`: all tests, through `bazel test //...` where Bazel is found and through pytest otherwise."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run all tests; ARGUMENTS go to the runner."""
    from ..tools.run_tests import main

    return main(list(arguments))
