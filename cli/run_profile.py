"""`testbed run --profile`: the program compiled with a profile, and the table of its steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..formats.program import Program
    from ..migration.stacks import Prepared
    from ..profiling.profile import Profile


def prepare_profiled(program: Program, emitters: str, red_zones: bool, host_program: str) -> Prepared:
    """Compile a program whose steps note their times."""
    from ..backends.base import CompileOptions
    from ..migration import Flags
    from ..migration.compile import compile_program
    from ..migration.stacks import Prepared

    start = time.perf_counter()
    options = CompileOptions(red_zones=red_zones, profile=True, host_program=host_program)
    executable = compile_program(program, Flags.parse(emitters), options)
    return Prepared(executable.execute, time.perf_counter() - start, tuple(executable.kernels), executable)


def print_profile(profile: Profile) -> None:
    """A line for each step, and what they are of."""
    from ..benchmarks.tables import left, right
    from ..profiling.profile import HEAD

    say()
    columns = [*map(left, HEAD[:2]), *map(right, HEAD[2:])]
    say(table(columns, profile.cells()))
    for line in profile.summary().splitlines():
        say(wrapped(line))
