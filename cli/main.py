"""Entry point of the `testbed` command. Finds the subcommand and turns every error into one line and an exit status.

Status 0: done, and all results agree; 1: done, but something disagrees or failed; 2: bad input or usage; 3: whether
results agree is undecided; 130: Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

import click

from .. import __version__
from ..hlo.errors import ParseError, TestbedError
from . import interrupt, json_output
from .cache_limit import cache_option
from .output import make_safe, say
from .processor import cc_option, cpu_option, metadata_option, threads_option

COMPILES = (cpu_option, cache_option, cc_option)
HERE = (*COMPILES, metadata_option)
"""Of those that compile in their own process."""
RUNS = (threads_option,)
"""Options that a subcommand has besides its own."""


class Command(NamedTuple):
    """help: its line in --help. options: COMPILES, RUNS or both."""

    help: str
    options: tuple[Callable[[], click.Option], ...] = ()


COMMANDS = {
    "diff": Command(
        "Compile on both stacks, run, and compare with the evaluator (and XLA:CPU where jaxlib is installed).",
        COMPILES + RUNS,
    ),
    "run": Command("Run a module and print or save its results.", HERE + RUNS),
    "compile": Command("Compile a module to a file that exec runs.", HERE + RUNS),
    "exec": Command("Run a compiled program.", RUNS),
    "aot": Command("Compile a module to an object file and a C header, for programs without Python."),
    "ffi": Command("Build a library of FFI handlers whose bodies are kernels."),
    "inspect": Command("Print what a compiled program holds."),
    "buffers": Command("Print a module's buffer assignment; plot its arena over time.", COMPILES),
    "show": Command("Print a module's opcodes, costs and largest buffers; draw its data flow."),
    "xla": Command("Let jaxlib's old or new emitters compile a module, and list XLA's kernels."),
    "import": Command("List the kernels in a folder that XLA wrote (--xla_dump_to)."),
    "history": Command("Compare XLA's kernels of a module between versions of jaxlib."),
    "convert": Command("Convert a module between HLO text, protos and StableHLO."),
    "platforms": Command("List the back ends, what they can do, and why one cannot be used here.", (cc_option,)),
    "stages": Command("Write every IR stage of both stacks to a folder.", HERE),
    "forms": Command("Print the form of each kernel, and why earlier forms of its stack's table declined.", COMPILES),
    "lhlo": Command("Print a module as LHLO: buffers, kernels and order, as MLIR."),
    "opt": Command("Run HLO passes on a module and print it, with time and counts per pass.", COMPILES),
    "conform": Command("Run a conformance corpus on chosen stacks.", COMPILES + RUNS),
    "fuzz": Command("Draw programs, run them on several stacks, make what differs small.", COMPILES),
    "planted": Command("Plant bugs at run time, and say which of them fuzzing catches, blames and reduces.", COMPILES),
    "exact": Command("Run kernels over a finite field, where both stacks and the HLO agree bit for bit.", COMPILES),
    "exhaustive": Command("Run ops on every input of small types, and compare the stacks.", COMPILES),
    "reduce": Command("Make the module and the inputs of a mismatch small.", COMPILES),
    "bisect": Command("Find the pass, emitter or part that is guilty of a mismatch.", COMPILES),
    "bench": Command("Time a module on several stacks, interleaved.", HERE + RUNS),
    "ab": Command(
        "Compare two stacks on a module, with an interval, compile time and memory; show the history.", HERE + RUNS
    ),
    "profile": Command("Show where a program's time goes, by step, op, stack or source; compare; draw.", HERE + RUNS),
    "jax": Command("Run a program of JAX on this compiler; list its kernels by stack, form and time."),
    "harvest": Command("Collect the kernels of programs, with their share of run time.", COMPILES),
    "toggles": Command("Show and change how far each op has moved to the new emitters; run the gate of a row."),
    "report": Command("Write the board: static pages of the ledger, coverage, speed, findings and profiles."),
    "test": Command("Run all tests, through Bazel if it is installed."),
    "completion": Command("Print what makes a shell complete commands, options and names."),
    "setup": Command("Make or complete the environment in .venv. The first call of any command also does this."),
}
"""The subcommands. cli/NAME.py is imported only when the subcommand runs, so that --help stays fast."""


class Interrupted(Exception):
    """Ctrl-C."""


def _own(name: str) -> click.Command:
    """A subcommand as its file has it."""
    command: click.Command = import_module(f"..cli.{name}", __package__).command
    return command


class LazyGroup(click.Group):
    """A click group that imports a subcommand on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = _own(cmd_name)
        known = {option.name for option in command.params}
        more = (option() for option in COMMANDS[cmd_name].options)
        command.params += [option for option in more if option.name not in known]
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would print an empty line
            raise Interrupted from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="testbed %(version)s")
def testbed() -> None:
    """Run HLO through two code-generation stacks, side by side.

    A MODULE is a file with HLO text, StableHLO (.mlir, .mlirbc), LHLO (.lhlo.mlir, .lhlo.mlirbc) or an XLA proto
    (.pb, .pbtxt), a folder with module.hlo and io.npz, or - for standard input.
    """


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status. Errors go to stderr, and into JSON where that is asked for."""
    make_safe(sys.stdout, sys.stderr)
    arguments = sys.argv[1:] if argv is None else argv
    failure: list[tuple[str, BaseException]] = []
    status = _run(arguments, failure)
    if failure and _asks_for_json(arguments):
        message, error = failure[0]
        json_output.print_document(arguments[0], status, json_output.error_body(message, error))
    return status


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for a document. It may be wrong otherwise."""
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" not in words or words[0] not in COMMANDS:
        return False
    return any(option.name == json_output.NAME for option in _own(words[0]).params)


def _run(arguments: Sequence[str], failure: list[tuple[str, BaseException]]) -> int:
    """Run the command line; an error is printed, appended to `failure` and becomes an exit status."""

    def complain(message: str, error: BaseException, snippet: str | None = None) -> int:
        failure.append((message, error))
        say(f"testbed: error: {message}", err=True)
        if snippet:
            click.echo(snippet, err=True)
        return 2

    try:
        status = testbed.main(args=list(arguments), prog_name="testbed", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        return complain(_usage(error), error)
    except click.ClickException as error:
        return complain(error.format_message(), error)
    except (Interrupted, KeyboardInterrupt, click.Abort) as error:
        failure.append(("interrupted", error))
        interrupt.say()
        return interrupt.STATUS
    except ParseError as error:
        return complain(str(error), error, error.snippet())
    except TestbedError as error:
        return complain(str(error), error)
    except MemoryError as error:  # numpy's says the size, shape and type of the array
        array = f": {error}" if str(error) else ""
        remedy = "testbed show MODULE lists the largest arrays; or use fewer --jobs"
        return complain(f"out of memory{array} ({remedy})", error)
    except RecursionError as error:
        return complain("the module nests too deep (flatten its tuples or computations)", error)
    except BrokenPipeError:  # the reader of our output is gone: print nothing
        _drop_output()
        return 1
    except OSError as error:
        if error.errno not in FULL:
            raise
        _drop_output()
        return complain(f"cannot write the output: {error.strerror} (make room, or write elsewhere)", error)


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Error numbers of a file, disk or device that accepts no more data."""


def _drop_output() -> None:
    """Keep the interpreter from reporting an error at exit about output that cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: click.UsageError) -> str:
    where = error.ctx.command_path if error.ctx else "testbed"
    return f"{error.format_message().rstrip('.').replace(chr(10), ' ')} (see {where} --help)"


if __name__ == "__main__":
    sys.exit(main())
