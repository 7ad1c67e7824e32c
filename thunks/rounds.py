"""Long loops return to Python every few milliseconds, so that Ctrl-C works, and end when their state never changes."""

from __future__ import annotations

import ctypes
import hashlib
import time
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from itertools import chain

from ..hlo.later import np
from ..hlo.records import dataclass
from .kinds import ConditionalThunk, KernelThunk, Meeting, Thunk, WhileThunk

LOOP_SECONDS = 0.02
"""Target time in seconds that a loop's iterations take before Python handles signals."""

MOST_ROUNDS, MOST_STEADY_ROUNDS = 1 << 12, 1 << 16
"""Upper limits of iterations per native call: large enough to amortise the return to Python, small enough that Ctrl-C
works in a loop whose iterations get slower. Those of a steady loop, without a conditional or a handler, hardly do.
"""

WATCHED_FROM = 64
"""Iterations, or returns of native code to Python, after which a loop is watched, and again whenever they double."""


@dataclass(frozen=True, slots=True)
class Round:
    """A loop in native code. left: the word with its iterations left until it returns to Python; most: their limit.

    outer: the numbers of the loops around it. written: all memory that an iteration writes: per slice, the word of its
    address, and its bytes. settles: whether an iteration that changes nothing is the last that could.
    """

    left: int
    outer: tuple[int, ...]
    written: tuple[tuple[int, int], ...]
    most: int
    settles: bool = True


def most_rounds(loop: WhileThunk, handlers: Container[str] = ()) -> int:
    steady = not any(isinstance(t, ConditionalThunk) or _handles(t, handlers) for t in _inside(loop))
    return MOST_STEADY_ROUNDS if steady else MOST_ROUNDS


def settles(loop: WhileThunk, handlers: Container[str] = ()) -> bool:
    """Whether what an iteration does depends on memory only, not on other devices, a host or the state of a handler.

    handlers: symbols of the kernels that call handlers.
    """
    return not any(isinstance(t, Meeting) or _handles(t, handlers) for t in _inside(loop))


def _inside(loop: WhileThunk) -> Iterator[Thunk]:
    return chain(loop.condition.walk(), loop.body.walk())


def _handles(thunk: Thunk, handlers: Container[str]) -> bool:
    return isinstance(thunk, KernelThunk) and thunk.symbol in handlers


@dataclass(frozen=True, slots=True)
class Native:
    """Native code with loops, on its words. run: from the start or from where it paused; it returns the number of a
    loop that used up its rounds, counted from 1, or 0 or less at the end. restart: let the next run be from the start.
    leave: let it go on behind the loop.
    """

    words: np.ndarray
    run: Callable[[], int]
    restart: Callable[[], None]
    leave: Callable[[Round], None]


def paced(native: Native, rounds: Sequence[Round], limits: list[int]) -> Callable[[], int]:
    """A function that runs native code to its end, each loop at most as many rounds at a time as should take
    LOOP_SECONDS, and returns the last status. limits: these numbers, at first 1 a loop, which it changes.

    The estimate comes from the time since the loop's last limit was set, which includes the loops inside it.
    """
    words, run, clock, seen = native.words, native.run, time.perf_counter, [r.left for r in rounds]

    def looping() -> int:
        native.restart()  # an interrupted run leaves other values there
        words[seen] = limits
        given, pauses = [clock()] * len(seen), [0] * len(seen)
        watched: dict[int, _Watched] = {}
        while (status := run()) > 0:
            number = status - 1
            loop, before = rounds[number], watched.pop(number, None)
            for other in [n for n in watched if number in rounds[n].outer]:
                del watched[other]  # a loop around it has gone on
            around = words[[seen[n] for n in loop.outer]].tolist()
            if before is not None:
                if before.around == around and before.memory == digest_of(words, loop.written):
                    native.leave(loop)
                    continue
                words[seen[number]], given[number] = limits[number], clock()
                continue
            pauses[number] += 1
            if loop.settles and pauses[number] >= WATCHED_FROM and pauses[number].bit_count() == 1:
                watched[number] = _Watched(around, digest_of(words, loop.written))
                words[seen[number]] = 1
                continue
            seconds = max(clock() - given[number], 1e-9)
            limit = max(1, min(8 * limits[number], loop.most, int(limits[number] * LOOP_SECONDS / seconds)))
            words[seen[number]] = limits[number] = limit
            given[number] = clock()
        return status

    return looping


def digest_of(words: np.ndarray, written: Collection[tuple[int, int]]) -> bytes:
    """A digest of memory: equal ones mean equal bytes. written: as in Round."""
    digest = hashlib.blake2b(digest_size=32)
    for word, size in written:
        if size:
            digest.update((ctypes.c_uint8 * size).from_address(int(words[word])))
    return digest.digest()


@dataclass(frozen=True, slots=True)
class _Watched:
    """A loop before an iteration. around: rounds left of the loops around it; memory: digest of all that it writes.

    If an iteration leaves this memory as it was, all others will: kernels depend on memory only. The loop then ends
    with this state, as in the evaluator. The rounds tell whether it is still the same run of the loop.
    """

    around: list[int]
    memory: bytes
