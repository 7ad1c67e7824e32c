"""What the programs of the suite `ops` are made of: HLO text of one operation, with parameters as operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

PROGRAMS: dict[str, Callable[[], str]] = {}
"""Name → a function that gives the HLO text; op_values.py, op_moves.py and op_orders.py add to it."""

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("s8", "u8", "s16", "s32", "u32", "s64", "u64")
TYPES = ("pred", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
ALL_FLOATS = ("f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz", *FLOATS)


def array(dtype: str, dims: Sequence[int], layout: Sequence[int] | None = None) -> str:
    """A shape in HLO text; layout: minor to major."""
    order = "" if layout is None else "{" + ",".join(map(str, layout)) + "}"
    return f"{dtype}[{','.join(map(str, dims))}]{order}"


def braces(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def text(parameters: Sequence[str], lines: Sequence[str], before: str = "") -> str:
    """A module whose parameters p0, p1, … have these shapes; the last line is the root."""
    body = [f"p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters)]
    body += [*lines[:-1], f"ROOT {lines[-1]}"]
    return "\n".join(["HloModule op", before, "ENTRY main {", *("  " + line for line in body), "}", ""])


def reducer(op: str, dtype: str, name: str = "f") -> str:
    s = f"{dtype}[]"
    return f"{name} {{\n  a = {s} parameter(0)\n  b = {s} parameter(1)\n  ROOT c = {s} {op}(a, b)\n}}\n"


def add(name: str, parameters: Sequence[str], *lines: str, before: str = "") -> None:
    assert name not in PROGRAMS, name
    PROGRAMS[name] = lambda: text(parameters, lines, before)
