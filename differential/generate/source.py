"""Where the choices of a generated program come from: a sequence of small integers that can be recorded and replayed.

Each choice is an integer between two limits, and 0 above the lower limit is the simplest one, so that Hypothesis
shrinks towards it. A blob is the text of such a sequence.
"""

from __future__ import annotations

import base64
import binascii
import random
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ...hlo.errors import InputError

T = TypeVar("T")

VERSION = 10
"""Of the generator: a blob of another version draws another program, and is refused. Raise it with each change of what
is drawn."""


class Source(ABC):
    """Choices, all made of `integer`."""

    def __init__(self) -> None:
        self.drawn: list[int] = []

    @abstractmethod
    def _integer(self, most: int) -> int:
        """An integer from 0 to `most`."""

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included; low is the simplest."""
        if high <= low:
            return low
        found = self._integer(high - low)
        self.drawn.append(found)
        return low + found

    def choice(self, among: Sequence[T]) -> T:
        """One of them; the first is the simplest. Raises IndexError if there is none."""
        return among[self.integer(0, len(among) - 1)]

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred cases; False is the simplest."""
        return self.integer(0, 99) >= 100 - percent

    def sample(self, among: Sequence[T], count: int) -> list[T]:
        """`count` different ones; the first ones in their order are the simplest."""
        left = list(among)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]

    @contextmanager
    def part(self) -> Iterator[None]:
        """Choices that belong together: shrinking tries to leave them out together."""
        yield


class Seeded(Source):
    """Choices of a pseudorandom generator."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def _integer(self, most: int) -> int:
        return self._random.randrange(most + 1)


class Recorded(Source):
    """The choices of a sequence. One above its limit counts as the limit, and those beyond the end as 0."""

    def __init__(self, choices: Sequence[int]) -> None:
        super().__init__()
        self._left = iter(choices)

    def _integer(self, most: int) -> int:
        return min(next(self._left, 0), most)


def blob_of(kind: str, choices: Sequence[int]) -> str:
    """The text of a sequence of choices. kind: one letter that says what they are choices of."""
    packed = bytearray()
    for number in choices:
        while number > 127:
            packed.append(number & 127 | 128)
            number >>= 7
        packed.append(number)
    text = base64.urlsafe_b64encode(zlib.compress(bytes(packed), 9)).decode().rstrip("=")
    return f"{kind}{VERSION}.{text}"


def choices_of(blob: str) -> tuple[str, list[int]]:
    """(Kind, choices) of a blob. Raises InputError if it is damaged or of another version of the generator."""
    head, dot, text = blob.strip().partition(".")
    kind, version = head[:1], head[1:]
    remedy = "give the whole blob that testbed fuzz printed"
    if not dot or not version.isdigit():
        raise InputError(f"{blob[:40]!r} is no blob of testbed fuzz", remedy=remedy)
    if int(version) != VERSION:
        raise InputError(
            f"the blob is of version {version} of the generator, this is version {VERSION}",
            remedy="run the module in the finding's folder instead: testbed diff FOLDER",
        )
    try:
        packed = zlib.decompress(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError(f"the blob is damaged: {error}", remedy=remedy) from error
    return kind, list(_unpacked(packed))


def _unpacked(packed: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0
