"""Milliseconds of a fresh process that loads a small program from a file, or compiles it, and runs it, against Python
and NumPy alone.

Run: .venv/bin/python -m testbed.benchmarks.load_time [--rounds N] [--host-program KIND]
Contestants take turns, each time in a process of its own; what they share is on disk: caches of objects and of Python's
bytecode, which a first turn fills. The table has medians, minima, and the medians of what a round's time is above that
of `python -c pass` and of `import numpy` in it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ..backends.base import CompileOptions, HostProgramKind
from ..migration.api import compile
from .tables import left, right, text_table

MODULE = """HloModule add
ENTRY main {
  x = f32[2] parameter(0)
  ROOT y = f32[2] add(x, x)
}
"""

PASS, NUMPY = "python -c pass", "import numpy"

LOAD_ALONE = "import sys, testbed; testbed.load_executable(sys.argv[1])"

LOAD = """
import sys
import numpy as np
import testbed
program = testbed.load_executable(sys.argv[1], native_calls=sys.argv[2] == "native")
assert program(np.ones(2, np.float32)).tolist() == [2, 2]
"""

COMPILE = f"""
import sys
import numpy as np
import testbed
program = testbed.compile({MODULE!r}, sys.argv[1])
assert program(np.ones(2, np.float32)).tolist() == [2, 2]
"""

EXEC = "import sys; from testbed.cli.start import run; sys.argv[0] = 'testbed'; run()"


def commands(file: Path) -> dict[str, list[str]]:
    """What each contestant gives to Python. Only a run imports NumPy; native: it also prepares fast calls."""
    return {
        PASS: ["-c", "pass"],
        NUMPY: ["-c", "import numpy"],
        "load_executable": ["-c", LOAD_ALONE, str(file)],
        "the same, and a run": ["-c", LOAD, str(file), "once"],
        "… with native calls": ["-c", LOAD, str(file), "native"],
        "testbed exec": ["-P", "-c", EXEC, "exec", str(file)],
        "compile and run, legacy": ["-c", COMPILE, "legacy"],
        "compile and run, mlir": ["-c", COMPILE, "mlir"],
    }


def measure(contestants: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each contestant's process, by round. Raises CalledProcessError if one fails."""
    os.unsetenv("PYTHONDONTWRITEBYTECODE")  # a process of a user finds the .pyc files of an earlier one
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, arguments in contestants.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            if turn:
                times[name].append((time.perf_counter() - start) * 1e3)
    return times


def table(times: Mapping[str, Sequence[float]]) -> str:
    """A line per contestant."""

    def above(name: str, base: str) -> str:
        return f"{statistics.median(t - b for t, b in zip(times[name], times[base], strict=True)):.1f}"

    rows = [
        (name, f"{statistics.median(t):.1f}", f"{min(t):.1f}", above(name, PASS), above(name, NUMPY))
        for name, t in times.items()
    ]
    heads = [right(head) for head in ("median ms", "min ms", "above pass", "above numpy")]
    return text_table([left(""), *heads], rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="rounds in which each contestant runs (15)")
    parser.add_argument(
        "--host-program",
        default=HostProgramKind.AUTO.value,
        choices=[kind.value for kind in HostProgramKind],
        help="how kernels are called (auto)",
    )
    options = parser.parse_args(argv)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "add.tbx"
        compile(MODULE, options=CompileOptions(host_program=options.host_program)).save(file)
        print(table(measure(commands(file), max(1, options.rounds))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
