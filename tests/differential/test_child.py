"""The process that runs cases: what crashes, hangs or takes too much memory is one outcome, and the next case runs."""

from __future__ import annotations

import ctypes
import os
import time
from functools import partial

import numpy as np
import pytest

from ...differential import child_worker
from ...differential import outcome as outcomes
from ...differential.child import Child
from ...differential.outcome import Outcome, OutcomeKind, Run, RunKind
from ...differential.setting import Setting
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError

TEXT = "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}\n"
X = [np.arange(4, dtype=np.float32)]
ENDLESS = 600.0


def end_at(stack: str, how: str) -> None:
    """Begin a process in which a stack dies, or stops, whatever the case."""
    execute = outcomes.execute

    def dying(module, inputs, name, *more):
        if name == stack:
            HOW[how]()
        return execute(module, inputs, name, *more)

    outcomes.execute = dying


def loop() -> None:
    while True:
        pass


HOW = {
    "reads address 0": lambda: ctypes.string_at(0),
    "ends": lambda: os._exit(3),
    "aborts": os.abort,
    "sleeps": lambda: time.sleep(ENDLESS),
    "loops": loop,
    "takes memory": lambda: np.ones(1 << 34, np.uint8),
}


def test_outcomes_come_from_one_process():
    with Child() as child:
        for _ in range(2):
            found = child.outcome(TEXT, X)
            assert found.kind is OutcomeKind.AGREE and list(found.runs) == ["evaluator", "legacy", "mlir"]
            assert (found.runs["mlir"].results[0] == -X[0]).all()
        assert child.starts == 1


@pytest.mark.parametrize("how, signal", [("reads address 0", "SIGSEGV"), ("ends", "status 3"), ("aborts", "SIGABRT")])
def test_a_crash_is_blamed_on_its_stack_and_the_others_run(how, signal):
    with Child(partial(end_at, "legacy", how)) as child:
        found = child.outcome(TEXT, X)
        assert found.kind is OutcomeKind.CRASH and found.blamed == ("legacy",)
        assert signal in found.runs["legacy"].reason and signal in found.sentence
        assert found.runs["mlir"].kind is RunKind.RAN and (found.runs["mlir"].results[0] == -X[0]).all()
        assert child.outcome(TEXT, X, ["evaluator", "mlir"]).kind is OutcomeKind.AGREE
        assert child.starts == 2


def test_a_hang_ends_at_the_limit():
    with Child(partial(end_at, "mlir", "sleeps")) as child:
        found = child.outcome(TEXT, X, ["evaluator", "mlir"], limit=2)
        assert found.kind is OutcomeKind.HANG and found.blamed == ("mlir",) and "within 2 s" in found.sentence
        assert child.outcome(TEXT, X, ["evaluator"]).kind is OutcomeKind.AGREE


def test_a_loop_ends_in_its_process():
    with Child(partial(end_at, "mlir", "loops")) as child:
        found = child.outcome(TEXT, X, ["evaluator", "mlir", "legacy"], limit=1)
        assert found.kind is OutcomeKind.HANG and found.blamed == ("mlir",) and "within 1 s" in found.sentence
        assert found.runs["legacy"].kind is RunKind.RAN and child.starts == 1


@pytest.mark.parametrize("host", ["compiled", "interpreted"])
def test_a_loop_of_a_compiled_program_ends_in_its_process(host):
    """It changes its state for some hundred years."""
    with Child() as child:
        setting = Setting(cache=False, host_program=host)
        found = child.outcome(ENDLESS_LOOP, [np.zeros((), np.uint64)], ["legacy", "mlir"], 3, setting)
        assert found.kind is OutcomeKind.HANG and found.blamed == ("legacy", "mlir")
        assert child.outcome(TEXT, X).kind is OutcomeKind.AGREE and child.starts == 1


ENDLESS_LOOP = """HloModule m

on {
  i = u64[] parameter(0)
  most = u64[] constant(18446744073709551615)
  ROOT less = pred[] compare(i, most), direction=LT
}

next {
  i = u64[] parameter(0)
  one = u64[] constant(1)
  ROOT more = u64[] add(i, one)
}

ENTRY e {
  p = u64[] parameter(0)
  ROOT w = u64[] while(p), condition=on, body=next
}
"""


def test_what_cannot_end_alike_is_not_run_to_its_end():
    """mlir would end the process."""
    runs = {"legacy": Run(RunKind.FAILED, reason="no")}
    wanted = Outcome(OutcomeKind.CRASH, ("legacy",), "", runs)
    module = parse_module(TEXT)
    with Child(partial(end_at, "mlir", "ends")) as child:
        assert child.outcome_like(wanted, module, X, ["evaluator", "legacy", "mlir"], 60.0, Setting()) is None
        assert child.outcome(TEXT, X, ["evaluator"]).kind is OutcomeKind.AGREE and child.starts == 1


def judge_slowly(seconds: float) -> None:
    """Begin a process that takes this time to compare results."""
    concluded = child_worker.concluded

    def slow(*arguments):
        time.sleep(seconds)
        return concluded(*arguments)

    child_worker.concluded = slow


def test_the_limit_of_a_stack_is_none_of_the_comparison():
    with Child(partial(judge_slowly, 2)) as child:
        assert child.outcome(TEXT, X, ["evaluator", "legacy"], limit=1).kind is OutcomeKind.AGREE


def test_what_takes_too_much_memory_is_refused():
    with Child(partial(end_at, "mlir", "takes memory"), memory=2 << 30) as child:
        found = child.outcome(TEXT, X, ["evaluator", "mlir"])
    assert found.kind is OutcomeKind.ONE_REFUSES and "memory" in found.sentence


def test_a_finding_is_run_again():
    with Child(partial(end_at, "mlir", "ends")) as child:
        found = child.outcome(TEXT, X, ["evaluator", "mlir"], again=True)
        assert found.kind is OutcomeKind.CRASH and not found.flaky and child.starts == 3


@pytest.mark.parametrize("text, stacks", [("HloModule", ["evaluator"]), (TEXT, ["mlri"])])
def test_a_case_that_is_none_is_an_error_and_the_process_stays(text, stacks):
    with Child() as child:
        with pytest.raises(InputError):
            child.outcome(text, X, stacks)
        assert child.outcome(TEXT, X, ["evaluator"]).kind is OutcomeKind.AGREE and child.starts == 1


def test_closing_ends_the_process():
    child = Child()
    child.outcome(TEXT, X, ["evaluator"])
    pid = child._process.pid
    child.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
