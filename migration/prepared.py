"""A program that is compiled for a stack or a platform, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Prepared:
    """A program compiled for one stack. kernels: (name, stack that emitted it). seconds: compile time.

    timer: the seconds of the last run, of a stack that measures itself.
    """

    run: Callable[[Sequence[np.ndarray]], list[np.ndarray]]
    seconds: float = 0.0
    kernels: tuple[tuple[str, str], ...] = ()
    executable: Any = None
    timer: Callable[[], float] | None = None
