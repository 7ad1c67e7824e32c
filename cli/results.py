"""Prints arrays: the results of a run, in lines that fit the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .output import say, width

if TYPE_CHECKING:
    import numpy as np


def print_results(results: Sequence[np.ndarray], prefix: str = "") -> None:
    """Print each result leaf. prefix: stands before its name."""
    for i, value in enumerate(results):
        say(array_text(f"{prefix}out{i} {value.dtype.name}{list(value.shape)} ", value))


def array_text(head: str, value: np.ndarray) -> str:
    """The array behind a heading, in lines of the output's width; a large array is shortened."""
    import numpy as np

    indent = min(len(head), 4)
    room = width() - 1
    with np.printoptions(threshold=64, edgeitems=2, linewidth=room):
        text = np.array2string(value, separator=", ", prefix=" " * indent, max_line_width=room)
    one_line = " ".join(text.split("\n"))
    if "\n" not in text and len(head) + len(text) <= room:
        return head + one_line
    return f"{head.rstrip()}\n{' ' * indent}{text}"
