"""Ctrl-C in each phase of a command: status 130, one line, no file left and no process, also in native code.

The work of each phase would take minutes. How fast the end is, is no test: `python -m testbed.benchmarks.interrupt`.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ...benchmarks import interrupt
from ...cli import interrupt as watching
from ...formats.whole_files import remove_unfinished, unfinished

ROOT = Path(__file__).resolve().parents[2]
LINE = "testbed: interrupted\n"
SOON = 30
"""Seconds within which an interrupted command has to end here; the machine may be busy."""


def preamble() -> str:
    """The first lines of Python in the launcher."""
    text = (ROOT / "testbed").read_text()
    return text[text.rindex("-c '") + 4 : text.index("from testbed.cli.start")]


def test_an_interrupt_while_python_starts_waits_for_the_handler():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # what the launcher does by `env`
    try:
        code = preamble() + "\nwhile True: pass"
        child = subprocess.Popen([sys.executable, "-P", "-c", code], stderr=subprocess.PIPE, text=True)
        child.send_signal(signal.SIGINT)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert (child.communicate(timeout=SOON)[1], child.returncode) == (LINE, 130)


def test_the_handler_stays_while_the_command_loads():
    code = f"""{preamble()}
sys.path.insert(0, {str(ROOT / "tools/python")!r})
from pathlib import Path
from pytest_names import import_root
import_root(Path({str(ROOT)!r}))
import testbed.cli.start
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            print("loading", flush=True)
            while True: pass
sys.meta_path.insert(0, Slow())
testbed.cli.start.start()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "loading\n"
        child.send_signal(signal.SIGINT)
        assert (child.communicate(timeout=SOON)[1], child.returncode) == (LINE, 130)


@pytest.mark.parametrize("phase", interrupt.PHASES)
def test_a_command_ends_in_every_phase(phase, tmp_path):
    child = interrupt.begin(phase, tmp_path)
    try:
        before = {p.name for p in tmp_path.iterdir()}
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=0.5)  # it does not end by itself
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=SOON)
    finally:
        interrupt.kill(child)
    assert (err, child.returncode) == (LINE, 130), out
    left = {p.name for p in tmp_path.iterdir()} - {"cache"}
    assert left <= before and not any(name.startswith(".") for name in left)
    assert not [*(tmp_path / "cache").rglob("*.tmp")]


def test_workers_end_with_the_command_however_it_ends(tmp_path):
    child = interrupt.begin("conform", tmp_path)
    try:
        workers = set[int]()
        while not workers:
            workers = set(interrupt.workers_of(child.pid))
            time.sleep(0.05)
        child.kill()
        child.wait()
        deadline = time.monotonic() + SOON
        while (alive := [pid for pid in workers if interrupt.runs(pid)]) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not alive
    finally:
        interrupt.kill(child)


def test_what_is_being_written_is_removed(tmp_path):
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    (folder / "a").write_text("a")
    file.write_text("part")
    with unfinished(folder), unfinished(file):
        remove_unfinished()
        assert not [*tmp_path.iterdir()]
    file.write_text("whole")
    with unfinished(file):
        file.rename(tmp_path / "whole")
    remove_unfinished()
    assert [p.name for p in tmp_path.iterdir()] == ["whole"]


def test_children_are_found_and_the_resource_tracker_is_spared():
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in watching._children()
        assert resource_tracker._resource_tracker._pid not in watching._children()
        child.kill()
