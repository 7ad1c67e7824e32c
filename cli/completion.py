"""`testbed completion SHELL`: the script that makes a shell complete the command's words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_TESTBED_COMPLETE"
"""The shell asks the command for completions by calling it with this variable set."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print the completion script of SHELL: bash (4.4 or newer), zsh or fish. docs/completion.md says where it goes."""
    from .main import testbed

    kind = get_completion_class(shell)
    assert kind is not None, f"click completes no {shell}"
    click.echo(kind(testbed, {}, "testbed", VARIABLE).source())
    return 0
