"""The infeed and the outfeed of a device: queues between a program that runs and its host."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...hlo.dtypes import FROM_NUMPY
from ...hlo.errors import InputError
from ...hlo.shapes import Shape, array
from ...thunks.kinds import InfeedThunk, SequentialThunk
from ...thunks.outside import Feeds, Transport

LOOK = 0.05
"""Seconds between two looks at whether the run has failed."""


class Queues(Feeds):
    """limit: returns the seconds that a run waits for a value."""

    def __init__(self, name: str, forms: Mapping[str, tuple[Shape, ...]], limit: Callable[[], float]):
        self._name, self._forms, self._limit = name, forms, limit
        self._changed = threading.Condition()
        self._in: deque[list[np.ndarray]] = deque()
        self._out: deque[list[np.ndarray]] = deque()
        self._closed = False

    # -- the host ------------------------------------------------------------------------------------------------------
    def put(self, leaves: Sequence[Any]) -> None:
        """Append a value to the infeed. Raises InputError if no infeed of the program takes one like it."""
        value = [np.array(leaf, order="C") for leaf in leaves]
        if not any(_fits(value, form) for form in self._forms.values()):
            expected = " or ".join(dict.fromkeys(map(_text, self._forms.values()))) or "no value"
            raise InputError(f"the infeed of {self._name} takes {expected}, given {_given(value)}")
        with self._changed:
            self._in.append(value)
            self._changed.notify_all()

    def close(self, closed: bool = True) -> None:
        """Say that no more values come: a run that needs one fails at once. False: that they do."""
        with self._changed:
            self._closed = closed
            self._changed.notify_all()

    def clear(self) -> None:
        """Drop all values."""
        with self._changed:
            self._in.clear()
            self._out.clear()

    def taken(self) -> list[list[np.ndarray]]:
        """All values of the outfeed so far."""
        with self._changed:
            values = list(self._out)
            self._out.clear()
            return values

    def get(self, timeout: float) -> list[np.ndarray]:
        """The next value of the outfeed. Raises InputError if none comes in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._out, timeout):
                raise InputError(
                    f"the outfeed of {self._name} is empty, after {timeout:g} s",
                    remedy="run the program, or wait longer",
                )
            return self._out.popleft()

    # -- the run -------------------------------------------------------------------------------------------------------
    def take(self, thunk: InfeedThunk, transport: Transport) -> Sequence[np.ndarray]:
        limit, form = self._limit(), self._forms[thunk.name]
        end = time.monotonic() + limit
        with self._changed:
            while not self._in:
                transport.check()
                left = end - time.monotonic()
                if self._closed or left <= 0:
                    why = "its infeed is empty" if self._closed else f"no value came within {limit:g} s"
                    raise InputError(
                        f"{self._name}: {why} at {thunk.name}",
                        remedy="give executable.infeed(value…), or --infeed FILE",
                    )
                self._changed.wait(min(left, LOOK))
            value = self._in.popleft()
        if not _fits(value, form):
            raise InputError(f"{self._name}: the infeed {thunk.name} takes {_text(form)}, given {_given(value)}")
        return value

    def give(self, value: Sequence[np.ndarray]) -> None:
        with self._changed:
            self._out.append(list(value))
            self._changed.notify_all()


def forms_of(root: SequentialThunk) -> dict[str, tuple[Shape, ...]]:
    """Each infeed of a program, and the shapes of the leaves of its value."""
    found: dict[str, list[Shape]] = {}
    for thunk in root.walk():
        if isinstance(thunk, InfeedThunk):
            found.setdefault(thunk.name, []).append(thunk.shape)
    return {name: tuple(shapes) for name, shapes in found.items()}


def _fits(value: Sequence[np.ndarray], form: tuple[Shape, ...]) -> bool:
    return len(value) == len(form) and all(
        FROM_NUMPY.get(x.dtype) is shape.dtype and x.shape == shape.dims for x, shape in zip(value, form)
    )


def _given(value: Sequence[np.ndarray]) -> str:
    leaves = []
    for x in value:
        dtype = FROM_NUMPY.get(x.dtype)
        leaves.append(f"{dtype.value if dtype else x.dtype}[{','.join(map(str, x.shape))}]")
    return f"({', '.join(leaves)})"


def _text(form: tuple[Shape, ...]) -> str:
    return f"({', '.join(str(array(shape.dtype, *shape.dims)) for shape in form)})"
