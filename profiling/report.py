"""Report: the profile of a program on one stack: end to end, and its steps with what is known of them. Times in ns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..hlo.errors import InputError
from .facts import Facts, Part

KIND = "testbed-profile"
SCHEMA = 1
"""Version of the file. It grows when a key goes or changes its meaning, not when one is added."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a program, in the order of its text; times and counts of one run, without what the profile costs.

    kind: kernel, copy, while, conditional. depth: how many steps it is inside of. shape: of its result, or "" where
    nothing is known but its name. stack: what made its kernel; form: how, if that
    is known.
    calls: a run. total: with the steps inside, own: without. least: the shortest call. bytes, flops, transcendentals:
    work of one call. iterations: of a loop, a run; None for other steps and where nothing in the body tells.
    split: whether threads may share it. parts: the instructions of a fusion, with estimated shares of its time.
    """

    name: str
    kind: str
    depth: int
    opcode: str
    family: str
    shape: str
    stack: str
    op_name: str
    source: str
    calls: float
    total: float
    own: float
    least: float
    bytes: float
    flops: float
    transcendentals: float
    split: bool = False
    iterations: float | None = None
    parts: tuple[Part, ...] = ()
    counters: Mapping[str, float] | None = None
    form: str = ""

    @property
    def mean(self) -> float:
        return self.total / self.calls if self.calls else 0.0

    @property
    def facts(self) -> Facts:
        return Facts(self.name, self.opcode, self.family, self.op_name, self.source)


@dataclass(frozen=True)
class Report:
    """A program's profile. wall: the host's timer around a call, without marks. least: the shortest.

    run: from the first step to the last. entry: the rest of a call: arguments, results. between: of the run outside of
    steps. overhead: wall time with a mark around each step, relative to `wall`. event: what a mark costs in a row, and
    marginal: between the steps; it is subtracted. scale: what is then left of a difference between steps and run.
    runs: of each form of the program. lost: marks of a run that did not fit. counters: a run; notes: for the reader.
    """

    program: str
    emitters: str
    host_program: str
    threads: int
    wall: float
    least: float
    entry: float
    run: float
    between: float
    overhead: float
    event: float
    marginal: float
    scale: float
    runs: int
    lost: int
    steps: tuple[Step, ...]
    counters: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def sum(self) -> float:
        """All that the profile accounts for: the steps, between them, and the entry."""
        return self.entry + self.between + sum(step.own for step in self.steps)


def to_json(reports: Iterable[Report], version: str) -> str:
    """The text of a file of profiles."""
    head = {"kind": KIND, "schema": SCHEMA, "version": version}
    return json.dumps({**head, "profiles": [asdict(report) for report in reports]}, indent=1, allow_nan=False) + "\n"


def from_json(text: str, file: str) -> list[Report]:
    """The profiles in a file. Raises InputError that says what is wrong with it."""
    remedy = "give a file that testbed profile --json wrote"
    try:
        document = json.loads(text)
    except RecursionError:
        raise InputError(f"{file}: nests too deep for a profile", remedy=remedy) from None
    except ValueError as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{file}: not JSON{where}; the file may be cut off", remedy=remedy) from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise InputError(f"{file}: JSON, but no profile", remedy=remedy)
    if document.get("schema") != SCHEMA:
        raise InputError(
            f"{file}: a profile of schema {document.get('schema')!r}; this testbed reads {SCHEMA}",
            remedy="make it again with this version",
        )
    try:
        return [_report(row) for row in _typed(document, "profiles", list)]
    except _Malformed as error:
        raise InputError(f"{file}: {error}", remedy=remedy) from None


class _Malformed(Exception):
    """A value of a file is missing or of another type."""


def _report(row: Any) -> Report:
    values = _values(Report, row, {"steps", "notes", "counters"})
    steps = tuple(_step(step) for step in _typed(row, "steps", list))
    notes = tuple(map(str, _typed(row, "notes", list)))
    return Report(**values, steps=steps, notes=notes, counters=_counters(row))


def _step(row: Any) -> Step:
    values = _values(Step, row, {"parts", "counters", "iterations", "form"})
    form = row.get("form", "")  # of a version that did not say it
    if not isinstance(form, str):
        raise _Malformed("form of a step is no text")
    iterations = row.get("iterations")
    if iterations is not None and not _is_number(iterations):
        raise _Malformed("iterations of a step is no number")
    return Step(**values, parts=_parts(row), counters=_counters(row), iterations=iterations, form=form)


def _parts(row: Mapping[str, Any]) -> tuple[Part, ...]:
    found = []
    for part in _typed(row, "parts", list):
        share = _typed(part, "share", float)
        found.append(Part(Facts(**_values(Facts, _typed(part, "facts", dict), set())), share))
    return tuple(found)


def _counters(row: Mapping[str, Any]) -> dict[str, float] | None:
    counters = row.get("counters")
    if counters is None:
        return None
    if not isinstance(counters, dict) or not all(map(_is_number, counters.values())):
        raise _Malformed("counters holds other values than numbers")
    return counters


_TYPES: Mapping[str, type] = {"str": str, "float": float, "int": int, "bool": bool}


def _values(kind: type, row: Any, without: set[str]) -> dict[str, Any]:
    """The fields of a class in a row, each of its type."""
    wanted: Sequence[Any] = fields(kind)
    return {f.name: _typed(row, f.name, _TYPES[f.type]) for f in wanted if f.name not in without}


def _typed(row: Any, name: str, kind: type) -> Any:
    if not isinstance(row, dict):
        raise _Malformed("a row is no object")
    value = row.get(name)
    fits = _is_number(value) if kind is float else isinstance(value, kind)
    if not fits:
        raise _Malformed(f"{name} is missing" if value is None else f"{name} is {str(value)[:40]!r}, of another type")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")
