"""Judges many mutants of LHLO, in child processes: `python -m testbed.tests.support.lhlo_campaign`.

Four of five are text, the others bytecode. Prints each that is neither refused with its place nor run, and a summary.
Exit status: 0 if there is none such, else 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from .lhlo_mutants import Findings, bases, judgements

CASES = 60
"""Of one op, whose LHLO is damaged."""


def is_bytecode(seed: int) -> bool:
    return seed % 5 == 4


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    first = options.seed * 1_000_000
    seeds = range(first, first + options.count)
    found, start = Findings(), time.monotonic()
    for number, judged in enumerate(judgements(bases(CASES), seeds, is_bytecode, options.jobs), 1):
        found.add(judged)
        if judged[2]:
            print(f"seed {judged[0]}: {judged[1]}: {judged[2]}", flush=True)
        if number % 1000 == 0:
            print(f"{number} mutants in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    code = sum(map(is_bytecode, seeds))
    counts = ", ".join(f"{state} {count}" for state, count in sorted(found.counts.items()))
    kinds = f"{len(seeds) - code} text, {code} bytecode"
    print(f"{len(seeds)} mutants ({kinds}) from seed {first}: {len(found.wrong)} wrong; {counts}")
    return 1 if found.wrong else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lhlo_campaign", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=50_000, help="mutants")
    parser.add_argument("--seed", type=int, default=1, help="another one draws other mutants")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
