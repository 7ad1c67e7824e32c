"""migration/units.py: every opcode that a stack emits is in one unit, every element type in one class."""

from ...hlo.dtypes import NUMPY, DType
from ...hlo.library.calls import LIBRARY
from ...hlo.opcodes import Op
from ...legacy.kernel import RULES as LEGACY_RULES
from ...legacy.numerics.elementwise import EMIT as LEGACY_EMIT
from ...migration.choose import STRUCTURE
from ...migration.names import WITH_ROWS
from ...migration.units import CLASSES, UNITS, pairs_of, row_names
from ...mlir_emitters.kernel import RULES as MLIR_RULES
from ...mlir_emitters.numerics.elementwise import EMIT as MLIR_EMIT


def test_every_opcode_that_a_stack_emits_is_in_one_unit():
    emitted = LEGACY_RULES.keys() | LEGACY_EMIT.keys() | MLIR_RULES.keys() | MLIR_EMIT.keys()
    emitted -= STRUCTURE | LIBRARY | {Op.OPT_BARRIER}
    listed = [op for ops in UNITS.values() for op in ops]
    assert len(set(listed)) == len(listed) and emitted <= set(listed)


def test_every_element_type_is_in_one_class():
    listed = [dtype for dtypes in CLASSES.values() for dtype in dtypes]
    assert sorted(d.value for d in listed) == sorted(d.value for d in NUMPY)


def test_rows_are_the_product():
    names = row_names()
    assert names == sorted(names) and len(set(names)) == len(UNITS) * len(CLASSES) * len(WITH_ROWS)


def test_an_instruction_needs_the_rows_of_all_its_types():
    assert pairs_of(Op.COMPARE, (DType.F32, DType.PRED)) == {("elemental", "float"), ("elemental", "integer")}
    assert pairs_of(Op.TUPLE, (DType.F32,)) == set()
