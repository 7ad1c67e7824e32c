"""The process of child.py: runs cases, one request after the other, and says before each stack which one it is."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

import numpy as np

from ..formats.text.parser import parse_module
from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Module
from ..hlo.verify.verifier import verify
from .exact_outcome import exact_outcome
from .outcome import Outcome, Run, concluded, runs_of
from .patience import Patience
from .setting import Setting

Say = Callable[[str, object], None]


def serve(descriptor: int) -> None:
    """Answer requests until the other side is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    connection: Connection = Connection(descriptor)
    memory, begin = connection.recv()
    _limit(memory)
    if (start := pickle.loads(begin)) is not None:
        start()
    connection.send(("ready", None))
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            if callable(request[0]):
                connection.send(("answer", request[0](*request[1])))
            else:
                connection.send(("outcome", _outcome(lambda *said: connection.send(said), *request)))
        except TestbedError as error:
            connection.send(("error", InputError(str(error))))


def _outcome(
    say: Say,
    module: str | Module,
    inputs: Sequence[np.ndarray],
    stacks: Sequence[str],
    setting: Setting,
    known: dict[str, Run],
    patience: Patience,
    wanted: Outcome | None,
) -> Outcome | None:
    """The outcome. known: runs that ended a process before this one. wanted: None as soon as it cannot be like this."""
    if isinstance(module, str):
        module = parse_module(module)
    verify(module)
    if setting.exact:
        return exact_outcome(module, stacks, setting, patience)
    runs: dict[str, Run] = {}
    on_limit = lambda stack, seconds: say("begins", (stack, seconds))  # noqa: E731
    for stack, run in runs_of(module, inputs, stacks, setting, patience, known, on_limit):
        runs[stack] = run
        if wanted is not None and not wanted.may_have(stack, run):
            return None
    say("begins", ("", 0.0))
    return concluded(module, inputs, runs, setting.budget)


def _limit(memory: int) -> None:
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (memory if hard < 0 else min(memory, hard), hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_the_parent() -> None:
    """stdin is a pipe that nobody writes to: it ends with the parent, also while a stack compiles or runs."""
    os.read(0, 1)
    os._exit(0)
