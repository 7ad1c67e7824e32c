"""Sums of complex numbers side by side in memory on the MLIR stack: vectors of both parts, as they are loaded."""

from collections.abc import Iterator

import numpy as np
import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...mlir_emitters import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for


@pytest.fixture(params=["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def processor(request) -> Iterator[str]:
    with code_for(request.param):
        yield request.param


def sums(dtype: str, dims: str, reduced: str, layout: str = "", name: str = "m", initial: str = "(1, -2)") -> str:
    kept = [n for d, n in enumerate(dims.split(",")) if str(d) not in reduced.split(",")]
    return f"""HloModule {name.replace("-", "_")}
add {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT s = {dtype}[] add(a, b)
}}
ENTRY e {{
  x = {dtype}[{dims}]{layout} parameter(0)
  z = {dtype}[] constant({initial})
  ROOT r = {dtype}[{",".join(kept)}] reduce(x, z), dimensions={{{reduced}}}, to_apply=add
}}
"""


def drawn(dtype: str, dims: str) -> np.ndarray:
    generator = np.random.default_rng(0)
    parts = generator.standard_normal((2, *map(int, dims.split(","))))
    return (parts[0] + 1j * parts[1]).astype(np.complex64 if dtype == "c64" else np.complex128)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("length", [8, 9, 15, 16, 31, 33, 47, 63, 64, 100, 127, 130, 1000])
def test_rows_of_any_length(processor, dtype, length):
    """No vector, some, and all; each piece of what is left of a row."""
    check(sums(dtype, f"7,{length}", "1", name=processor), [drawn(dtype, f"7,{length}")])


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(
    ("dims", "reduced", "layout"),
    [
        ("6,5,9", "1,2", ""),  # one run
        ("6,5,9", "0,2", ""),  # a run for each of the first dimension
        ("6,5,9", "0,1", "{0,1,2}"),
        ("6,5,9", "1", "{1,0,2}"),
        ("70000", "0", ""),  # several blocks
        ("3,9001", "0,1", ""),
        ("40,9,500", "0,2", ""),
        ("1,12,1", "0,1,2", ""),
        ("5,3", "1", ""),  # too short a run
        ("4,0", "1", ""),
    ],
)
def test_dimensions(processor, dtype, dims, reduced, layout):
    check(sums(dtype, dims, reduced, layout, processor), [drawn(dtype, dims)])


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_infinities_nans_and_signs_of_zeros(processor, dtype):
    x = drawn(dtype, "6,77")
    x[0, 3], x[1, 70], x[2, 76], x[3, 9] = complex(np.inf, 1), complex(2, -np.inf), complex(0, np.nan), complex(np.nan)
    x[4], x[5] = complex(-0.0, 0.0), complex(0.0, -0.0)
    check(sums(dtype, "6,77", "1", name=processor, initial="(-0.0, -0.0)"), [x])


def test_long_sums_are_right_to_a_few_units(processor):
    """One chain of additions is off by 1e-3."""
    generator = np.random.default_rng(0)
    x = (generator.random(3_000_000) + 0.5j * generator.random(3_000_000)).astype(np.complex64)
    (result,) = check(sums("c64", "3000000", "0", name=processor, initial="(0, 0)"), [x], stacks=("mlir",))
    wanted = x.astype(np.complex128).sum()
    assert abs(result.real / wanted.real - 1) < 3e-7 and abs(result.imag / wanted.imag - 1) < 3e-7


@pytest.mark.parametrize(("dims", "reduced"), [("256,1024", "1"), ("16,64", "1"), ("1000,1000", "0,1")])
def test_vectors_are_added_as_they_are_loaded(dims, reduced):
    """A loop that parts real from imaginary numbers takes up to six times as long."""
    options = EmitOptions(Target.level("x86-64-v4"), keep_stages=True)
    module = emit(plan(parse_module(sums("c64", dims, reduced))).kernels[:1], options)
    text = dict(module.stages)["mlir"]
    loop = text[text.index("vector.load") :]
    assert "memref.load" not in loop[: loop.index("scf.yield")] and "vector<16xf32>" in loop
