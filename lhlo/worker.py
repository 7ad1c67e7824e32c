"""A child process around MLIR's bytecode reader: bytecode on stdin, `+` and its text or `-` and the message on stdout.

stdin is the length of the dialect's IRDL text (8 bytes, big-endian), that text, and the bytecode. The worker runs as a
file, so that it needs only MLIR. If the bytecode crashes the reader, only this process ends.
"""

import sys


def text_of(dialect: str, code: bytes) -> str:
    """The module as text with its locations. Raises MLIRError."""
    from mlir import ir
    from mlir.dialects import irdl

    with ir.Context(load_on_create_dialects=[]) as context, ir.Location.unknown(context):
        irdl.load_dialects(ir.Module.parse(dialect))
        return ir.Module.parse(code).operation.get_asm(enable_debug_info=True)


def answer(data: bytes) -> bytes:
    """What is written to stdout for what came by stdin."""
    start = 8 + int.from_bytes(data[:8], "big")
    try:
        return b"+" + text_of(data[8:start].decode(), data[start:]).encode("utf-8", "surrogateescape")
    except Exception as error:  # MLIRError, and what the bindings raise of text that is no text
        return b"-" + str(error).encode("utf-8", "replace")


def main() -> int:
    end_with_the_parent()
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read()))
    return 0


def end_with_the_parent() -> None:
    """End when the parent ends, however that happens: damaged bytecode may keep the reader in an endless loop."""
    import ctypes
    import signal

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    sys.exit(main())
