"""The C records behind handles of buffers, events, memories and executables: 64-bit words, which native code reads."""

from __future__ import annotations

BUFFER = (
    *("refs", "deleted", "data", "bytes", "release", "release_a", "release_b", "owned"),
    *("device", "memory", "type", "rank", "dims", "layout"),
)
"""Words of a buffer; behind them the sizes of its dimensions, to which `dims` points.

refs: 1 for the handle and 1 for each external reference and each run that reads it. data: the address, 0 once released.
release: the function (a, b) that gives the memory back, 0 for none. owned: 1 if a run may overwrite the memory.
"""

EVENT = ("refs", "waiting")
"""Words of an event that may be pending. waiting: the first of a list of callbacks, or READY."""

NODE = ("next", "callback", "argument")
"""Words of a callback in an event's list."""

READY = 1
"""The word `waiting` of an event that is ready."""

LAYOUT = ("text", "size")
"""Words of a memory layout: its serialised form, such as {1,0}."""

MEMORY = ("kind", "kind_size", "device")
"""Words of a memory space that are read natively."""

DEVICE = ("default_memory",)
"""Words of a device."""

EXECUTABLE = (
    *("key", "native", "inputs", "outputs", "input_leaves", "output_leaves", "contexts", "ready", "run"),
    *("copied", "copies", "pairs", "pair_rows", "donated", "donated_rows", "loops", "loop_word", "position"),
    *("replicas", "partitions"),
)
"""Words of an executable. key: its number in Python. native: whether `execute` below takes its runs. ready: number of
contexts; run: the native function. pairs: inputs and results that share memory. donated: inputs that the caller
gives up, by number. loops: number of loops, the first of their words in the control, and that of the position.
"""

INPUT_LEAF = ("mask", "allocation")
"""Words of an input: its alignment - 1; where the run takes its address."""

OUTPUT_LEAF = ("allocation", "shelf", "template", "size")
"""Words of a result: where the run takes its address; the shelf of the pool, 0 for a token; a buffer to copy and its
bytes.
"""

PAIR = ("input", "output", "bytes", "donated")
"""Words of an input that shares memory with a result. donated: whether the caller gives the input up."""

COPY = ("output", "allocation", "offset", "bytes")
"""Words of a copy after a run."""

CONTEXT = ("busy", "bases", "control")
"""Words of the state of one run."""

MOST_CONTEXTS = 8
"""Runs of one executable that are native at the same time; further ones go through Python."""

ROUNDS = 1 << 62
"""Iterations of a loop until it returns to Python: never, since nothing here handles signals."""

W = {
    table: {name: n for n, name in enumerate(words)}
    for table, words in {
        "buffer": BUFFER,
        "event": EVENT,
        "node": NODE,
        "layout": LAYOUT,
        "memory": MEMORY,
        "device": DEVICE,
        "executable": EXECUTABLE,
        "input": INPUT_LEAF,
        "output": OUTPUT_LEAF,
        "pair": PAIR,
        "copy": COPY,
        "context": CONTEXT,
    }.items()
}
