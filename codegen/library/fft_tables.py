"""Numbers of Fourier transforms on blocks: roots of unity and the order of the results.

A transform of r · s points is r-point transforms of points s apart, in place, then s-point transforms of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence


def root(k: int, points: int) -> tuple[float, float]:
    """(real part, imaginary part) of exp(-2πi k / points), to the last place or the one before, because
    angles are at most an eighth of a turn.
    """
    eighth, rest = divmod(8 * (k % points), points)
    angle = (points - rest if eighth % 2 else rest) / points * (math.pi / 4)
    near, far = math.cos(angle), math.sin(angle)
    x, y = (far, near) if eighth % 4 in (1, 2) else (near, far)
    if eighth % 4 == 2:
        x, y = -far, near
    elif eighth % 4 == 3:
        x, y = -near, far
    return (x, -y) if eighth < 4 else (-x, y)


def step_roots(points: int, radix: int) -> list[tuple[float, float]]:
    """The factors of the results 1 … radix - 1 of each transform of the first step of `points` points."""
    return [root(j * q, points) for j in range(points // radix) for q in range(1, radix)]


def all_roots(points: int, radices: Sequence[int]) -> Iterator[tuple[float, float]]:
    """The factors of all steps but the last, one step after the other."""
    for radix in radices[:-1]:
        yield from step_roots(points, radix)
        points //= radix


def order(points: int, radices: Sequence[int]) -> list[int]:
    """Result k → the place in the block where the steps leave it."""
    places = [0]
    for radix in reversed(radices):  # result q + radix · k is result k of the q-th transform of neighbours
        size = len(places)
        places = [q * size + place for place in places for q in range(radix)]
    assert len(places) == points
    return places
