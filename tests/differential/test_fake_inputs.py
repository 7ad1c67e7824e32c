"""Fake inputs: equal for equal seeds; valid indices, sizes and initial values of reductions."""

import tracemalloc

import numpy as np
import pytest

from ...differential.fake_inputs import fake_inputs
from ...formats.text.parser import parse_module
from ..support.hlo_corpus import each


def inputs(body: str, seed: int = 0, computations: str = "") -> list[np.ndarray]:
    return fake_inputs(parse_module(f"HloModule m\n{computations}\nENTRY e {{\n{body}\n}}"), seed)


def test_same_seed_same_inputs():
    body = "  p = (f32[8], (s32[3], pred[4])) parameter(0)\n  ROOT r = f32[8] get-tuple-element(p), index=0"
    first, again, other = inputs(body, 1), inputs(body, 1), inputs(body, 2)
    assert [x.dtype.name for x in first] == ["float32", "int32", "bool"]
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert (first[0] != other[0]).any()
    assert (np.abs(first[0]) <= 1).all()


def test_what_is_drawn_in_blocks_is_what_is_drawn_at_once(monkeypatch):
    body = "ROOT p = (f16[1001], pred[77], c64[30,33], u8[999]) parameter(0)"
    wanted = inputs(body)
    monkeypatch.setattr(f"{fake_inputs.__module__}.BLOCK", 1000)
    for x, y in zip(wanted, inputs(body), strict=True):
        assert (x == y).all()
    monkeypatch.setattr(f"{fake_inputs.__module__}.BLOCK", 13)
    for x, y in zip(wanted, inputs(body), strict=True):
        assert (x == y).all()


def test_a_narrow_array_is_drawn_in_its_own_memory():
    tracemalloc.start()
    (x,) = inputs("ROOT p = f16[4000000] parameter(0)")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert x.nbytes <= most < 1.5 * x.nbytes


def test_dynamic_slice_starts_are_in_range():
    body = """  p = f32[10,7] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  ROOT r = f32[8,7] dynamic-slice(p, i, j), dynamic_slice_sizes={8,7}"""
    seen = {tuple(int(x) for x in inputs(body, seed)[1:]) for seed in range(30)}
    assert seen == {(0, 0), (1, 0), (2, 0)}


def test_indices_are_followed_through_calls_tuples_and_reshapes():
    inner = """f {
  t = (s32[2,1], f32[5,4]) parameter(0)
  i = s32[2,1] get-tuple-element(t), index=0
  x = f32[5,4] get-tuple-element(t), index=1
  ROOT g = f32[2,3,4] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
    index_vector_dim=1, slice_sizes={3,4}
}
"""
    body = """  p = s32[2] parameter(0)
  q = f32[5,4] parameter(1)
  i = s32[2,1] reshape(p)
  t = (s32[2,1], f32[5,4]) tuple(i, q)
  ROOT r = f32[2,3,4] call(t), to_apply=f"""
    values = np.concatenate([inputs(body, seed, inner)[0] for seed in range(20)])
    assert set(values.tolist()) == {0, 1, 2}


def test_scatter_indices_sorted_and_unique_as_promised():
    region = "f {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n"
    body = """  p = f32[30] parameter(0)
  i = s32[20,1] parameter(1)
  u = f32[20] parameter(2)
  ROOT r = f32[30] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, indices_are_sorted=true, to_apply=f"""
    indices = inputs(body, 3, region)[1].reshape(-1)
    assert (np.diff(indices) > 0).all()
    assert 0 <= indices.min() <= indices.max() < 30


@pytest.mark.parametrize(
    ("operation", "expected"), [("add", 0.0), ("multiply", 1.0), ("maximum", -np.inf), ("minimum", np.inf)]
)
def test_starts_of_reductions_are_identities(operation: str, expected: float):
    region = f"f {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] {operation}(a, b)\n}}\n"
    body = (
        "  p = f32[4] parameter(0)\n  z = f32[] parameter(1)\n  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=f"
    )
    assert inputs(body, 0, region)[1] == expected


def test_branch_index_picks_a_branch():
    branches = "".join(f"b{n} {{\n  ROOT p = f32[] parameter(0)\n}}\n" for n in range(3))
    body = """  i = s32[] parameter(0)
  x = f32[] parameter(1)
  ROOT r = f32[] conditional(i, x, x, x), branch_computations={b0, b1, b2}"""
    assert {int(inputs(body, seed, branches)[0]) for seed in range(30)} == {0, 1, 2}


@each("jax_programs", 6)
def test_programs_get_inputs_of_their_shapes(case):
    module = case.module()
    wanted = [(leaf.dtype.numpy, leaf.dims) for p in module.entry.parameters for _, leaf in p.shape.leaves()]
    assert [(x.dtype, x.shape) for x in fake_inputs(module, 5)] == wanted
