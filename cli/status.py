"""Exit statuses: 0 done and all agree; 1 something disagrees or failed; 2 bad input or usage; 3 nothing is wrong for
certain, but something is undecided; 130 Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterable

UNDECIDED = 3

_BY_WEIGHT = (0, UNDECIDED, 1, 2)


def heaviest(statuses: Iterable[int]) -> int:
    """The status of several: what certainly went wrong hides what is undecided."""
    return max(statuses, key=_BY_WEIGHT.index, default=0)
