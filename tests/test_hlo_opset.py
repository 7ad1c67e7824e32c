"""The opset table: one complete row an opcode, and lists derived from it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ..hlo import opset
from ..hlo.dtypes import COMPLEX, FLOAT, SIGNED, DType
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.opset import OPSET, Family, Form
from ..hlo.reference.lifting import lift
from ..hlo.shapes import array


def test_every_opcode_has_one_row():
    assert set(OPSET) == set(Op)
    assert len(OPSET) == 133


def test_a_missing_reference_says_why():
    for op, row in OPSET.items():
        assert (row.reference is None) == bool(row.reason), op


def test_families_have_the_sizes_of_the_language():
    sizes = {family: len(opset.opcodes([family])) for family in Family}
    assert sizes == {
        Family.UNARY: 33,
        Family.CONVERT: 4,
        Family.BINARY: 18,
        Family.TERNARY: 2,
        Family.SHAPE: 17,
        Family.REGION: 7,
        Family.LINALG: 10,
        Family.CONTROL: 13,
        Family.RNG: 3,
        Family.ASYNC: 5,
        Family.COLLECTIVE: 15,
        Family.IO: 6,
    }


def test_elementwise_is_derived_from_the_form_of_the_reference():
    families = Family.UNARY, Family.BINARY, Family.TERNARY, Family.CONVERT
    assert set(opset.opcodes(families)) == opset.ELEMENTWISE


@pytest.mark.parametrize("op", [o for o, r in OPSET.items() if r.form is Form.NUMPY], ids=lambda o: o.value)
def test_numpy_references_take_every_dtype_of_their_row(op: Op):
    row = OPSET[op]
    for dtype in sorted(row.dtypes, key=lambda d: d.value):
        operands = tuple(Instruction(Op.PARAMETER, f"p{n}", array(dtype, 3)) for n in range(row.arity[0]))
        result = dtype
        if op in (Op.ABS, Op.REAL, Op.IMAG):
            result = dtype.component
        elif op is Op.COMPLEX:
            result = {DType.F32: DType.C64, DType.F64: DType.C128}[dtype]
        elif op is Op.IS_FINITE:
            result = DType.PRED
        instruction = Instruction(op, "r", array(result, 3), operands)
        with np.errstate(all="ignore"):
            ones = [np.ones(3).astype(dtype.numpy)] * len(operands)
            out = lift(row.reference, instruction, precise=row.precise)(*ones)
        assert out.dtype == result.numpy, (op, dtype)
        assert out.shape == (3,)


def test_rows_restrict_dtypes():
    assert OPSET[Op.TANH].dtypes == FLOAT | COMPLEX
    assert DType.PRED not in OPSET[Op.NEGATE].dtypes
    assert OPSET[Op.REMAINDER].dtypes >= SIGNED
    assert not COMPLEX & OPSET[Op.CLAMP].dtypes


def test_importing_the_table_loads_no_scipy():
    package = opset.__name__.removesuffix(".hlo.opset")
    code = f"import sys; import {package}.hlo.evaluator; print(any(m.split('.')[0] == 'scipy' for m in sys.modules))"
    where = Path(__file__).resolve().parents[2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=where, check=False)
    if "No module named" in run.stderr:
        pytest.skip(f"{package} cannot be imported from {where}")
    assert run.stdout.strip() == "False", run.stderr
