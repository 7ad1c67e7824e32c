"""What parity with the old emitters means, in numbers (docs/adr/0040-performance-parity.md); why a row lacks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Parity:
    """Limits of ratios, new emitters to old.

    cases: fewest differential cases. mean: of run time, the geometric mean over the row's programs; its 95% interval
    must lie below. each: of run time of any one program; its interval must not lie above. compile: of compile time, the
    geometric mean. memory: of peak memory, of any program.
    """

    cases: int = 40
    mean: float = 1.05
    each: float = 1.10
    compile: float = 1.50
    memory: float = 1.25


PARITY = Parity()


@dataclass(frozen=True)
class Speed:
    """A timed program. ratio: the median over rounds of its run time's ratio, with its 95% interval."""

    name: str
    ratio: float
    low: float
    high: float
    compile_ms: float
    compile_ratio: float
    memory_ratio: float


@dataclass(frozen=True)
class Compared:
    """What a row's differential cases gave. wrong: a sentence for each that failed. refused: cases no stack takes.
    same: cases whose machine code is the same on both stacks. undecided: a sentence for each whose results differ, and
    of which it was not found out whether the float rules permit that.
    """

    cases: int
    seeds: str
    worst_ulp: float
    wrong: tuple[str, ...] = ()
    refused: int = 0
    same: int = 0
    undecided: tuple[str, ...] = ()


def shortfalls(
    compared: Compared,
    speeds: Sequence[Speed],
    mean: tuple[float, float, float],
    compile_mean: float,
    parity: Parity = PARITY,
) -> list[str]:
    """Why a row is not at parity: a phrase each; [] if it is. mean: (middle, low, high) of run time over programs."""
    found = [f"wrong in {len(compared.wrong)} of {compared.cases} cases: {compared.wrong[0]}"] if compared.wrong else []
    if compared.undecided:
        found.append(f"undecided in {len(compared.undecided)} of {compared.cases} cases: {compared.undecided[0]}")
    if compared.cases < parity.cases:
        found.append(f"only {compared.cases} cases ran, of {parity.cases} that parity needs")
    if not speeds:
        found.append("no program was timed")
        return found
    found += _slower(mean, parity.mean)
    slow = [s for s in speeds if s.low > parity.each]
    found += [f"{s.name} takes {s.ratio:.2f} times as long (at most {parity.each:.2f})" for s in slow[:2]]
    if compile_mean > parity.compile:
        found.append(f"compiling takes {compile_mean:.2f} times as long (at most {parity.compile:.2f})")
    hungry = max(speeds, key=lambda s: s.memory_ratio)
    if hungry.memory_ratio > parity.memory:
        found.append(f"{hungry.name} takes {hungry.memory_ratio:.2f} times the memory (at most {parity.memory:.2f})")
    return found


def _slower(mean: tuple[float, float, float], most: float) -> list[str]:
    middle, low, high = mean
    if high <= most:
        return []
    if low > most:
        return [f"{middle:.2f} times as slow on average (at most {most:.2f})"]
    return [f"cannot tell whether it is at most {most:.2f} times as slow: the interval is [{low:.2f}, {high:.2f}]"]
