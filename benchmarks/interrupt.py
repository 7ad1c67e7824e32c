"""Seconds from Ctrl-C to the end of a command, in each of its phases.

Run: .venv/bin/python -m testbed.benchmarks.interrupt [--rounds N] [--bound SECONDS]
Starts each command on work that would take minutes, waits until the phase has begun, sends SIGINT to the process group,
as a terminal does, and exits 1 if a command takes longer than the bound to end, or ends otherwise than with status 130
and one line.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .parse import generate

ROOT = Path(__file__).absolute().parents[1]

KERNEL = """HloModule kernel
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  s = f32[] parameter(0)
  i = f32[1048576,262144]{1,0} iota(), iota_dimension=1
  w = f32[1048576,262144]{1,0} broadcast(s), dimensions={}
  m = f32[1048576,262144]{1,0} multiply(i, w)
  t = f32[1048576,262144]{1,0} sine(m)
  ROOT r = f32[1048576]{0} reduce(t, s), dimensions={1}, to_apply=add
}
"""
"""One kernel of 2^38 sines, without an array that large."""

LOOP = """HloModule loop
condition {
  p = s32[] parameter(0)
  ROOT c = pred[] constant(true)
}
body {
  p = s32[] parameter(0)
  three = s32[] constant(3)
  square = s32[] multiply(p, p)
  ROOT s = s32[] add(square, three)
}
ENTRY e {
  p = s32[] parameter(0)
  ROOT w = s32[] while(p), condition=condition, body=body
}
"""

PRODUCT = """HloModule product
ENTRY e {
  x = s64[4000,4000]{1,0} parameter(0)
  ROOT y = s64[4000,4000]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """arguments: the command line; MODULE stands for a file with the text. marker: the function, as module:name, whose
    call begins the phase.
    """

    arguments: Sequence[str]
    marker: str
    module: str


COMPILE = "backends.host.compiler:HostCompiler.compile"
RUN = "backends.host.executable:HostExecutable.execute"

PHASES: dict[str, Phase] = {
    "parse": Phase(["show", "MODULE"], "migration.programs:load_program", "big"),
    "compile": Phase(
        ["stages", "MODULE", "--dir", "FOLDER/stages"], "backends.host.compiler:HostCompiler.compile", "large"
    ),
    "kernel": Phase(["run", "MODULE", "--output", "FOLDER/out.npz"], RUN, KERNEL),
    "kernel mlir": Phase(["run", "MODULE", "--emitters", "mlir"], RUN, KERNEL),
    "loop": Phase(["run", "MODULE"], RUN, LOOP),
    "evaluator": Phase(["diff", "MODULE"], "migration.stacks:evaluate", PRODUCT),
    "bench": Phase(["bench", "MODULE"], RUN, KERNEL),
    "conform": Phase(["conform", "FOLDER", "--jobs", "2"], "differential.conformance:run_cases", KERNEL),
}
"""Phase of a command → how to bring it about."""

CHILD = """
import importlib, sys
from pathlib import Path
root, marker = Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(root / "tools/python"))
from pytest_names import import_root
import_root(root)
module, _, name = marker.partition(":")
owner = importlib.import_module("testbed." + module)
*path, name = name.split(".")
for part in path:
    owner = getattr(owner, part)
original = getattr(owner, name)
def begun(*args, **kwargs):
    print("begun", flush=True)
    return original(*args, **kwargs)
setattr(owner, name, begun)
sys.argv[:3] = ["testbed"]
from testbed.cli.start import run
run()
"""


def _module(kind: str) -> str:
    return {"big": lambda: generate(400_000), "large": lambda: generate(4_000)}.get(kind, lambda: kind)()


def begin(phase: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command in `folder` and wait until its phase has begun. It leads a process group of its own."""
    wanted = PHASES[phase]
    module = folder / "module.hlo"
    module.write_text(_module(wanted.module), encoding="utf-8")
    if phase == "conform":
        import numpy as np

        np.savez(folder / "io.npz", in0=np.float32(1), out0=np.zeros(1 << 20, np.float32))
        rows = [{"id": f"case{n}", "hlo": module.name, "golden": "io.npz"} for n in range(8)]
        (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    arguments = [a.replace("MODULE", str(module)).replace("FOLDER", str(folder)) for a in wanted.arguments]
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder)}
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD, str(ROOT), wanted.marker, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
        start_new_session=True,
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    if line != "begun\n":
        raise RuntimeError(f"{phase}: the command printed {line!r} and {child.communicate()[1]!r}")
    return child


def kill(child: subprocess.Popen[str]) -> None:
    """End a command of `begin` and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def workers_of(pid: int) -> list[int]:
    """The worker processes of a command (Linux)."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(number) for number in path.read_text().split()]
    return [pid for pid in found if "spawn_main" in _command_line(pid)]


def runs(pid: int) -> bool:
    """Whether a process exists that is not only waiting to be reaped (Linux)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def seconds_to_end(phase: str, delay: float) -> tuple[float, bool]:
    """Seconds from SIGINT, `delay` seconds after the phase began, to the end; and whether it ended as it should."""
    with tempfile.TemporaryDirectory() as folder:
        child = begin(phase, Path(folder))
        try:
            time.sleep(delay)
            start = time.perf_counter()
            os.killpg(child.pid, signal.SIGINT)
            child.wait(timeout=120)
            seconds = time.perf_counter() - start
            good = child.returncode == 130 and child.communicate()[1] == "testbed: interrupted\n"
        finally:
            kill(child)
    return seconds, good


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="commands per phase (3)")
    parser.add_argument("--bound", type=float, default=0.5, metavar="SECONDS", help="longest time to the end (0.5)")
    parser.add_argument("--only", choices=PHASES, help="one phase")
    options = parser.parse_args(argv)
    rng, bad = random.Random(0), False
    for phase in [options.only] if options.only else PHASES:
        ends = [seconds_to_end(phase, rng.uniform(0.1, 2)) for _ in range(options.rounds)]
        wrong = not all(good for _, good in ends)
        slow = max(seconds for seconds, _ in ends) > options.bound
        bad = bad or wrong or slow
        shown = " ".join(f"{seconds:.2f}" for seconds, _ in ends)
        print(f"{phase:<12} {shown} s{'  TOO LONG' if slow else ''}{'  WRONG END' if wrong else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
