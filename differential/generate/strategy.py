"""Cases as a Hypothesis strategy: the choices are Hypothesis' own, so it shrinks and replays them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.strategies import SearchStrategy

from .source import Source

T = TypeVar("T")


class Drawn(Source):
    """The choices of one example. An integer that Hypothesis' strategy draws costs twice as much as this."""

    def __init__(self, data: ConjectureData) -> None:
        super().__init__()
        self._data = data

    def _integer(self, most: int) -> int:
        return self._data.draw_integer(0, most)

    @contextmanager
    def part(self) -> Iterator[None]:
        self._data.start_span(PART)
        try:
            yield
        finally:
            self._data.stop_span()


PART = 0x7E57BED
"""The label of a part, by which Hypothesis knows parts that may take each other's place."""


class DrawnBy(SearchStrategy[T], Generic[T]):
    """The strategy of what a function makes of a source."""

    def __init__(self, draw: Callable[[Source], T]) -> None:
        super().__init__()
        self._draw = draw

    def __repr__(self) -> str:
        return "DrawnBy(…)"

    def do_draw(self, data: ConjectureData) -> T:
        return self._draw(Drawn(data))
