"""The cyclic garbage collector is paused during planning and restored afterwards."""

import gc
import threading

import pytest

from ...formats.text.parser import parse_module
from ...hlo.collector import collector_at_rest
from ...passes.pipeline import PipelineOptions
from ...planning.planner import PlanOptions, plan

MODULE = "HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] add(p, p)\n}\n"


def test_it_rests_while_planning_and_starts_again_after():
    seen = []
    plan(parse_module(MODULE), PlanOptions(PipelineOptions()), lambda record: seen.append(gc.isenabled()))
    assert seen and not any(seen) and gc.isenabled()


def test_an_error_starts_it_again():
    with pytest.raises(ValueError, match="no"), collector_at_rest():
        raise ValueError("no")
    assert gc.isenabled()


def test_whoever_switched_it_off_finds_it_off():
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_of_several_threads_starts_it_again():
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collector_at_rest():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    with collector_at_rest():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()
