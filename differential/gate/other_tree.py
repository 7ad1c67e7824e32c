"""The stacks of another checkout, judged by this one's gate: its programs, inputs, oracle and bounds.

The other checkout runs in a process of its own, which takes HLO text and arrays and gives results; it needs only what
every checkout of the testbed has: `testbed.compile(module, stack)` and `execute`.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ...evaluator.evaluator import evaluate
from ...formats.text.printer import print_module
from ...hlo.errors import InputError
from ..filled_inputs import filled_inputs
from ..outcome import OutcomeKind, Run, RunKind, concluded
from .campaign import INPUTS, Subject, subject
from .digests import ROOT, own_modules
from .drawn import MOST_FINDINGS

WORKER = """
import importlib.util, pickle, sys
from pathlib import Path
root, ours, answers = Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer
spec = importlib.util.spec_from_file_location("testbed", root / "__init__.py", submodule_search_locations=[str(root)])
testbed = sys.modules["testbed"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(testbed)
import numpy, ml_dtypes
testbed.set_threads(1)
while True:
    try:
        text, stack, inputs = pickle.load(ours)
    except EOFError:
        break
    try:
        made = testbed.compile(testbed.parse(text), stack, testbed.CompileOptions(cache=None))
        answer = [[numpy.array(x) for x in made.execute(each)] for each in inputs]
    except testbed.UnsupportedError as error:
        answer = ("refused", str(error))
    except Exception as error:
        answer = ("failed", type(error).__name__ + ": " + str(error))
    pickle.dump(answer, answers)
    answers.flush()
"""


class OtherTree:
    """A process that runs another checkout's stacks; it is started again after its death."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, text: str, stack: str, inputs: Sequence[Sequence[np.ndarray]]) -> list[Run]:
        """The run of a program on each of several inputs."""
        if self._process is None:
            command = [sys.executable, "-P", "-c", WORKER, str(self.root)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert self._process.stdin is not None and self._process.stdout is not None
            pickle.dump((text, stack, [list(each) for each in inputs]), self._process.stdin)
            self._process.stdin.flush()
            answer: Any = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError):
            status = self.close()
            return [Run(RunKind.CRASHED, reason=f"its process ended with status {status}")]
        if isinstance(answer, tuple):
            return [Run(RunKind(answer[0]), reason=answer[1])]
        return [Run(RunKind.RAN, tuple(each)) for each in answer]

    def close(self) -> int:
        """End the process: its exit status."""
        if self._process is None:
            return 0
        self._process.kill()
        status = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None
        return status


@contextmanager
def tree_of(given: str) -> Iterator[Path]:
    """The checkout that a folder is, or one of a revision of git for as long as the block runs."""
    if Path(given).is_dir():
        yield Path(given).resolve()
        return
    with TemporaryDirectory() as folder:
        place = Path(folder) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        made = subprocess.run([*git, "add", "--detach", "--quiet", str(place), given], capture_output=True, text=True)
        if made.returncode:
            why = made.stderr.strip().splitlines()[-1:] or ["git failed"]
            raise InputError(f"no folder and no revision {given!r}: {why[0]}", remedy="give one of them")
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def subjects(unit: str, dtypes: str, stacks: Sequence[str], programs: int) -> Iterator[Subject]:
    """The row's own programs, then those that are drawn for it."""
    for number, module in enumerate(own_modules(unit, dtypes)):
        yield Subject(f"own case {number}", module, (filled_inputs(module, "random", number),))
    for seed in range(programs):
        yield subject(unit, dtypes, seed, stacks)


def refusals(tree: OtherTree, unit: str, dtypes: str, stacks: Sequence[str], cases: int) -> tuple[int, list[str]]:
    """(How many cases of a row ran, a sentence for each program that is wrong on the other checkout's stacks)."""
    count, wrong = 0, list[str]()
    for case in subjects(unit, dtypes, stacks, -(-cases // INPUTS)):
        text = print_module(case.module)
        runs = {stack: tree.run(text, stack, case.inputs) for stack in stacks}
        for number, inputs in enumerate(case.inputs):
            found = {stack: made[min(number, len(made) - 1)] for stack, made in runs.items()}
            with np.errstate(all="ignore"):
                expected = Run(RunKind.RAN, tuple(evaluate(case.module, inputs)))
                judged = concluded(case.module, inputs, {"evaluator": expected, **found})
            count += judged.kind is not OutcomeKind.ALL_REFUSE
            if judged.is_finding:
                wrong.append(f"{case.name}: {judged.sentence}")
                break
        if len(wrong) >= MOST_FINDINGS:
            break
    return count, wrong
