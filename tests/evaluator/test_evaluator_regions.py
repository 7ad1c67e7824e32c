"""The evaluator's regions, loops and branches, random bits, errors and external effects."""

import numpy as np
import pytest

from ...evaluator.reference.random import philox_4x32, three_fry_2x32
from ...hlo.errors import InputError, UnsupportedError
from ..support.evaluated import REGIONS, run

# --- regions ---------------------------------------------------------------------------------------------------------


def test_reduce_of_pairs():
    argmax = """f { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GE
  v = f32[] select(c, a, b)
  k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k) }
"""
    body = """  p = f32[3,5000] parameter(0)
  i = s32[3,5000] iota(), iota_dimension=1
  n = f32[] constant(-inf)
  z = s32[] constant(-1)
  ROOT r = (f32[3], s32[3]) reduce(p, i, n, z), dimensions={1}, to_apply=f"""
    x = np.random.default_rng(0).integers(0, 100, (3, 5000)).astype(np.float32)
    values, indices = run(body, x, computations=argmax)
    assert values.tolist() == x.max(1).tolist()
    assert indices.tolist() == x.argmax(1).tolist()


def test_a_region_with_control_flow_runs_element_by_element():
    region = """one { p = s32[] parameter(0)
  ROOT n = s32[] negate(p) }
two { ROOT p = s32[] parameter(0) }
f { x = s32[] parameter(0)
  z = s32[] constant(0)
  c = pred[] compare(x, z), direction=LT
  ROOT r = s32[] conditional(c, x, x), true_computation=one, false_computation=two }
"""
    body = "  p = s32[2,2] parameter(0)\n  ROOT r = s32[2,2] map(p), dimensions={0,1}, to_apply=f"
    assert run(body, [[-1, 2], [3, -4]], computations=region)[0].tolist() == [[1, 2], [3, 4]]


def test_long_sums_do_not_lose_precision():
    x = np.full(200_000, 0.1, np.float32)
    body = (
        "  p = f32[200000] parameter(0)\n  z = f32[] constant(0)\n"
        "  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add"
    )
    assert abs(float(run(body, x, computations=REGIONS)[0]) - x.astype(np.float64).sum()) < 2e-3


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_long_sums_of_windows_do_not_lose_precision(dtype: str):
    """Each of 131 ones was lost beside a start of 2048."""
    region = f"f {{ a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n  ROOT s = {dtype}[] add(a, b) }}\n"
    body = f"""  o = {dtype}[] constant(1)
  p = {dtype}[200] broadcast(o), dimensions={{}}
  z = {dtype}[] constant(2048)
  ROOT r = {dtype}[2] reduce-window(p, z), window={{size=131 stride=69}}, to_apply=f"""
    (found,) = run(body, computations=region)
    assert found.astype(np.float64).tolist() == [2180.0 if dtype == "f16" else 2176.0] * 2


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("dims", ["", "0"])
def test_of_two_zeros_a_maximum_takes_the_positive_one(dtype, dims):
    name = f"f{np.dtype(dtype).itemsize * 8}"
    result = name + ("[]" if dims else "[2]")
    for op, start, wanted in (("maximum", -0.0, 0.0), ("minimum", 0.0, -0.0)):
        region = f"f {{ a = {name}[] parameter(0)\n  b = {name}[] parameter(1)\n  ROOT m = {name}[] {op}(a, b) }}\n"
        body = f"  p = {name}[2] parameter(0)\n  z = {name}[] constant({start})\n"
        body += f"  ROOT r = {result} reduce(p, z), dimensions={{{dims}}}, to_apply=f"
        (found,) = run(body, np.full(2, wanted, dtype), computations=region)
        assert (np.signbit(found) == np.signbit(wanted)).all(), op


def test_sort_is_stable_and_carries_values():
    by_key = """f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT }
"""
    keys = np.random.default_rng(1).integers(0, 5, (4, 37)).astype(np.int32)
    body = """  p = s32[4,37] parameter(0)
  i = s32[4,37] iota(), iota_dimension=1
  ROOT r = (s32[4,37], s32[4,37]) sort(p, i), dimensions={1}, is_stable=true, to_apply=f"""
    values, order = run(body, keys, computations=by_key)
    expected = np.argsort(-keys, axis=1, kind="stable")
    assert order.tolist() == expected.tolist()
    assert values.tolist() == np.take_along_axis(keys, expected, 1).tolist()


