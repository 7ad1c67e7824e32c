"""Clocks: they end what works for too long, and nothing behind their block. A run's time grows with the evaluator's."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from ...differential.patience import Patience, TooLong, clock


def work(seconds: float) -> None:
    """Use up processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_block_ends_when_its_time_is_used_up():
    with pytest.raises(TooLong, match=r"no answer within 0\.05 s"), clock() as limited:
        limited.allow(0.05)
        work(60)


def test_the_time_that_was_allowed_last_counts():
    with clock() as limited:
        limited.allow(0.05)
        limited.allow(60)
        work(0.2)
        assert signal.getitimer(signal.ITIMER_PROF)[0] > 10


def test_nothing_is_ended_behind_the_block():
    before = signal.getsignal(signal.SIGPROF)
    with clock() as limited:
        limited.allow(0.05)
    work(0.2)
    assert signal.getsignal(signal.SIGPROF) == before and signal.getitimer(signal.ITIMER_PROF)[0] == 0


def test_a_callback_that_swallows_the_end_is_ended_later():
    with pytest.raises(TooLong), clock() as limited:
        limited.allow(0.05)
        with pytest.raises(TooLong):
            work(60)
        work(60)


def test_a_thread_has_no_clock():
    done = []

    def run():
        with clock() as limited:
            limited.allow(0.01)
            work(0.1)
            done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done


def test_a_run_has_a_time_of_its_own():
    assert Patience(60.0).run(0.5) == 60.0
    assert Patience(60.0, 1.0, 30.0).run(None) == 60.0
    assert Patience(60.0, 1.0, 30.0).run(0.5) == 16.0
    assert Patience(10.0, 1.0, 30.0).run(0.5) == 10.0
