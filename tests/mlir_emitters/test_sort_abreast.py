"""Short rows that are sorted side by side in vectors, of every width of vectors and keys."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.keyed_sorts import COMPARATORS, JAX, KEYS, ORDERED, SPECIAL, agree, keys, order_of, sort_text
from ..support.processors import code_for

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
LENGTHS = (2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 100)
LESS, GREATER = "compare(a0, b0), direction=LT", "compare(a0, b0), direction=GT"


def places(dims: tuple[int, ...]) -> np.ndarray:
    """A payload that tells where an element was."""
    return np.arange(np.prod(dims), dtype=np.int32).reshape(dims)


def kernel(text: str, level: str = "x86-64-v4") -> str:
    """The kernel's MLIR."""
    (request,) = plan(parse_module(text)).kernels
    options = EmitOptions(Target.level(level), keep_stages=True)
    return dict(emitter("mlir").emit([request], options).stages)["mlir"]


def is_abreast(text: str, level: str = "x86-64-v4") -> bool:
    """Whether a kernel exchanges vectors, and does not insert element by element."""
    made = kernel(text, level)
    exchanges = any(
        f"arith.{op}" in line and "vector<" in line for line in made.splitlines() for op in ("select", "minsi")
    )
    assert not exchanges or "scf.while" not in made
    return exchanges


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", KEYS, ids=lambda d: d.value)
def test_keys_of_all_types(dtype, level):
    """The total order with all values, and the partial one of floats with equal zeros; alone and in pairs."""
    orders = {order_of(dtype): SPECIAL, "": SPECIAL[:ORDERED] if dtype.is_float else SPECIAL}
    with code_for(level):
        for order, values in orders.items():
            x = keys(dtype, (37, 11), 1, len(values))
            agree(sort_text(dtype, x.shape, LESS + order), [x])
            agree(sort_text(dtype, x.shape, GREATER + order, 0), [x])
            agree(sort_text(dtype, x.shape, LESS + order, 0, ("s32",)), [x, places(x.shape)])
            agree(sort_text(dtype, x.shape, GREATER + order, 1, ("s32",)), [x, places(x.shape)])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length, level):
    with code_for(level):
        for dtype in (DType.F32, DType.U8):
            x = keys(dtype, (length, 40), length, ORDERED)
            agree(sort_text(dtype, x.shape, LESS, 0, ("s32",)), [x, places(x.shape)])
            agree(sort_text(dtype, (41, length), GREATER), [keys(dtype, (41, length), length, ORDERED)])


@pytest.mark.parametrize("layout", ["{2,1,0}", "{0,1,2}", "{1,0,2}"])
@pytest.mark.parametrize("dims, dimension", [((12, 5, 21), 0), ((21, 12, 5), 1), ((5, 21, 12), 2), ((8, 12, 3), 1)])
def test_dimensions_and_layouts_with_payloads_of_all_widths(dims, dimension, layout):
    x, random = keys(DType.S16, dims, 2), np.random.default_rng(3)
    payloads = {"u8": random.integers(0, 99, dims).astype(np.uint8), "f64": random.normal(size=dims)}
    payloads["c64"] = (random.normal(size=dims) + 1j).astype(np.complex64)
    text = sort_text(DType.S16, dims, LESS, dimension, tuple(payloads), layout)
    assert is_abreast(text)
    agree(text, [x, *payloads.values()])


def test_the_keys_that_jax_compares_and_keys_of_other_operands():
    x = keys(DType.F32, (40, 13), 7)
    compare = "compare(ak, bk), direction=LT, type=TOTALORDER"
    text = sort_text(DType.F32, x.shape, compare, payloads=("s32",), body=JAX)
    assert is_abreast(text)
    agree(text, [x, places(x.shape)])
    body = "ai = s32[] negate(a1)\nbi = s32[] negate(b1)"
    agree(sort_text(DType.F32, x.shape, "compare(ai, bi), direction=GT", 1, ("s32",), body=body), [x, places(x.shape)])
    agree(sort_text(DType.F32, x.shape, "compare(b1, a1), direction=LT", 1, ("s32",)), [x, places(x.shape)])


@pytest.mark.parametrize("bounds", [(0, 1), (0, 5), (3, 9), (16, 17), (0, 17)])
def test_parts_of_rows(bounds):
    first, last = bounds
    types = [f"{t}[40,{last - first}]" for t in ("f32", "s32")]
    cuts = [f"{t} slice(s{n}), slice={{[0:40], [{first}:{last}]}}" for n, t in enumerate(types)]
    root = f"f = {cuts[0]}\n  g = {cuts[1]}\n  ROOT r = ({', '.join(types)}) tuple(f, g)"
    x = keys(DType.F32, (40, 17), 10)
    text = sort_text(DType.F32, x.shape, GREATER + ", type=TOTALORDER", payloads=("s32",), root=root)
    agree(text, [x, places(x.shape)])


def test_what_is_computed_on_its_way_into_the_rows_and_rows_sorted_in_place():
    text = """HloModule m
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=LT }
ENTRY e { x = f32[40,9] parameter(0)
  w = f32[9,9] parameter(1)
  d = f32[40,9] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[40,9] sort(d), dimensions={1}, to_apply=less
  n = f32[40,9] negate(s)
  t = f32[40,9] sort(n), dimensions={0}, to_apply=less
  ROOT e = f32[40,9] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    agree(text, [np.random.default_rng(0).integers(-9, 9, s).astype(np.float32) for s in ((40, 9), (9, 9))])


def test_a_partial_order_permutes_nans_and_sorts_the_rest():
    x = keys(DType.F32, (37, 12), 6)
    options = CompileOptions(cache=None, red_zones=True)
    (found,) = compile_module(parse_module(sort_text(DType.F32, x.shape, LESS)), Flags.parse("mlir"), options).execute(
        [x]
    )
    for row, given in zip(found, x, strict=True):
        assert sorted(row.view(np.uint32)) == sorted(given.view(np.uint32))
        finite = row[np.isfinite(row)]
        assert (np.diff(np.where(np.abs(finite) < 1.2e-38, 0, finite)) >= 0).all()


@pytest.mark.parametrize("level", LEVELS)
def test_many_short_rows_are_exchanged_in_vectors(level):
    for dtype, dims, dimension in ((DType.F16, (16, 4096), 0), (DType.F32, (4096, 8), 1), (DType.F64, (4096, 2), 1)):
        assert is_abreast(sort_text(dtype, dims, LESS, dimension), level)
        assert is_abreast(sort_text(dtype, dims, LESS, dimension, ("s32",)), level)


def test_other_rows_are_not():
    assert not is_abreast(sort_text(DType.F32, (4, 16), LESS))
    assert not is_abreast(sort_text(DType.F32, (100, 1000), LESS))
    pairs = sort_text(DType.S64, (1000, 100), LESS, payloads=("s32",))  # longer: a sort by digits skips most of them
    assert is_abreast(sort_text(DType.S64, (1000, 70), LESS, payloads=("s32",))) and not is_abreast(pairs)
    for name, (body, compare, known) in COMPARATORS.items():
        text = sort_text(DType.S32, (600, 8), compare, payloads=("s32",), body=body)
        assert is_abreast(text) == known, name


def test_keys_that_tell_the_elements_are_not_beside_them():
    """Vectors of keys alone are exchanged without flags."""
    for order, alone in ((", type=TOTALORDER", True), ("", False)):
        made = kernel(sort_text(DType.F32, (4096, 8), LESS + order))
        assert ("arith.maxsi" in made) == alone
