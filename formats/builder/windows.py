"""Windows and their padding, as XlaBuilder takes them."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.attributes import Window, WindowDim
from .values import Building

Padding = str | Sequence[Sequence[int]]
"""'SAME', 'VALID', or (low, high) of each dimension."""


def window_of(
    b: Building,
    input_sizes: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    reversal: Sequence[bool] | None = None,
) -> Window:
    """The window of these dimensions; what is None is 1 everywhere (False for reversal)."""
    rank = len(sizes)
    if len(input_sizes) != rank:
        b.fail(f"{rank} window dimensions for {len(input_sizes)} dimensions", "give one for each")

    def column(name: str, values: Sequence[int] | None, default: int) -> list[int]:
        if values is not None and len(values) != rank:
            b.fail(f"{name} has {len(values)} entries for {rank} window dimensions", "give one for each")
        return [default] * rank if values is None else list(values)

    steps = column("window_strides", strides, 1)
    grown = column("base_dilations", base_dilations, 1)
    spread = column("window_dilations", window_dilations, 1)
    turned = column("window_reversal", reversal, 0)
    if any(n < 1 for n in (*steps, *grown, *spread)):
        b.fail("a stride or dilation of the window is not positive", "give numbers from 1 on")
    inner = [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(input_sizes, grown)]
    reach = [(n - 1) * d + 1 if n else 0 for n, d in zip(sizes, spread)]
    rows = _padding(b, padding, inner, reach, steps)
    return Window(
        tuple(
            WindowDim(size, step, low, high, base, wide, bool(turn))
            for size, step, (low, high), base, wide, turn in zip(sizes, steps, rows, grown, spread, turned)
        )
    )


def _padding(
    b: Building, padding: Padding, inner: Sequence[int], reach: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """(low, high) of each dimension; SAME gives ceil(size / stride) results, with the odd one of the padding at the end
    (MakePadding in xla/client/padding.cc).
    """
    if not isinstance(padding, str):
        rows: list[Sequence[int]] = list(padding)
        if len(rows) != len(reach) or any(len(row) != 2 for row in rows):
            b.fail(f"padding {rows} for {len(reach)} dimensions", "give (low, high) for each, 'SAME' or 'VALID'")
        return [(row[0], row[1]) for row in rows]
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(reach)
    if kind != "SAME":
        b.fail(f"unknown padding {padding!r}", "give 'SAME', 'VALID', or (low, high) for each dimension")
    found = []
    for size, window, stride in zip(inner, reach, strides):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        found.append((total // 2, total - total // 2))
    return found
