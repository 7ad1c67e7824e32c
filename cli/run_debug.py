"""`testbed run --debug`: what the checks in a program found, as text and as values of JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..backends.device import MemoryFault
    from ..backends.host.executable import HostExecutable
    from ..hlo.shapes import Shape
    from ..thunks.check_log import Found

KINDS = ("nan", "finite", "checksum", "redzone", "memory")
MOST_ROWS = 20
"""Lines of text; the document has all."""


@dataclass(frozen=True)
class Checked:
    """What the checks of one run found. rows: in the order of the run. wrong: whether something is."""

    kind: str
    checks: int
    lost: int
    rows: tuple[dict[str, Any], ...]

    @property
    def wrong(self) -> bool:
        return self.kind != "checksum" and bool(self.rows)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "checks": self.checks, "lost": self.lost, "found": list(self.rows)}


def checked_of(executable: HostExecutable, kind: str) -> Checked:
    """What was found in the last run. Of what a loop meets again and again, the first time, and how often."""
    if kind == "memory":  # a run that finds something ends there
        return Checked(kind, len(executable.kernels), 0, ())
    findings = executable.findings()
    shapes = _shapes(executable)
    rows: dict[object, dict[str, Any]] = {}
    for number, found in enumerate(findings.found):
        key: object = number if kind == "checksum" else found.thunk.id
        if key in rows:
            rows[key]["times"] += 1
        else:
            rows[key] = {"name": found.thunk.name, **_ROW[kind](found, shapes)}
    return Checked(kind, findings.checks, findings.lost, tuple(rows.values()))


def stopped(error: MemoryFault) -> Checked:
    """What the checking mode found in a run that it ended."""
    row = {"name": error.instruction, "kernel": error.kernel, "message": error.message}
    return Checked("memory", 1, 0, (row,))


def print_checked(found: Checked) -> None:
    """The first finding in words, and a table of all."""
    say()
    if not found.rows:
        what = "kernels" if found.kind == "memory" else "checks"
        say(wrapped(f"{_CLEAN[found.kind]}, in {found.checks} {what}"))
        return
    if found.wrong:
        say(wrapped(_sentence(found.kind, found.rows[0])))
    from ..benchmarks.tables import left, right

    keys = [key for key in found.rows[0] if key != "name"]
    cells = [(row["name"], *(_cell(row[key]) for key in keys)) for row in found.rows[:MOST_ROWS]]
    say(table([left("step"), *map(right, keys)], cells))
    if len(found.rows) > MOST_ROWS:
        say(f"{len(found.rows) - MOST_ROWS} more (--json has all)")
    if found.lost:
        say(f"{found.lost} more did not fit: these are those of the beginning")


_CLEAN = {
    "nan": "no NaN",
    "finite": "no NaN and no infinity",
    "checksum": "nothing was written",
    "redzone": "no kernel wrote out of bounds",
    "memory": "no kernel reads foreign or unwritten memory, leaves elements unwritten or writes out of bounds",
}


def _sentence(kind: str, row: dict[str, Any]) -> str:
    if kind == "redzone":
        return f"the first write out of bounds: {row['name']}, at byte {row['index'][0]}"
    return f"the first is {row['value']} at {_cell(row['index'])} of {row['shape']}: {row['name']}"


def _cell(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _shapes(executable: HostExecutable) -> dict[str, Shape]:
    """The shapes of arrays by the names of checks."""
    found: dict[str, Shape] = {}
    for i in executable.plan.module.instructions():
        leaves = [s for _, s in i.shape.leaves() if s.is_array]
        found |= {i.name: leaves[0]} if len(leaves) == 1 else {f"{i.name}{{{n}}}": s for n, s in enumerate(leaves)}
    return found


def _number(found: Found, shapes: dict[str, Shape]) -> dict[str, Any]:
    """A NaN or infinity: its index, and its value."""
    import numpy as np

    from ..hlo.dtypes import BY_NAME
    from ..thunks.checks import format_of
    from ..thunks.kinds import NanThunk

    assert isinstance(found.thunk, NanThunk)
    dtype, shape = BY_NAME[found.thunk.dtype], shapes.get(found.thunk.name)
    form = format_of(dtype)
    value = np.array(found.second, np.uint64).astype(f"u{form.width}").view(dtype.component.numpy)
    index = [found.number // form.parts]
    if shape is not None and shape.dtype is dtype:
        order = shape.minor_to_major[::-1]
        places = dict(zip(order, np.unravel_index(index[0], [shape.dims[d] for d in order]))) if order else {}
        index = [int(places[d]) for d in range(shape.rank)]
    text = dtype.value if shape is None else str(shape.without_layout())
    return {"shape": text, "index": index, "value": str(value), "times": 1}


def _checksum(found: Found, shapes: dict[str, Shape]) -> dict[str, Any]:
    return {"checksum": f"{found.number:016x}"}


def _zone(found: Found, shapes: dict[str, Shape]) -> dict[str, Any]:
    return {"index": [found.number], "times": 1}


_ROW = {"nan": _number, "finite": _number, "checksum": _checksum, "redzone": _zone}
