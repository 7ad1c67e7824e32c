"""Calls handlers in Python with mutated call frames. A process of its own: prints how many ran, failed, and all.

Run: .venv/bin/python -m testbed.tests.generators.mutated_frames [--count 100000] [--seed 1]
Numbers are mutated (sizes, stages, counts, kinds, dtypes, ranks, dimensions, values), pointers only to NULL.
"""

from __future__ import annotations

import argparse
import ctypes
import enum
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import ffi
from ..support.ffi_runtime import NUMBERS, Frame, Runtime


@ffi.enum_type(ffi.int32)
class Mode(enum.Enum):
    ADD = 0
    MULTIPLY = 1


@dataclass(frozen=True)
class Range:
    low: ffi.int64
    high: ffi.int64


def strict(x, y, z, r, i, f, s, a, mode, span):
    assert x.ndim + y.ndim + r.ndim <= 192 and isinstance(mode, Mode) and isinstance(span, Range) and a.ndim == 1


def loose(args, rets, attrs):
    for k in range(len(args)):
        args.get(ffi.AnyBuffer, k)
    args.get(ffi.Buffer[ffi.F32], 0)
    return None if dict(attrs) else ffi.Error.internal("no attributes")


HANDLERS = [
    ffi.bind()
    .arg(ffi.Buffer[ffi.F32])
    .arg(ffi.BufferR2[ffi.S32])
    .optional_arg(ffi.AnyBuffer)
    .ret(ffi.Buffer[ffi.F32])
    .attr(ffi.int32, "i")
    .attr(ffi.float32, "f")
    .attr(str, "s")
    .attr(ffi.Span[ffi.int64], "a")
    .attr(Mode, "mode")
    .attr(Range, "span")
    .to(strict),
    ffi.bind().remaining_args().remaining_rets().attrs().to(loose),
]

ATTRS = {
    "i": np.int32(1), "f": np.float32(2.5), "s": "text", "a": np.array([1, 2]), "mode": np.int32(1),
    "span": {"low": np.int64(1), "high": np.int64(2)},
}  # fmt: skip

NUMBER = (0, 1, 2, 3, 4, 5, 11, 64, 65, 99, -1, 2**31 - 1, -(2**31))


def frames(runtime: Runtime) -> Frame:
    arrays = [np.zeros(4, np.float32), np.zeros((2, 2), np.int32), np.zeros(3, np.uint8)]
    return Frame(runtime, arrays, [np.zeros(4, np.float32)], ATTRS)


def _buffer(frame: Frame, rng: random.Random) -> Any:
    return rng.choice([*frame.buffers[False], *frame.buffers[True]])


def size(frame: Frame, rng: random.Random) -> None:
    frame.frame.struct_size = rng.choice([0, 1, 160, 167, 169, 176, 1 << 40])


def stage(frame: Frame, rng: random.Random) -> None:
    frame.frame.stage = rng.choice(NUMBER)


def count(frame: Frame, rng: random.Random) -> None:
    part = rng.choice([frame.frame.args, frame.frame.rets, frame.frame.attrs])
    part.size = rng.choice([-1, -(1 << 62), 1 << 62, *range(part.size)])


def kind(frame: Frame, rng: random.Random) -> None:
    part = rng.choice([frame.frame.args, frame.frame.rets, frame.frame.attrs])
    part.types[0] = rng.choice([0, 5, 9, -1])


def dtype(frame: Frame, rng: random.Random) -> None:
    _buffer(frame, rng).dtype = rng.choice([*NUMBERS.values(), *NUMBER])


def rank(frame: Frame, rng: random.Random) -> None:
    found = _buffer(frame, rng)
    found.rank = rng.choice([-1, 65, 1 << 40, -(1 << 63), *range(found.rank)])


def dimension(frame: Frame, rng: random.Random) -> None:
    found = _buffer(frame, rng)
    if found.dims:
        found.dims[0] = rng.choice([0, 1, 3, -1, 1 << 31, 1 << 62, -(1 << 63)])


def null(frame: Frame, rng: random.Random) -> None:
    name = rng.choice(["data", "dims"])
    setattr(_buffer(frame, rng), name, None)


def name(frame: Frame, rng: random.Random) -> None:
    span = rng.choice([frame.frame.attrs.names[n].contents for n in range(len(ATTRS))])
    ctypes.memset(span.ptr, rng.choice(b"az\xff\0"), 1)


def value(frame: Frame, rng: random.Random) -> None:
    """The dtype, or for an integer the number, of a scalar attribute; f, i and mode are scalars."""
    place = rng.choice([1, 2, 3])
    scalar = (ctypes.c_uint64 * 2).from_address(frame.frame.attrs.attrs[place])
    if rng.random() < 0.5:
        ctypes.c_int32.from_address(ctypes.addressof(scalar)).value = rng.choice([*NUMBERS.values(), *NUMBER])
    else:
        ctypes.c_int32.from_address(scalar[1]).value = rng.choice(NUMBER)


MUTATIONS: tuple[Callable[[Frame, random.Random], None], ...] = (
    size, stage, count, kind, dtype, rank, dimension, null, name, value,
)  # fmt: skip


def run(total: int, seed: int) -> tuple[int, int]:
    """How many calls went well, and how many gave an error."""
    rng, runtime, answers = random.Random(seed), Runtime(), {True: 0, False: 0}
    for number in range(total):
        handler = HANDLERS[number % len(HANDLERS)]
        frame = frames(runtime)
        if rng.random() < 0.5:
            frame.call(handler.ffi_address)  # so that native code knows the frame before it is changed
        for mutate in rng.sample(MUTATIONS, rng.randrange(3)):
            mutate(frame, rng)
        answers[frame.call(handler.ffi_address) is None] += 1
    return answers[True], answers[False]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(*run(options.count, options.seed), options.count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
