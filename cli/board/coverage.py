"""Which stack has a row for which opcode and element type, derived from the opset and the tables of the stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...hlo.dtypes import NUMPY, DType
from ...hlo.library.calls import LIBRARY
from ...hlo.opclasses import CONTROL, FORWARDING, OUTSIDE
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...migration.choose import present, table
from ...migration.names import HOST
from ...migration.units import CLASS_OF, CLASSES, UNIT_OF

if TYPE_CHECKING:
    pass

BOTH, LEGACY, MLIR, NEITHER, UNDEFINED = "both", "legacy", "mlir", "none", "–"

STRUCTURE = frozenset({Op.PARAMETER, Op.FUSION})
"""Ops that are part of a kernel's or program's frame."""

WAYS = {
    "kernel": "kernels of the stacks",
    "library": "library kernels, the same on both stacks",
    "host": "the host program's, between kernels",
    "frame": "a frame, of a program or of a kernel",
    "rewritten": "rewritten into other ops by a pass, before kernels are made",
}
"""How an opcode runs → in words."""


@dataclass(frozen=True)
class Cell:
    """emitted: one of BOTH … UNDEFINED. row: of the ledger, which decides on the pair; "" where nothing is emitted.

    full: how many of the column's types agreed on every input, wrong: how many did not, by `testbed exhaustive`.
    """

    emitted: str
    row: str
    full: int = 0
    wrong: int = 0


@dataclass(frozen=True)
class Line:
    """An opcode. cells: by column; none unless it is a kernel's. way: of WAYS. reference: the evaluator has a rule."""

    opcode: str
    family: str
    way: str
    reference: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Coverage:
    """columns: element types of one class that have the same cells in every line share one. lines: as in the opset.

    is_exhaustive: whether results of `testbed exhaustive` were given. stacks: that this package has.
    """

    columns: tuple[tuple[str, ...], ...]
    lines: tuple[Line, ...]
    is_exhaustive: bool = False
    stacks: tuple[str, ...] = (LEGACY, MLIR)

    @property
    def counts(self) -> tuple[tuple[str, str, int], ...]:
        """(way, in words, how many opcodes)."""
        return tuple((way, words, sum(line.way == way for line in self.lines)) for way, words in WAYS.items())

    @property
    def _whole(self) -> str:
        return BOTH if len(self.stacks) == 2 else self.stacks[0]

    @property
    def _holes(self) -> set[str]:
        return {LEGACY, MLIR, NEITHER} - {self._whole}

    @property
    def holes(self) -> int:
        """Pairs of opcode and type for which a stack has no row."""
        sizes = [len(types) for types in self.columns]
        return sum(n for line in self.lines for c, n in zip(line.cells, sizes) if c.emitted in self._holes)

    @property
    def pairs(self) -> int:
        """Pairs of opcode and type that all stacks emit."""
        sizes = [len(types) for types in self.columns]
        return sum(n for line in self.lines for c, n in zip(line.cells, sizes) if c.emitted == self._whole)


def coverage(exhaustive: Mapping[tuple[Op, DType], bool] | None = None) -> Coverage:
    """The coverage of this testbed. Imports both stacks.

    exhaustive: pairs of which every input ran; whether all agreed.
    """
    from ...evaluator.rules import RULES as references

    emits = {name: STACKS[name]() for name in present() if name in STACKS}
    types = list(NUMPY)
    full = {op: [_cell(op, dtype, emits) for dtype in types] for op in OPSET}
    ways = {op: _way(op, any(cell in (BOTH, LEGACY, MLIR) for cell in cells)) for op, cells in full.items()}
    columns = _columns(types, {op: cells for op, cells in full.items() if ways[op] == "kernel"})
    lines = []
    for op, row in OPSET.items():
        shown = []
        for group in columns if ways[op] == "kernel" else ():
            emitted = full[op][types.index(group[0])]
            verdicts = [(exhaustive or {}).get((op, dtype)) for dtype in group]
            of_row = _row_of(op, group[0], emitted)
            shown.append(Cell(emitted, of_row, verdicts.count(True), verdicts.count(False)))
        lines.append(Line(op.value, row.family.value, ways[op], op in references or op in STRUCTURE, tuple(shown)))
    named = tuple(tuple(d.value for d in group) for group in columns)
    return Coverage(named, tuple(lines), exhaustive is not None, tuple(emits))


Emits = Callable[[Op, DType], bool]


def _legacy() -> Emits:
    rows, typed = table(LEGACY, "numerics.elementwise").EMIT, table(LEGACY, "numerics.typed").Typed
    rules = table(LEGACY, "kernel").RULES

    def emits(op: Op, dtype: DType) -> bool:
        if op in rows:
            return not isinstance(rows[op], typed) or rows[op].supports(dtype)
        return op in rules

    return emits


def _mlir() -> Emits:
    rows, rules = table(MLIR, "numerics.elementwise").EMIT, table(MLIR, "kernel").RULES
    return lambda op, dtype: rows[op].function(dtype) is not None if op in rows else op in rules


STACKS: Mapping[str, Callable[[], Emits]] = {LEGACY: _legacy, MLIR: _mlir}
"""Stack → what it emits. The old one may be removed one day."""


def _cell(op: Op, dtype: DType, emits: dict[str, Emits]) -> str:
    if dtype not in OPSET[op].dtypes:
        return UNDEFINED
    found = [name for name, of in emits.items() if of(op, dtype)]
    return BOTH if len(found) == 2 else found[0] if found else NEITHER


def _row_of(op: Op, dtype: DType, emitted: str) -> str:
    if emitted in (UNDEFINED, NEITHER) or op not in UNIT_OF:
        return ""
    return f"{UNIT_OF[op]}.{CLASS_OF[dtype]}.{HOST}"


def _way(op: Op, emitted: bool) -> str:
    if op in STRUCTURE:
        return "frame"
    if op in LIBRARY:
        return "library"
    if op in CONTROL | OUTSIDE | FORWARDING:
        return "host"
    return "kernel" if emitted else "rewritten"


def _columns(types: list[DType], full: dict[Op, list[str]]) -> list[list[DType]]:
    """The types in groups that are of one class and have the same cells everywhere, in the order of classes."""
    found: dict[tuple[str, ...], list[DType]] = {}
    for dtype in sorted(types, key=lambda d: list(CLASSES).index(CLASS_OF[d])):
        cells = (cells[types.index(dtype)] for cells in full.values())
        found.setdefault((CLASS_OF[dtype], *cells), []).append(dtype)
    return list(found.values())
