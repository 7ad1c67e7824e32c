"""Long runs that Ctrl-C interrupts: on a thread of their own, while the caller waits. docs/adr/0026-ctrl-c.md."""

from __future__ import annotations

import threading
from collections.abc import Callable

LONG = 0.3
"""Estimated seconds from which a run counts as long."""

QUICK = 0.1
"""Seconds of a run, times threads, below which the program no longer counts as long, if each run does the same: then
Ctrl-C comes through in time on a machine that is several times as slow, too.
"""

SHORT = 5e-5
"""Estimated seconds up to which a run keeps the interpreter's lock: to give it up and take it back costs 0.1 µs, and
more where other threads wait for it.
"""

STOPPING = 0.1
"""Seconds to wait for the kernel that is running when Ctrl-C comes."""


def in_main_thread() -> bool:
    """Whether this thread is the one in which Python handles signals."""
    return threading.current_thread() is threading.main_thread()


def run_aside(work: Callable[[], None], stop: Callable[[], None], end: Callable[[], None], keep: object) -> None:
    """Run `work` on another thread and wait for it. Raises what it raises.

    If a signal's handler raises here meanwhile, call `stop`, which lets `work` end soon, and raise that. `work` may go
    on for a while then. end: called after `work` has ended, and never during `stop` or before it. keep: what `work`
    uses without a reference.
    """
    import signal

    errors: list[BaseException] = []
    done = threading.Event()
    ending = threading.Lock()

    def body(keep: object) -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are for the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            work()
        except BaseException as error:
            errors.append(error)
        with ending:
            end()
            done.set()

    try:
        threading.Thread(target=body, args=(keep,), name="run", daemon=True).start()
        done.wait()
    except BaseException:
        with ending:
            if not done.is_set():
                stop()
        done.wait(STOPPING)
        raise
    if errors:
        raise errors[0]
