"""Elementwise kernels are short vector code: conversions from floats to integers, which saturate, erf and tanh."""

import re

import numpy as np
import pytest

from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

LEVELS = ("x86-64-v3", "x86-64-v4")
STACKS = ("legacy", "mlir")
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")


def machine_code(stack: str, level: str, text: str) -> str:
    """The assembly of a program's kernels, for a processor that this machine need not have."""
    options = EmitOptions(Target.level(level), ranges=False)
    return assembly(emitter(stack).emit(plan(optimize(parse_module(text))).emitted, options).llvm_ir, options)


def conversion(source: str, target: str, count: int, name: str = "m") -> str:
    body = f"  p = {source}[{count}] parameter(0)\n  ROOT r = {target}[{count}] convert(p)"
    return f"HloModule {name}\nENTRY e {{\n{body}\n}}\n"


def function(op: str, dtype: str) -> str:
    return f"HloModule m\nENTRY e {{\n  p = {dtype}[4096] parameter(0)\n  ROOT r = {dtype}[4096] {op}(p)\n}}\n"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("source", FLOATS)
def test_integers_are_converted_in_vectors(source: str, stack: str, level: str):
    for target in INTEGERS:
        if level == "x86-64-v3" and target in ("s64", "u64"):
            continue  # AVX2 has no such instruction
        code = machine_code(stack, level, conversion(source, target, 4096))
        assert re.search(r"\bvcvttp[sd]2u?(dq|qq)\b", code), target
        assert not re.search(r"\bvcvtts[sd]2u?si\b", code), target


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", FLOATS)
def test_integers_saturate(source: str, level: str):
    kind, bits = DType(source).numpy, f"u{DType(source).bytes}"
    few = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.99, -0.99, 1.0, -1.0, 1e-30, 1e30, -1e30]
    for target in INTEGERS:
        width, signed = DType(target).bits, DType(target).is_signed
        low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
        with np.errstate(over="ignore"):
            x = np.array([*few, *(end + more for end in (low, high) for more in (-1, -0.5, 0, 0.5))]).astype(kind)
            ends = np.array([low + 1, high]).astype(kind).view(bits)
        beside = np.concatenate([ends - ends.dtype.type(1), ends + ends.dtype.type(1)]).view(kind)
        with code_for(level):
            check(conversion(source, target, 96, f"m_{level.replace('-', '_')}"), [np.resize(np.append(x, beside), 96)])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stack", STACKS)
def test_an_erf_is_two_polynomials(stack: str, level: str):
    """A quotient or an exponential beside them took twice as long as XLA's function."""
    code = machine_code(stack, level, function("erf", "f32"))
    assert not re.search(r"\bv(div|psll|cvt)\w+", code)
    assert 10 <= len(re.findall(r"\bvf?n?m(?:add|sub|ul)\w*ps\b", code)) <= 18


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stack", STACKS)
def test_a_tanh_of_doubles_has_one_quotient_and_one_power_of_two(stack: str, level: str):
    code = machine_code(stack, level, function("tanh", "f64"))
    assert [len(re.findall(rf"\bv{name}\b", code)) for name in ("divpd", "psllq")] == [1, 1]
    assert not re.search(r"\bvpsra", code) and len(re.findall(r"\bvf?n?m(?:add|sub|ul)\w*pd\b", code)) <= 18


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stack", STACKS)
def test_what_is_around_a_power_of_doubles_is_vectors(stack: str, level: str):
    """The C library's function takes one element at a time; what flushes its operands does not, and nothing follows."""
    shape = "f64[4096]"
    text = f"HloModule m\nENTRY e {{\n  p = {shape} parameter(0)\n  q = {shape} parameter(1)\n"
    code = machine_code(stack, level, f"{text}  ROOT r = {shape} power(p, q)\n}}\n")
    before, _, after = code.partition("pow@PLT")
    assert re.search(r"\bvcmp\w*pd\b", before) and not re.search(r"\bvu?com\w*|\bvcmp\w*sd\b", code)
    assert not re.search(r"\bv(p?cmp|p?and|blend)\w*", after)
