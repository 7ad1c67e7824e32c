"""What migrates by itself: a unit (the elemental graph as a whole, or one unnested op) of one class of element types.

The elemental graph is every op whose result is computed element by element, with the index arithmetic that leads to it;
it cannot go op by op, because a kernel's elements are computed by one stack. An unnested op has loops of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..hlo.dtypes import COMPLEX, FLOAT8, INTEGER, DType
from ..hlo.opclasses import ELEMENTWISE
from ..hlo.opcodes import Op
from .names import WITH_ROWS

ELEMENTAL = "elemental"

UNITS: dict[str, frozenset[Op]] = {
    ELEMENTAL: ELEMENTWISE
    | {
        Op.BITCAST,
        Op.BITCAST_CONVERT,
        Op.BROADCAST,
        Op.COPY,
        Op.DYNAMIC_SLICE,
        Op.GATHER,
        Op.IOTA,
        Op.MAP,
        Op.PAD,
        Op.RESHAPE,
        Op.REVERSE,
        Op.SLICE,
    },
    **{
        op.value: frozenset({op})
        for op in (
            Op.CONCATENATE,
            Op.CONVOLUTION,
            Op.DOT,
            Op.DYNAMIC_UPDATE_SLICE,
            Op.REDUCE,
            Op.REDUCE_WINDOW,
            Op.SCATTER,
            Op.SORT,
            Op.TRANSPOSE,
        )
    },
}
"""Unit → its opcodes. tests/migration/test_units.py: every opcode that a stack emits is in exactly one."""

CLASSES: dict[str, frozenset[DType]] = {
    "float": frozenset({DType.F32, DType.F64}),
    "half": frozenset({DType.F16, DType.BF16}),
    "narrow": FLOAT8 | {DType.F4E2M1FN},
    "complex": COMPLEX,
    "integer": INTEGER | {DType.PRED},
}
"""Class → its element types."""

UNIT_OF: dict[Op, str] = {op: unit for unit, ops in UNITS.items() for op in ops}
CLASS_OF: dict[DType, str] = {dtype: name for name, dtypes in CLASSES.items() for dtype in dtypes}


def row_names() -> list[str]:
    """Names of all rows, such as reduce.float.host, sorted."""
    return sorted(f"{unit}.{name}.{end}" for unit in UNITS for name in CLASSES for end in WITH_ROWS)


def pairs_of(op: Op, dtypes: Iterable[DType]) -> set[tuple[str, str]]:
    """The (unit, class) pairs that an instruction needs. dtypes: those of its operands and of its result."""
    if op not in UNIT_OF:
        return set()
    return {(UNIT_OF[op], CLASS_OF[dtype]) for dtype in dtypes if dtype in CLASS_OF}
