"""The opset table: one complete row an opcode, and lists derived from it."""

import ast
import subprocess
import sys

import numpy as np
import pytest

from ...evaluator.reference.lifting import lift
from ...evaluator.rules import RULES, Form
from ...formats.proto.rows import CALLED, COMMON, ROWS
from ...formats.text.parse_attributes import ATTRIBUTES
from ...formats.text.parse_instructions import ORDER
from ...hlo import opset
from ...hlo.dtypes import COMPLEX, FLOAT, SIGNED, DType
from ...hlo.grammar import ALLOWED
from ...hlo.ir import Instruction
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import Family
from ...hlo.shapes import array


def test_every_opcode_has_one_row():
    assert set(OPSET) == set(Op)
    assert len(OPSET) == 133


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


def test_what_is_elementwise_has_a_reference_on_whole_arrays():
    families = Family.UNARY, Family.BINARY, Family.TERNARY, Family.CONVERT
    on_arrays = {op for op, reference in RULES.items() if reference.form is not Form.RULE}
    assert on_arrays == set(opset.opcodes(families)) == ELEMENTWISE - {Op.COPY}  # a copy may hold a tuple
    assert Op.COPY in ELEMENTWISE


@pytest.mark.parametrize("op", [o for o, r in RULES.items() if r.form is Form.NUMPY], ids=lambda o: o.value)
def test_numpy_references_take_every_dtype_of_their_row(op: Op):
    row, reference = OPSET[op], RULES[op]
    for dtype in sorted(row.dtypes, key=lambda d: d.value):
        operands = tuple(Instruction(Op.PARAMETER, f"p{n}", array(dtype, 3)) for n in range(row.low))
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
            out = lift(reference.function, instruction, precise=reference.precise)(*ones)
        assert out.dtype == result.numpy, (op, dtype)
        assert out.shape == (3,)


def test_every_attribute_has_a_form_in_text_and_a_proto_s_attributes_may_stand_in_text():
    assert {key for keys in ALLOWED.values() for key in keys} == set(ATTRIBUTES) - ORDER
    for op, keys in (*ROWS.items(), *CALLED.items()):
        assert {key.removesuffix("!") for key in (*keys, *COMMON)} <= ALLOWED[op], op


def with_attribute(op: Op, key: str) -> str:
    """A module whose root has the attribute `key` with an invalid value."""
    operands = {
        Op.PARAMETER: "3",
        Op.CONSTANT: "1",
        Op.ASYNC_DONE: "s",
        Op.ASYNC_UPDATE: "s",
        Op.CONDITIONAL: "i, p, p" if key == "branch_computations" else "b, p, p",
    }.get(op, ", ".join("p" * (OPSET[op].low or min(1, OPSET[op].high))))
    shapes = dict.fromkeys((Op.ASYNC_START, Op.ASYNC_UPDATE), "((f32[]), f32[], u32[])")
    shape = shapes.get(op, "(f32[])" if op in (Op.RECV, Op.TUPLE) else "f32[]")
    return f"""HloModule m
c {{ ROOT x = f32[] parameter(0) }}
ENTRY e {{
  p = f32[] parameter(0)
  b = pred[] parameter(1)
  i = s32[] parameter(2)
  s = ((f32[]), f32[], u32[]) async-start(p), calls=c
  ROOT r = {shape} {op.value}({operands}), {key}=@
}}"""


@pytest.mark.xla
def test_each_opcode_has_the_attributes_that_xla_reads():
    hlo = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib")
    otherwise = {(Op.CALL, "output_to_operand_aliasing"), (Op.RAGGED_DOT, "algorithm")}  # as protos have them
    newer = {(Op.TOPK, "is_stable"), (Op.COMPARE, "order"), (Op.CONVOLUTION, "algorithm")}  # jaxlib 0.12 reads them
    newer |= {(Op.DOT, "sparsity_config"), (Op.ASYNC_UPDATE, "output_to_operand_aliasing")}
    for op in ALLOWED:
        for key in ATTRIBUTES:
            with pytest.raises(Exception, match="Syntax error") as raised:
                hlo.hlo_module_from_text(with_attribute(op, key))
            read = f'unexpected attribute "{key}"' not in str(raised.value)
            assert (key in ALLOWED[op] or (op, key) in newer) == (read or (op, key) in otherwise | newer), (op, key)


def test_rows_restrict_dtypes():
    assert OPSET[Op.TANH].dtypes == FLOAT | COMPLEX
    assert DType.PRED not in OPSET[Op.NEGATE].dtypes
    assert OPSET[Op.REMAINDER].dtypes >= SIGNED
    assert not COMPLEX & OPSET[Op.REMAINDER].dtypes


def test_importing_the_evaluator_loads_no_scipy():
    code = "import sys, testbed.evaluator.evaluator; print(sorted({m.split('.')[0] for m in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    loaded = ast.literal_eval(run.stdout)
    assert "testbed" in loaded and "scipy" not in loaded
