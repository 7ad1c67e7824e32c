"""Signals at any moment while MLIR's bindings load: the handler runs, once, and the process lives."""

import signal
import subprocess
import sys
import threading

import pytest

from ...codegen.mlir_import import waiting_signals
from ...hlo.errors import TestbedError

PACKAGE = TestbedError.__module__.partition(".")[0]

LOADING = f"""
import os, signal, sys, time
import {PACKAGE}
def handler(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
start, came = time.perf_counter(), 0
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
try:
    from mlir import ir
    from mlir.dialects import irdl
    from mlir.passmanager import PassManager
except KeyboardInterrupt:
    came = 1
print(came, time.perf_counter() - start)
sys.stdout.flush()
os._exit(0)
"""


def loaded(after: float) -> tuple[int, float]:
    """(Whether the handler ran, seconds) while the bindings loaded. after: seconds from which the signal comes."""
    done = subprocess.run([sys.executable, "-c", LOADING, str(after)], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    came, seconds = done.stdout.split()
    return int(came), float(seconds)


def test_a_signal_at_any_moment_runs_the_handler_and_the_process_lives():
    came, seconds = loaded(0)
    assert not came
    ran = [loaded(seconds * n / 10)[0] for n in range(1, 10)]
    assert any(ran)


def test_each_signal_waits_and_nests():
    came = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    try:
        with waiting_signals():
            with waiting_signals():
                signal.raise_signal(signal.SIGUSR1)
                signal.raise_signal(signal.SIGUSR1)
            assert not came
        assert came == [signal.SIGUSR1]
        signal.raise_signal(signal.SIGUSR1)
        assert came == [signal.SIGUSR1] * 2
        with pytest.raises(ValueError, match="kept"), waiting_signals():
            raise ValueError("kept")
        assert signal.getsignal(signal.SIGINT) is not None
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_another_thread_changes_no_handler():
    usual, seen = signal.getsignal(signal.SIGINT), []

    def look():
        with waiting_signals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [usual]
