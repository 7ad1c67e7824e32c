"""Runs child processes and ends those that take too long or too much memory: a bad workload is a line, not the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POLL = 0.05
"""Seconds between two looks at a child."""

START = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
"""Runs a module with this process's import path, also where the package is not installed."""


@dataclass
class Outcome:
    """What a child said, and what ended it. ended: None if it ended well, else the reason in words."""

    events: list[dict[str, Any]] = field(default_factory=list)
    ended: str | None = None

    @property
    def stage(self) -> str:
        """The stage that the child was in at its end."""
        return next((e["stage"] for e in reversed(self.events) if "stage" in e), "start")


def command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command line that runs a module of this package in a new Python."""
    return [sys.executable, "-c", START, json.dumps(sys.path), module, *arguments]


def run(
    arguments: Sequence[str], request: str, limit: float, memory: int, environ: Mapping[str, str] | None = None
) -> Outcome:
    """Run a command that reads one line and prints a JSON object a line. limit: seconds. memory: resident bytes.
    environ: its environment; None for this process's.

    The child has its own process group: Ctrl-C reaches this process only, which then ends the group.
    """
    outcome = Outcome()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            env=environ,
        )
        reader = threading.Thread(target=_read, args=(process, outcome.events), daemon=True)
        reader.start()
        try:
            assert process.stdin is not None
            try:
                process.stdin.write(request + "\n")
                process.stdin.close()
            except BrokenPipeError:
                outcome.ended = "ended at once"  # its exit status says more, below
            outcome.ended = _watch(process, limit, memory) or outcome.ended
        finally:
            _end(process)
            reader.join(5)
        if outcome.ended is None and process.returncode != 0:
            outcome.ended = _cause(process.returncode, errors)
    return outcome


def _read(process: subprocess.Popen[str], events: list[dict[str, Any]]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            return  # cut off in the middle: the child is dead
    process.stdout.close()


def _watch(process: subprocess.Popen[str], limit: float, memory: int) -> str | None:
    """Wait for the child's end. The reason why it must be ended, if there is one."""
    end = time.monotonic() + limit
    while True:
        try:
            process.wait(POLL)
            return None
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                return f"no answer within {limit:g} s"
            if _resident(process.pid) > memory:
                return f"took more than {memory / 2**30:g} GiB of memory"


def _resident(pid: int) -> int:
    """Resident bytes of a process; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _end(process: subprocess.Popen[str]) -> None:
    """End the child and whatever it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return_code = process.poll()  # it has ended, and left nothing behind
        assert return_code is not None
        return
    process.wait()


def _cause(status: int, errors: Any) -> str:
    """What ended a child, with the last line that it wrote to stderr."""
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - 4000))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    what = f"killed by signal {-status} ({_signal_name(-status)})" if status < 0 else f"exited with status {status}"
    return f"{what}: {lines[-1].strip()[:200]}" if lines else what


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
