"""Run time and compile time of programs on this checkout against another one, such as an earlier commit.

Run: .venv/bin/python -m testbed.benchmarks.against_checkout CHECKOUT [PROGRAM…] [--stacks legacy,mlir] [--rounds 9]
     [--seconds 0.03] [--core N] [--json FILE]
CHECKOUT: a folder made by `git worktree add FOLDER COMMIT`, with a .venv of its own (`./testbed setup` in it). PROGRAM:
folders with a module and io.npz; by default the examples. Each checkout runs in a process of its own, both on one core
and one thread, and they take turns. Ratios are of this checkout to the other: medians of pairs for run time; for
compile time, without a cache, of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean

from ..formats.whole_files import write_whole
from .paired import Ratio, Timing, ratio
from .tables import left, right, text_table

ROOT = Path(__file__).absolute().parents[1]

WORKER = """
import json, sys, time
from pathlib import Path
import testbed
from testbed.benchmarks.paired import race
from testbed.formats.arrays import load_io
from testbed.formats.program import parameter_leaves

def aligned(array):
    import numpy as np
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy

def compiled(folder, stack):
    module = testbed.load(folder)
    arrays, _ = load_io(Path(folder) / "io.npz", parameter_leaves(module), None)
    inputs = [aligned(x) for x in arrays]
    start = time.process_time()
    executable = testbed.compile(module, stack, testbed.CompileOptions(cache=None))
    spent = time.process_time() - start
    results = executable.execute(inputs)
    bounds = [leaf.shape.dims for leaf in executable.outputs]
    outputs = [r if r.shape == bound else None for r, bound in zip(results, bounds)]
    return (lambda: executable.execute(inputs, outputs=outputs)), spent

testbed.set_threads(1)
run = None
for line in sys.stdin:
    request = json.loads(line)
    try:
        if "folder" in request:
            run, answer = compiled(request["folder"], request["stack"])
        else:
            answer = race({"": run}, rounds=1, seconds=request["seconds"])[""].median
    except testbed.TestbedError as error:
        answer = str(error)
    print(json.dumps(answer), flush=True)
"""
"""Uses only what checkouts have had since the suite was written."""


@dataclass(frozen=True)
class Compared:
    """A program on one stack. microseconds: of a run on the other checkout. run, compile: this checkout to that.
    refused: what a checkout said that could not run it; '' if both could.
    """

    name: str
    stack: str
    microseconds: float = 0.0
    run: Ratio | None = None
    compile: float = 0.0
    refused: str = ""


class Worker:
    """A process that runs the code of one checkout."""

    def __init__(self, checkout: Path, core: int) -> None:
        python = checkout / ".venv" / "bin" / "python3"
        if not python.exists():
            raise SystemExit(f"{checkout}: has no .venv; make it by ./testbed setup in that folder")
        self._process = subprocess.Popen(
            [python, "-c", WORKER],
            cwd=checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )

    def ask(self, **request: object) -> float | str:
        """The answer to a request: seconds, or why there are none."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of a checkout ended with status {self._process.wait()}")
        answer: float | str = json.loads(line)
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def workers(other: Path, core: int) -> Iterator[tuple[Worker, Worker]]:
    """Workers of this checkout and of the other."""
    ours = Worker(ROOT, core)
    try:
        theirs = Worker(other, core)
        try:
            yield ours, theirs
        finally:
            theirs.end()
    finally:
        ours.end()


def compared(pair: Sequence[Worker], folder: Path, stack: str, rounds: int, seconds: float) -> Compared:
    """Compile the program in `folder` on both checkouts, and time it `rounds` times on each, in turns."""
    spent = [worker.ask(folder=str(folder), stack=stack) for worker in pair]
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            answer = pair[side].ask(seconds=seconds) if not isinstance(spent[side], str) else spent[side]
            if isinstance(answer, str):
                return Compared(folder.name, stack, refused=answer)
            times[side].append(answer)
    ours, theirs = (Timing(tuple(found)) for found in times)
    ratios = ratio(ours, theirs)
    return Compared(folder.name, stack, theirs.median * 1e6, ratios, float(spent[0]) / float(spent[1]))


def report(rows: Sequence[Compared]) -> str:
    """A table of all rows, and the geometric means of each stack."""
    columns = [left("program"), left("stack"), right("other µs"), left("run [95%]"), right("compile")]
    cells = [
        (x.name, x.stack, f"{x.microseconds:.1f}", str(x.run), f"{x.compile:.2f}")
        if x.run
        else (x.name, x.stack, "-", x.refused, "-")
        for x in rows
    ]
    lines = [text_table(columns, cells)]
    for stack in dict.fromkeys(x.stack for x in rows):
        timed = [(x.run.median, x.compile) for x in rows if x.run and x.stack == stack]
        if timed:
            run, compile_time = (geometric_mean(found) for found in zip(*timed, strict=True))
            lines.append(
                f"{stack}: {len(timed)} programs, geometric means: run time {run:.3f}, compile time {compile_time:.3f}"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("programs", type=Path, nargs="*")
    parser.add_argument("--stacks", default="legacy,mlir")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.03, help="of each timing")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folders = options.programs or sorted(x.parent for x in (ROOT / "examples").glob("*/io.npz"))
    rows = []
    with workers(options.checkout.absolute(), options.core) as pair:
        for folder in folders:
            for stack in options.stacks.split(","):
                rows.append(compared(pair, folder.absolute(), stack, options.rounds, options.seconds))
                print(f"{len(rows)} of {len(folders) * len(options.stacks.split(','))}", end="\r", file=sys.stderr)
    print(report(rows))
    if options.json:
        text = json.dumps([asdict(x) for x in rows], indent=1)
        write_whole(options.json, lambda file: file.write(text.encode()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
