"""`testbed run --profile`: the program compiled so that it notes something, and the table of its steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..backends.base import CompileOptions
    from ..formats.program import Program
    from ..migration.stacks import Prepared
    from ..profiling.profile import Profile


def prepare_watched(program: Program, emitters: str, options: CompileOptions) -> Prepared:
    """Compile a program that notes something while it runs: the times of its steps, or what checks find."""
    from ..migration import Flags
    from ..migration.compile import compile_program
    from ..migration.stacks import Prepared

    start = time.perf_counter()
    executable = compile_program(program, Flags.parse(emitters), options)
    return Prepared(executable.execute, time.perf_counter() - start, tuple(executable.kernels), executable)


def print_profile(profile: Profile) -> None:
    """A line for each step, and what they are of."""
    from ..benchmarks.tables import left, right
    from ..profiling.profile import WORDS

    say()
    columns = [left(head) if head in WORDS else right(head) for head in profile.head]
    say(table(columns, profile.cells()))
    for line in profile.summary().splitlines():
        say(wrapped(line))
