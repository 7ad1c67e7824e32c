"""Mutants of hlo/opset.py and of the shape rules in hlo/verify: facts one off, checks left out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...hlo import grammar, opclasses, opset
from ...hlo.dtypes import DType
from ...hlo.errors import VerificationError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import ALGORITHM_ULP, ANY, EXACT, MANY, Family, Row
from ...hlo.shapes import Shape
from ...hlo.verify import collectives, control, elementwise, indexing, linear, movement, regions
from ...hlo.verify.infer import INFER
from ...hlo.verify.rules import ShapeRule
from .base import Mutant, Note, Room, modules, rebind, words_of


def mutants() -> Sequence[Mutant]:
    return [*opset_mutants(), *infer_mutants(), *label_mutants()]


# --- facts ------------------------------------------------------------------------------------------------------------
def opset_mutants() -> Iterator[Mutant]:
    for op, row in OPSET.items():
        for what, changed in changed_rows(op, row):
            name = f"hlo/OPSET/{op.value}/{what}"
            yield Mutant(
                name,
                "",
                partial(put, op, changed),
                (
                    f"test_opset_rows.py::test_the_row_has_the_facts_of_the_second_table[{op.value}]",
                    "test_opset",
                    *words_of(op),
                ),
            )


def changed_rows(op: Op, row: Row) -> Iterator[tuple[str, Row]]:
    order = list(DType)
    if row.dtypes != ANY:
        more = min(ANY - row.dtypes, key=order.index)
        yield f"also {more.value}", replace(row, dtypes=row.dtypes | {more})
    fewer = min(row.dtypes, key=order.index)
    yield f"not {fewer.value}", replace(row, dtypes=row.dtypes - {fewer})
    if row.low:
        yield "one operand fewer", replace(row, low=row.low - 1)
    if row.low < row.high:
        yield "at least one operand more", replace(row, low=row.low + 1)
    if row.high != MANY:
        yield "one operand more", replace(row, high=row.high + 1)
    for key in row.required:
        left = tuple(k for k in row.required if k != key)
        yield f"{key} not required", replace(row, required=left, optional=(*row.optional, key))
        yield f"{key} unknown", replace(row, required=left)
    for key in row.optional:
        left = tuple(k for k in row.optional if k != key)
        yield f"{key} unknown", replace(row, optional=left)
        yield f"{key} required", replace(row, optional=left, required=(*row.required, key))
    yield "elementwise flipped", replace(row, elementwise=not row.elementwise)
    families = list(Family)
    other = families[(families.index(row.family) + 1) % len(families)]
    yield f"family {other.name}", replace(row, family=other)
    yield "ulp", replace(row, ulp=ALGORITHM_ULP if row.ulp == EXACT else EXACT)


def put(op: Op, row: Row) -> None:
    """A row in OPSET, and what other modules worked out of it at import."""
    OPSET[op] = row
    grammar.ALLOWED[op] = frozenset(row.own + grammar.COMMON)
    is_elementwise = frozenset(o for o, r in OPSET.items() if r.elementwise)
    follow(opclasses.ELEMENTWISE, is_elementwise)
    effects = frozenset(opset.opcodes([Family.IO, Family.COLLECTIVE])) - {Op.PARTITION_ID, Op.REPLICA_ID}
    follow(opclasses.SIDE_EFFECTS, effects | {Op.RNG, Op.RNG_GET_AND_UPDATE_STATE})
    rebind(opset.UNARY, frozenset(opset.opcodes([Family.UNARY])))
    rebind(opset.BINARY, frozenset(opset.opcodes([Family.BINARY])))


def follow(old: frozenset[Op], new: frozenset[Op]) -> None:
    """Change a set everywhere, and every set of opcodes that contains it."""
    if old == new:
        return
    for module in modules():
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)
            elif isinstance(value, frozenset) and value > old:
                setattr(module, name, (value - old) | new)


# --- shape rules ------------------------------------------------------------------------------------------------------


def infer_mutants() -> Iterator[Mutant]:
    for op in INFER:
        for what, change in SHAPE_CHANGES.items():
            yield Mutant(
                f"hlo/INFER/{op.value}/{what}",
                f"INFER/{op.value}/{what}",
                partial(wrap, op, change),
                words_of(op),
                optional=what != "another dtype" or op in NO_ARRAY,
            )


NO_ARRAY = frozenset({Op.AFTER_ALL, Op.OUTFEED, Op.SEND_DONE})


def wrap(op: Op, change: Callable[[Shape], Shape]) -> None:
    rule = INFER[op]
    INFER[op] = lambda i: change(rule(i))


def on_first_array(change: Callable[[Shape], Shape]) -> Callable[[Shape], Shape]:
    """A change of the first array of a shape that it changes at all."""

    def changed(shape: Shape) -> Shape:
        if not shape.is_tuple:
            return change(shape) if shape.is_array else shape
        elements = list(shape.elements)
        for n, element in enumerate(elements):
            elements[n] = changed(element)
            if elements[n] is not element:
                return replace(shape, elements=tuple(elements))
        return shape

    return changed


def one_larger(d: int) -> Callable[[Shape], Shape]:
    def change(shape: Shape) -> Shape:
        if shape.rank <= abs(d + 0.5):
            return shape
        dims = list(shape.dims)
        dims[d] += 1
        return replace(shape, dims=tuple(dims))

    return change


OTHER = {DType.PRED: DType.S32, DType.F32: DType.S32, DType.S32: DType.U32}


def other_dtype(shape: Shape) -> Shape:
    return replace(shape, dtype=OTHER.get(shape.dtype, DType.PRED))


SHAPE_CHANGES = {
    "first dimension one larger": on_first_array(one_larger(0)),
    "last dimension one larger": on_first_array(one_larger(-1)),
    "another dtype": on_first_array(other_dtype),
}


def labels() -> list[str]:
    """The labels of constraints that shape rules check."""
    files = (collectives, control, elementwise, indexing, linear, movement, regions)
    return sorted({label for f in files for label in re.findall(r'"([A-Z]+\d+)"', inspect.getsource(f))})


def label_mutants() -> Iterator[Mutant]:
    for label in labels():
        yield Mutant(f"hlo/INFER/{label} unchecked", label, partial(leave_out, label), (label,))


def leave_out(label: str) -> None:
    """Where the constraint is broken, what the text says is taken for right."""
    for op, rule in INFER.items():

        def lenient(i: Instruction, rule: ShapeRule = rule) -> Shape:
            try:
                return rule(i)
            except VerificationError as error:
                if f"[{label}]" in str(error):
                    return i.shape
                raise

        INFER[op] = lenient


def record(note: Note) -> None:
    for op, rule in INFER.items():

        def noting(i: Instruction, op: Op = op, rule: ShapeRule = rule) -> Any:
            try:
                shape = rule(i)
            except VerificationError as error:
                for label in re.findall(r"\[([A-Z]+\d+)\]", str(error)):
                    note(label)
                raise
            for what, change in SHAPE_CHANGES.items():
                if change(shape) is not shape:
                    note(f"INFER/{op.value}/{what}")
            return shape

        INFER[op] = noting


ROOM = Room(("hlo", "formats", "evaluator/test_evaluator_opcodes.py"), mutants, record)
