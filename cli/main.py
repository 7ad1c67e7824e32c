"""Entry point of the `testbed` command. Finds the subcommand and turns every error into one line and an exit status.

Status 0: done, and all results agree; 1: done, but something disagrees or failed; 2: bad input or usage; 130: Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module

import click

from .. import __version__
from ..hlo.errors import ParseError, TestbedError
from .output import make_safe
from .processor import cpu_option

COMMANDS = {
    "diff": "Compile on both stacks, run, and compare with the evaluator (and XLA:CPU where jaxlib is installed).",
    "run": "Run a module and print or save its results.",
    "buffers": "Print a module's buffer assignment; plot its arena over time.",
    "show": "Print a module's opcodes, costs and largest buffers; draw its data flow.",
    "stages": "Write every IR stage of both stacks to a folder.",
    "opt": "Run HLO passes on a module and print it, with time and counts per pass.",
    "conform": "Run a conformance corpus on chosen stacks.",
    "bench": "Time a module on several stacks, interleaved.",
    "test": "Run all tests, through Bazel if it is installed.",
    "setup": "Make or complete the environment in .venv. The first call of any command also does this.",
}
"""Subcommand → its line in --help. cli/NAME.py is imported only when the subcommand runs, so that --help stays fast."""

COMPILING = frozenset({"diff", "run", "buffers", "stages", "opt", "conform", "bench"})
"""Subcommands with --cpu."""


class LazyGroup(click.Group):
    """A click group that imports a subcommand on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"..cli.{cmd_name}", __package__).command
        if cmd_name in COMPILING and not any(p.name == "cpu" for p in command.params):
            command.params.append(cpu_option())
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="testbed %(version)s")
def testbed() -> None:
    """Run HLO through two code-generation stacks, side by side.

    A MODULE is a file with HLO text, StableHLO (.mlir, .mlirbc) or an XLA proto (.pb, .pbtxt), a folder with
    module.hlo and io.npz, or - for standard input.
    """


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status. Errors are printed on stderr."""
    make_safe(sys.stdout, sys.stderr)
    try:
        status = testbed.main(args=argv, prog_name="testbed", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        return _complain(_usage(error))
    except click.ClickException as error:
        return _complain(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        click.echo("testbed: interrupted", err=True)
        return 130
    except ParseError as error:
        return _complain(str(error), error.snippet())
    except TestbedError as error:
        return _complain(str(error))
    except MemoryError as error:  # numpy's says the size, shape and type of the array
        array = f": {error}" if str(error) else ""
        return _complain(f"out of memory{array} (testbed show MODULE lists the largest arrays; or use fewer --jobs)")
    except RecursionError:
        return _complain("the module nests too deep (flatten its tuples or computations)")
    except BrokenPipeError:  # the reader of our output is gone: print nothing
        _drop_output()
        return 1
    except OSError as error:
        if error.errno not in FULL:
            raise
        _drop_output()
        return _complain(f"cannot write the output: {error.strerror} (make room, or write elsewhere)")


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Error numbers of a file, disk or device that accepts no more data."""


def _drop_output() -> None:
    """Keep the interpreter from reporting an error at exit about output that cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: click.UsageError) -> str:
    where = error.ctx.command_path if error.ctx else "testbed"
    return f"{error.format_message().rstrip('.').replace(chr(10), ' ')} (see {where} --help)"


def _complain(message: str, snippet: str | None = None) -> int:
    click.echo(f"testbed: error: {message}", err=True)
    if snippet:
        click.echo(snippet, err=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
