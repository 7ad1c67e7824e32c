"""Sums of a few complex numbers or integers beside each other in memory on the legacy stack: vectors of a row."""

from dataclasses import replace

import numpy as np
import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...legacy import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

OPTIONS = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512))


def text_of(dtype: str, dims: str, reduced: str, layout: str = "") -> str:
    kept = [n for d, n in enumerate(dims.split(",")) if str(d) not in reduced.split(",")]
    return f"""HloModule m
add {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT s = {dtype}[] add(a, b)
}}
ENTRY e {{
  x = {dtype}[{dims}]{layout} parameter(0)
  z = {dtype}[] constant((-0.0, -0.0))
  ROOT r = {dtype}[{",".join(kept)}] reduce(x, z), dimensions={{{reduced}}}, to_apply=add
}}
"""


def drawn(dtype: str, dims: str) -> np.ndarray:
    parts = np.random.default_rng(0).standard_normal((2, *map(int, dims.split(","))))
    return (parts[0] + 1j * parts[1]).astype(np.complex64 if dtype == "c64" else np.complex128)


def vectors(text: str, options: EmitOptions = OPTIONS) -> int:
    """Additions of the two halves of a row's sum in the code as it is emitted."""
    return emit(plan(parse_module(text)).kernels, options).llvm_ir.count("fadd <2 x float>")


@pytest.mark.parametrize("processor", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_rows_of_any_length(processor, dtype):
    with code_for(processor):
        for length in (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33):
            check(text_of(dtype, f"7,{length}", "1"), [drawn(dtype, f"7,{length}")], stacks=("evaluator", "legacy"))


@pytest.mark.parametrize(
    ("dims", "reduced", "layout"),
    [("6,3,4", "1,2", ""), ("6,5,9", "2,0", ""), ("6,5,7", "0", "{0,2,1}"), ("9", "0", "")],
)
def test_dimensions(dims, reduced, layout):
    check(text_of("c64", dims, reduced, layout), [drawn("c64", dims)], stacks=("evaluator", "legacy"))


def test_infinities_nans_and_signs_of_zeros():
    x = drawn("c64", "6,11")
    x[0, 3], x[1, 10], x[2, 7], x[3, 9] = complex(np.inf, 1), complex(2, -np.inf), complex(0, np.nan), complex(np.nan)
    x[4], x[5] = complex(-0.0, 0.0), complex(0.0, -0.0)
    check(text_of("c64", "6,11", "1"), [x], stacks=("evaluator", "legacy"))
    x[4:] = complex(-0.0, -0.0)
    (found,) = check(text_of("c64", "6,11", "1"), [x], stacks=("legacy",))
    assert np.signbit(found[4:].real).all() and np.signbit(found[4:].imag).all()


def test_rows_are_vectors():
    """Of eleven: of sixteen lanes, of four and of two."""
    assert vectors(text_of("c64", "70,11", "1")) == 2
    assert vectors(text_of("c64", "70,2", "1")) == 0


@pytest.mark.parametrize(("dims", "reduced"), [("70,11", "0"), ("3,4,70", "0,1")])
def test_columns_are_not(dims, reduced):
    assert vectors(text_of("c64", dims, reduced)) == 0


def test_strict_sums_are_in_order():
    assert vectors(text_of("c64", "70,11", "1"), replace(OPTIONS, strict=True)) == 0


def words(dtype: str, dims: str, reduced: str = "1") -> str:
    return text_of(dtype, dims, reduced).replace("(-0.0, -0.0)", "7")


@pytest.mark.parametrize("dtype", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_rows_of_integers_of_any_length(dtype):
    """They wrap."""
    info = np.iinfo(DType(dtype).numpy)
    for length in (7, 8, 9, 10, 11, 13, 15, 16):
        given = np.random.default_rng(0).integers(info.min, info.max, (33, length), info.dtype, endpoint=True)
        given[3] = info.max
        check(words(dtype, f"33,{length}"), [given], stacks=("evaluator", "legacy"))


def test_rows_of_integers_are_vectors():
    def joined(text: str) -> bool:
        return "add <4 x i" in emit(plan(parse_module(text)).kernels, OPTIONS).llvm_ir

    assert joined(words("s32", "70,9")) and joined(words("u16", "70,15")) and joined(words("s64", "70,8"))
    assert not any(
        map(joined, (words("s32", "70,8"), words("s32", "70,16"), words("s8", "70,9"), words("s32", "9,70", "0")))
    )