def test_an_inconsistent_comparator_still_gives_a_permutation():
    never = """f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] constant(true) }
"""
    x = np.arange(50, dtype=np.int32)
    body = "  p = s32[50] parameter(0)\n  ROOT r = s32[50] sort(p), dimensions={0}, to_apply=f"
    out = run(body, x, computations=never)
    assert sorted(out[0].tolist()) == x.tolist()


def test_ragged_dot():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(11, 5)).astype(np.float32), rng.normal(size=(3, 5, 7)).astype(np.float32)
    rows = [slice(0, 4), slice(4, 9), slice(9, 11)]
    body = """  p = f32[11,5] parameter(0)
  q = f32[3,5,7] parameter(1)
  g = s32[3] parameter(2)
  ROOT r = f32[11,7] ragged-dot(p, q, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0},
    rhs_group_dims={0}"""
    expected = np.concatenate([x[r] @ y[g] for g, r in enumerate(rows)])
    assert np.allclose(run(body, x, y, [4, 5, 2])[0], expected, atol=1e-5)
    z = rng.normal(size=(11, 7)).astype(np.float32)
    body = """  p = f32[11,5] parameter(0)
  q = f32[11,7] parameter(1)
  g = s32[3] parameter(2)
  ROOT r = f32[3,5,7] ragged-dot(p, q, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}"""
    assert np.allclose(run(body, x, z, [4, 5, 2])[0], np.stack([x[r].T @ z[r] for r in rows]), atol=1e-5)


def test_scaled_dot_repeats_each_scale_over_its_block():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=(6, 2)).astype(np.float32)
    s, t = rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=(2, 2)).astype(np.float32)
    body = """  p = f32[4,6] parameter(0)
  q = f32[6,2] parameter(1)
  s = f32[4,3] parameter(2)
  t = f32[2,2] parameter(3)
  ROOT r = f32[4,2] scaled-dot(p, q, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    expected = (x * np.repeat(s, 2, 1)) @ (y * np.repeat(t, 3, 0))
    assert np.allclose(run(body, x, y, s, t)[0], expected, atol=1e-5)


# --- control ---------------------------------------------------------------------------------------------------------

LOOP = """c { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3000)
  ROOT r = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2] add(x, x)
  h = f32[2] constant({0.5, 0.5})
  w = f32[2] multiply(y, h)
  ROOT t = (s32[], f32[2]) tuple(j, w) }
"""


def test_a_loop_of_thousands():
    body = "  i = s32[] constant(0)\n  p = f32[2] parameter(0)\n  t = (s32[], f32[2]) tuple(i, p)\n"
    count, x = run(body + "  ROOT w = (s32[], f32[2]) while(t), condition=c, body=b", [1.5, 2.5], computations=LOOP)
    assert (int(count), x.tolist()) == (3000, [1.5, 2.5])


def test_a_loop_whose_state_stands_still_ends():
    loop = "c { s = s32[] parameter(0)\n  ROOT r = pred[] constant(true) }\nb { ROOT s = s32[] parameter(0) }\n"
    assert run("  p = s32[] parameter(0)\n  ROOT w = s32[] while(p), condition=c, body=b", 4, computations=loop) == [4]


@pytest.mark.parametrize(("index", "expected"), [(0, 1), (1, 2), (2, 3), (7, 3), (-1, 3)])
def test_a_branch_index_out_of_range_takes_the_last(index: int, expected: int):
    branches = "".join(f"b{n} {{ p = s32[] parameter(0)\n  ROOT c = s32[] constant({n + 1}) }}\n" for n in range(3))
    body = "  i = s32[] parameter(0)\n  ROOT r = s32[] conditional(i, i, i, i), branch_computations={b0, b1, b2}"
    assert run(body, index, computations=branches)[0] == expected


def test_results_are_copies():
    x = np.ones(3, np.float32)
    (out,) = run("  ROOT p = f32[3] parameter(0)", x)
    out[0] = 5
    assert x[0] == 1


def test_dynamic_sizes():
    body = """  p = s32[4] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=4] set-dimension-size(p, n), dimensions={0}
  e = s32[<=4] add(d, p)
  z = s32[] constant(0)
  s = s32[] reduce(e, z), dimensions={0}, to_apply=addi
  g = s32[] get-dimension-size(e), dimensions={0}
  ROOT t = (s32[], s32[]) tuple(s, g)"""
    assert [int(v) for v in run(body, [1, 2, 30, 40], 2, computations=REGIONS)] == [6, 2]


# --- random bits -----------------------------------------------------------------------------------------------------


def test_three_fry_known_answers():
    """Random123's known answers for threefry2x32, 20 rounds."""
    for counter, key, expected in [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ]:
        out = three_fry_2x32(key, *[np.array([c], np.uint32) for c in counter])
        assert tuple(int(v[0]) for v in out) == expected


