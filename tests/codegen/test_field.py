"""Z_p twice: the functions that kernels are linked with, and the evaluator's, which share no code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ...codegen.errors import CodegenError
from ...codegen.field.element import Field, constant, constants, emitting
from ...codegen.field.names import function_name, integer_name
from ...codegen.field.rewrite import rewritten, split_operands
from ...codegen.field_code import build
from ...codegen.options import EmittedModule, Target
from ...evaluator.elements import Elements, special
from ...evaluator.field import field_rules
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op

FIELDS = [
    Field(4261412863, 970, 5),
    Field(65011, 21001, 7, -126, 7),
    Field(61441, 20011, 9, -14, 10),
    Field(223, 61, 11, -6, 3),
]
COUNT = 1000


def elements_of(field: Field) -> Elements:
    return Elements(field.prime, field.twist, field.seed, field.lowest, field.mantissa)


def compiled(text: str, field: Field, *types: type) -> ctypes._CFunctionType:
    code = build(EmittedModule(text), field, Target.host())
    function = ctypes.CFUNCTYPE(*types)(code.address("f"))
    function.code = code  # type: ignore[attr-defined]
    return function


def drawn(field: Field, count: int = COUNT, seed: int = 0) -> np.ndarray:
    """Random elements as f32, with zeros, infinities and NaN at the end."""
    v = np.random.default_rng(seed).integers(0, field.prime, count, np.uint64)
    return np.concatenate(
        [elements_of(field).write(v, np.dtype(np.float32)), np.float32([0, -0.0, np.inf, -np.inf, np.nan])]
    )


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: str(f.prime))
@pytest.mark.parametrize("op", ["fadd", "fsub", "fmul", "fdiv", "fma"])
def test_arithmetic_is_the_evaluators(field: Field, op: str) -> None:
    f = ctypes.c_float
    body = "%r = call float @llvm.fma.f32(float %a, float %b, float %c)" if op == "fma" else f"%r = {op} float %a, %b"
    declared = "declare float @llvm.fma.f32(float, float, float)\n" if op == "fma" else ""
    function = compiled(
        f"{declared}define float @f(float %a, float %b, float %c) {{\n  {body}\n  ret float %r\n}}\n", field, f, f, f, f
    )
    e = elements_of(field)
    a = drawn(field)
    b, c = (np.random.default_rng(n).permutation(a) for n in (1, 2))
    operation = {"fadd": e.add, "fsub": e.subtract, "fmul": e.multiply, "fdiv": e.divide}
    wanted = e.add(e.multiply(a, b), c) if op == "fma" else operation[op](a, b)
    found = np.array([function(*triple) for triple in zip(a, b, c, strict=True)], np.float32)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: str(f.prime))
def test_functions_are_the_evaluators(field: Field) -> None:
    f, a = ctypes.c_float, drawn(field)
    e = elements_of(field)
    name = function_name("tanh", "f32")
    function = compiled(
        f'declare float @"{name}"(float)\ndefine float @f(float %a) {{\n'
        f'  %r = call float @"{name}"(float %a)\n  ret float %r\n}}\n',
        field,
        f,
        f,
    )
    found = np.array([function(x) for x in a], np.float32)
    np.testing.assert_array_equal(found, e.drawn("tanh", a, limits=(1, -1)))
    assert len(np.unique(found)) > min(COUNT, field.prime) // 3


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: str(f.prime))
def test_conversions_are_the_evaluators(field: Field) -> None:
    a, e = drawn(field), elements_of(field)
    name = integer_name("s8", "f32")
    back = compiled(
        f'declare i8 @"{name}"(float)\n'
        f'define i8 @f(float %a) {{\n  %r = call i8 @"{name}"(float %a)\n  ret i8 %r\n}}\n',
        field,
        ctypes.c_int8,
        ctypes.c_float,
    )
    np.testing.assert_array_equal([back(x) for x in a], e.balanced(a).astype(np.int8))
    there = compiled(
        "define double @f(i32 %a) {\n  %r = sitofp i32 %a to double\n  ret double %r\n}\n",
        field,
        ctypes.c_double,
        ctypes.c_int32,
    )
    n = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, COUNT).astype(np.int32)
    np.testing.assert_array_equal([there(int(i)) for i in n], e.write(e.integers(n), np.dtype(np.float64)))


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: str(f.prime))
def test_constants_are_the_evaluators(field: Field) -> None:
    e = elements_of(field)
    values = np.float32([1, -1, 0.5, 3, 0.1, 1e-20, -7.25, 1e20, 0, -0.0, np.inf, -np.inf, np.nan])
    with emitting(field):
        found = [constant(float(v)) for v in values]
        array = constants(values, DType.F32)
    np.testing.assert_array_equal(np.float32(found), e.embed(values))
    np.testing.assert_array_equal(array, e.embed(values))
    assert np.signbit(array[9]) and constant(0.1) == 0.1


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: str(f.prime))
def test_fields_have_their_laws(field: Field) -> None:
    e = elements_of(field)
    a, b, c = (drawn(field, seed=n)[:COUNT] for n in range(3))
    np.testing.assert_array_equal(e.multiply(a, e.add(b, c)), e.add(e.multiply(a, b), e.multiply(a, c)))
    np.testing.assert_array_equal(e.add(e.add(a, b), c), e.add(a, e.add(b, c)))
    some = b != 0
    np.testing.assert_array_equal(e.multiply(e.divide(a, b), b)[some], a[some])
    np.testing.assert_array_equal(e.subtract(a, b), -e.subtract(b, a))
    np.testing.assert_array_equal(e.write(e.read(a), a.dtype), a)
    assert not special(a).any()


def test_vectors_and_sums_are_their_elements() -> None:
    field = FIELDS[0]
    text = """
