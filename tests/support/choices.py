"""CHOICES: Hypothesis' choices as a random.Random, for generators that draw from one. So what they make shrinks."""

from __future__ import annotations

import random

from ...differential.generate.source import Source
from ...differential.generate.strategy import DrawnBy


class Choices(random.Random):
    """Each number is one choice of a source, and uniform: Hypothesis' own `randoms` prefers the ends of [0, 1)."""

    def __init__(self, source: Source):
        super().__init__(0)
        self._source = source

    def random(self) -> float:
        return self._source.integer(0, 255) / 256

    def _randbelow(self, n: int) -> int:
        """Behind choice, randrange, sample and shuffle: what a subclass of random.Random may define for them."""
        return self._source.integer(0, n - 1)


CHOICES = DrawnBy(Choices)