def test_philox_known_answers():
    """Random123's known answers for philox4x32, 10 rounds."""
    for counter, key, expected in [
        ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ]:
        out = philox_4x32(key, [np.array([c], np.uint32) for c in counter])
        assert tuple(int(v[0]) for v in out) == expected


def test_rng_follows_the_seed():
    body = "  a = f32[] constant(2)\n  b = f32[] constant(3)\n  ROOT r = f32[1000] rng(a, b), distribution=rng_uniform"
    first, again, other = (run(body, seed=s)[0] for s in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
    assert first.min() >= 2 and first.max() < 3


# --- errors and the world outside ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "m takes 2 inputs"),
        ([np.zeros(2, np.float32), np.zeros(3, np.float32)], "input 0 (p) must be f32[3], got f32[2]"),
        ([np.zeros(3, np.float32), np.zeros(3, np.int64)], "input 1 (q) must be f32[3], got s64[3]"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[np.ndarray], message: str):
    with pytest.raises(InputError) as error:
        run("  p = f32[3] parameter(0)\n  q = f32[3] parameter(1)\n  ROOT r = f32[3] add(p, q)", *inputs)
    assert message in str(error.value)


def test_a_call_for_the_seed_of_the_run_has_a_remedy():
    with pytest.raises(UnsupportedError, match=r"custom-call\(GetRngSeed\) \(.*replace it by a u64\[\] constant"):
        run('  ROOT r = u64[] custom-call(), custom_call_target="GetRngSeed"')


def test_an_unknown_custom_call_names_near_ones():
    body = '  p = f32[2,2] parameter(0)\n  ROOT r = f32[2,2] custom-call(p), custom_call_target="lapack_spotrff_ffi"'
    with pytest.raises(UnsupportedError) as error:
        run(body, np.eye(2, dtype=np.float32))
    assert "custom-call(lapack_spotrff_ffi)" in error.value.what
    assert "lapack_spotrf_ffi" in str(error.value)
    assert run(body, np.eye(2, dtype=np.float32), custom_calls={"lapack_spotrff_ffi": lambda i, o, c: o[0] + 1})[
        0
    ].tolist() == [[2, 1], [1, 2]]


def test_elided_constants_are_refused():
    with pytest.raises(UnsupportedError, match=r"constant\(\{\.\.\.\}\)"):
        run("  ROOT c = f32[1000] constant({...})")


def test_infeed_outfeed_send_and_recv():
    body = """  a = token[] after-all()
  i = ((f32[2]), token[]) infeed(a)
  t = (f32[2]) get-tuple-element(i), index=0
  x = f32[2] get-tuple-element(t), index=0
  s = (f32[2], u32[], token[]) send(x, a), channel_id=3
  d = token[] send-done(s), channel_id=3
  v = (f32[2], u32[], token[]) recv(d), channel_id=3
  w = (f32[2], token[]) recv-done(v), channel_id=3
  y = f32[2] get-tuple-element(w), index=0
  o = token[] outfeed(y, a), outfeed_shape=f32[2]
  ROOT r = f32[2] negate(y)"""
    sent: list = []
    value = np.array([1, 2], np.float32)
    assert run(body, infeed=[(value,)], outfeed=sent)[0].tolist() == [-1, -2]
    assert [v.tolist() for v in sent] == [[1, 2]]
    with pytest.raises(InputError, match="infeed that is empty"):
        run(body)


def test_collectives_of_one_device_and_refusal_of_more():
    one = "  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), replica_groups={{0}}, to_apply=add"
    assert run(one, [1.0, 2.0], computations=REGIONS)[0].tolist() == [1, 2]
    with pytest.raises(UnsupportedError, match="all-reduce across devices"):
        run(one.replace("{{0}}", "{{0,1}}"), [1.0, 2.0], computations=REGIONS)


def test_asynchronous_pairs():
    body = """  p = f32[2] parameter(0)
  s = (f32[2], f32[2], u32[]) copy-start(p)
  c = f32[2] copy-done(s)
  a = ((f32[2]), f32[2], s32[]) async-start(c), calls=neg
  u = ((f32[2]), f32[2], s32[]) async-update(a)
  ROOT d = f32[2] async-done(u)"""
    neg = "neg { p = f32[2] parameter(0)\n  ROOT n = f32[2] negate(p) }\n"
    assert run(body, [1.0, 2.0], computations=neg)[0].tolist() == [-1, -2]