declare float @llvm.vector.reduce.fadd.v8f32(float, <8 x float>)
define float @f(ptr %p, ptr %q) {
  %a = load <8 x float>, ptr %p, align 4
  %b = load <8 x float>, ptr %q, align 4
  %c = fmul contract <8 x float> %a, %b
  %r = call reassoc float @llvm.vector.reduce.fadd.v8f32(float 0.0, <8 x float> %c)
  ret float %r
}
"""
    function = compiled(text, field, ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p)
    e = elements_of(field)
    a, b = (drawn(field, 8, seed)[:8] for seed in (1, 2))
    wanted = np.float32(0)
    for x in e.multiply(a, b):
        wanted = e.add(np.asarray(wanted), np.asarray(x))
    assert function(a.ctypes.data, b.ctypes.data) == wanted


def test_memory_on_the_stack_is_filled() -> None:
    text = """
define i32 @f() {
  %a = alloca [4 x i32], align 16
  %b = alloca i32, i64 3, align 4
  %p = getelementptr i32, ptr %a, i64 3
  %q = getelementptr i32, ptr %b, i64 2
  %x = load i32, ptr %p, align 4
  %y = load i32, ptr %q, align 4
  %r = and i32 %x, %y
  ret i32 %r
}
"""
    code = build(EmittedModule(text), FIELDS[0], Target.host(), 0x3D)
    assert ctypes.CFUNCTYPE(ctypes.c_uint32)(code.address("f"))() == 0x3D3D3D3D


def test_what_has_no_meaning_is_refused() -> None:
    text = (
        "declare float @llvm.ldexp.f32.i32(float, i32)\ndefine float @f(float %a) {\n"
        "  %r = call float @llvm.ldexp.f32.i32(float %a, i32 3)\n  ret float %r\n}\n"
    )
    with pytest.raises(CodegenError, match=r"llvm\.ldexp\.f32\.i32 has no meaning over a field"):
        rewritten(text, FIELDS[0])


def test_operands_end_at_the_closing_bracket() -> None:
    assert split_operands("<2 x float> %a, <2 x float> <float 1.0, float 2.0>) #1") == [
        "<2 x float> %a",
        "<2 x float> <float 1.0, float 2.0>",
    ]
    assert split_operands("float %a, splat (float 2.0), !fpmath !0")[1] == "splat (float 2.0)"


def test_opcodes_without_a_meaning_have_no_rule() -> None:
    rules = field_rules(elements_of(FIELDS[0]))
    assert Op.RNG not in rules and Op.DOT in rules
