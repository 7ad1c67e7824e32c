"""The process of the `testbed` command, from its first line: Ctrl-C is one line and status 130 while it still loads."""

import atexit
import os
import signal
import sys
import threading
import warnings
from typing import NoReturn


def start() -> int:
    """Run the command line of this process and return its exit status."""
    open_closed_streams()
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # started in the background by a shell
    if not ignored:
        signal.signal(signal.SIGINT, _leave)  # nothing has been begun yet
    from .interrupt import STATUS, say, seen, watch
    from .main import main
    from .memory_limit import limit_memory

    limit_memory()
    warnings.formatwarning = lambda message, *_, **__: f"testbed: warning: {message}\n"
    if not ignored:
        watch()
    try:
        return main()
    except BaseException:
        # Libraries turn the KeyboardInterrupt into errors of their own.
        if not seen():
            raise
        say()
        return STATUS


def open_closed_streams() -> None:
    """Give standard streams that are closed the null device: else the next file would take their number, and be written
    to. sys.stdin stays None, so that reading it is an error with a reason.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it has the lowest number that is free
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def _leave(number: int, frame: object) -> None:
    os.write(2, b"testbed: interrupted\n")
    os._exit(130)


def run() -> NoReturn:
    """Run the command line and end this process."""
    _end(start())


def _end(status: int) -> NoReturn:
    """Do what is to be done at exit, and leave the memory to the system: to free it piece by piece takes a quarter of a
    second once LLVM and MLIR were used.
    """
    others = (t for t in threading.enumerate() if t is not threading.main_thread())
    try:
        if not all(t.daemon for t in others):
            sys.exit(status)  # waits for them
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(status)  # the reader of a pipe has gone: Python knows what to say
    os._exit(status)


if __name__ == "__main__":
    run()
