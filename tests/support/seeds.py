"""Seeds of random programs: the same ones in the default run and in a deep one, others in every campaign."""

import os

from .corpus import DEEP

FIRST = int(os.environ.get("TESTBED_SEED", "0")) * 1_000_000
"""Where the seeds of this run begin: in a campaign (conftest.py) elsewhere each time."""


def seeds(first: int, count: int) -> range:
    """`count` seeds, a hundred times as many in a deep run."""
    return range(FIRST + first, FIRST + first + count * (100 if DEEP else 1))
