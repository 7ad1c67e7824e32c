"""The process of the `testbed` command, from its first line: Ctrl-C is one line and status 130 while it still loads."""

import os
import signal
import sys


def start() -> int:
    """Run the command line of this process and return its exit status."""
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # started in the background by a shell
    if not ignored:
        signal.signal(signal.SIGINT, _leave)  # nothing has been begun yet
    from .interrupt import STATUS, say, seen, watch
    from .main import main
    from .memory_limit import limit_memory

    limit_memory()
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


def _leave(number: int, frame: object) -> None:
    os.write(2, b"testbed: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(start())
