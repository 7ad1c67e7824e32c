"""Attributes and operands of the evaluator's rows that no other test tells apart; results worked out by hand."""

import numpy as np
import pytest

from ..support.evaluated import run as evaluated
from ..support.simulated_devices import run

MINUS = """minus { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] subtract(x, y) }
"""

# (name, the root and its operands p0, p1, …, shapes of the operands, their values, the result)
ONE_DEVICE = [
    ("map", "f32[2] map(p0, p1), dimensions={0}, to_apply=minus", "f32[2] f32[2]", ([5, 1], [3, 4]), [2, -3]),
    (
        "batch-norm-inference",
        "f32[2,1] batch-norm-inference(p0, p1, p2, p3, p4), epsilon=1, feature_index=1",
        "f32[2,1] f32[1] f32[1] f32[1] f32[1]",
        ([[3], [5]], [2], [10], [1], [3]),  # (x - 1) / sqrt(3 + 1) · 2 + 10
        [[12], [14]],
    ),
    (
        "triangular-solve of a unit diagonal",
        "f32[2,1] triangular-solve(p0, p1), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
        "f32[2,2] f32[2,1]",
        ([[9, 9], [2, 9]], [[3], [7]]),  # x = 3, 2 x + y = 7
        [[3], [1]],
    ),
    (
        "triangular-solve of a transpose",
        "f32[2,1] triangular-solve(p0, p1), left_side=true, lower=true, transpose_a=TRANSPOSE",
        "f32[2,2] f32[2,1]",
        ([[2, 9], [3, 4]], [[14], [8]]),  # 4 y = 8, 2 x + 3 y = 14
        [[4], [2]],
    ),
    (
        "scaled-dot of a batch",
        (
            "f32[2,1,1] scaled-dot(p0, p1, p2, p3), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
            "rhs_contracting_dims={1}"
        ),
        "f32[2,1,1] f32[2,1,1] f32[2,1,1] f32[2,1,1]",
        ([[[2]], [[3]]], [[[5]], [[7]]], [[[1]], [[2]]], [[[1]], [[10]]]),
        [[[10]], [[420]]],
    ),
    (
        "batched dot of several dimensions",
        (
            "f32[2,3] dot(p0, p1), lhs_batch_dims={1,0}, rhs_batch_dims={0,1}, lhs_contracting_dims={}, "
            "rhs_contracting_dims={}"
        ),
        "f32[3,2] f32[2,3]",
        ([[1, 2], [3, 4], [5, 6]], [[1, 10, 100], [1, 10, 100]]),
        [[1, 30, 500], [2, 40, 600]],
    ),
]


@pytest.mark.parametrize(
    ("root", "shapes", "values", "expected"), [c[1:] for c in ONE_DEVICE], ids=[c[0] for c in ONE_DEVICE]
)
def test_a_row_on_one_device(root, shapes, values, expected):
    parameters = "".join(f"  p{n} = {shape} parameter({n})\n" for n, shape in enumerate(shapes.split()))
    inputs = [np.array(v, np.float32) for v in values]
    result = evaluated(f"{parameters}  ROOT r = {root}", *inputs, computations=MINUS)[0]
    np.testing.assert_allclose(result, np.array(expected, np.float32))


PAIR = "replica_groups={{0,1}}"

# Collectives of two operands: device 0 brings 1 and 10, device 1 brings 2 and 20; (root, its last leaf but tokens).
SEVERAL = [
    ("(f32[2], f32[2]) all-gather(p, q), dimensions={0}, " + PAIR, [[1, 2], [10, 20]], [[1, 2], [10, 20]]),
    ("(f32[1], f32[1]) collective-broadcast(p, q), replica_groups={{1,0}}", [[2], [20]], [[2], [20]]),
    ("(f32[1], f32[1]) collective-permute(p, q), source_target_pairs={{0,1},{1,0}}", [[2], [20]], [[1], [10]]),
]


@pytest.mark.parametrize(("root", "zero", "one"), SEVERAL, ids=lambda v: v if isinstance(v, str) else "")
def test_collectives_keep_the_order_of_their_operands(root, zero, one):
    body = f"  p = f32[1] parameter(0)\n  q = f32[1] parameter(1)\n  ROOT r = {root}"
    results = run(body, [[[1], [10]], [[2], [20]]], replicas=2)
    assert [[leaf.tolist() for leaf in leaves] for leaves in results] == [zero, one]


def test_a_reduce_scatter_keeps_the_order_of_its_operands():
    body = f"""  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  ROOT r = (f32[1], f32[1]) reduce-scatter(p, q), dimensions={{0}}, to_apply=add, {PAIR}"""
    results = run(body, [[[1, 2], [10, 20]], [[3, 4], [30, 40]]], replicas=2)
    assert [[leaf.tolist() for leaf in leaves] for leaves in results] == [[[4], [40]], [[6], [60]]]


STARTS = [
    (
        f"((f32[1], f32[1]), (f32[2], f32[2])) all-gather-start(p, q), dimensions={{0}}, {PAIR}",
        "(f32[2], f32[2]) all-gather-done(s)",
        [[[1, 2], [10, 20]]] * 2,
    ),
    (
        f"(f32[1], f32[1]) all-reduce-start(p, q), to_apply=add, {PAIR}",
        "(f32[1], f32[1]) all-reduce-done(s)",
        [[[3], [30]]] * 2,
    ),
    (
        "((f32[1], f32[1]), (f32[1], f32[1])) collective-permute-start(p, q), source_target_pairs={{0,1},{1,0}}",
        "(f32[1], f32[1]) collective-permute-done(s)",
        [[[2], [20]], [[1], [10]]],
    ),
]


@pytest.mark.parametrize(("start", "done", "expected"), STARTS, ids=[s[1] for s in STARTS])
def test_a_start_keeps_the_order_of_its_operands(start, done, expected):
    body = f"  p = f32[1] parameter(0)\n  q = f32[1] parameter(1)\n  s = {start}\n  ROOT r = {done}"
    results = run(body, [[[1], [10]], [[2], [20]]], replicas=2)
    assert [[leaf.tolist() for leaf in leaves] for leaves in results] == expected


def test_an_async_start_keeps_the_order_of_its_operands():
    body = """  p = f32[] parameter(0)
  q = f32[] parameter(1)
  s = ((f32[], f32[]), f32[], u32[]) async-start(p, q), calls=minus
  u = ((f32[], f32[]), f32[], u32[]) async-update(s), calls=minus
  ROOT d = f32[] async-done(u), calls=minus"""
    assert evaluated(body, np.float32(5), np.float32(3), computations=MINUS)[0] == 2


# Of two partitions: with a channel, groups are of partitions, or of device numbers; (root, results of both).
OF_PARTITIONS = [
    ("f32[1] all-reduce(p), to_apply=add", [[3], [3]]),
    ("f32[2] all-gather(p), dimensions={0}", [[2, 1], [2, 1]]),
    ("f32[1] reduce-scatter(p2), dimensions={0}, to_apply=add", [[6], [4]]),
]
NUMBERED = ", channel_id=1, replica_groups={{1,0}}, use_global_device_ids=true"


@pytest.mark.parametrize(("root", "expected"), OF_PARTITIONS, ids=[c[0] for c in OF_PARTITIONS])
@pytest.mark.parametrize("pair", [False, True], ids=["", "start"])
def test_collectives_by_device_number(root, expected, pair):
    name = root.split()[1].split("(")[0]
    parameters = "  p = f32[1] parameter(0)\n  p2 = f32[2] parameter(1)\n"
    if not pair:
        body = f"{parameters}  ROOT r = {root}{NUMBERED}"
    elif name == "reduce-scatter":
        return
    else:
        shape = root.split()[0]
        started = shape if name == "all-reduce" else f"(f32[1], {shape})"
        start = root.replace(shape, started, 1).replace(name, f"{name}-start", 1)
        body = f"{parameters}  s = {start}{NUMBERED}\n  ROOT r = {shape} {name}-done(s)"
    results = run(body, [[[1], [1, 2]], [[2], [3, 4]]], partitions=2)
    assert [r[0].tolist() for r in results] == expected


def test_collectives_of_a_channel_are_between_partitions():
    body = """  p = f32[1] parameter(0)
  b = f32[1] collective-broadcast(p), channel_id=1, replica_groups={{1,0}}
  s = (f32[1], f32[1]) collective-permute-start(p), channel_id=2, source_target_pairs={{0,1}}
  d = f32[1] collective-permute-done(s)
  ROOT t = (f32[1], f32[1]) tuple(b, d)"""
    results = run(body, [[[1]], [[2]]], partitions=2)
    assert [[leaf.tolist() for leaf in leaves] for leaves in results] == [[[2], [0]], [[2], [1]]]


def test_a_ragged_all_to_all_of_partitions_follows_the_order_of_its_group():
    body = """  p = f32[2] parameter(0)
  o = f32[3] parameter(1)
  i = s32[2] parameter(2)
  s = s32[2] parameter(3)
  t = s32[2] parameter(4)
  r = s32[2] parameter(5)
  ROOT x = f32[3] ragged-all-to-all(p, o, i, s, t, r), channel_id=1, replica_groups={{1,0}}"""
    nothing = [-1.0] * 3

    def table(*numbers: int) -> np.ndarray:
        return np.array(numbers, np.int32)

    # The first member of the group is partition 1. Partition 0 sends its two rows there, 1 keeps its first row.
    zero = [[1, 2], nothing, table(0, 0), table(2, 0), table(1, 0), table(0, 0)]
    one = [[3, 4], nothing, table(0, 0), table(1, 0), table(0, 0), table(1, 2)]
    results = run(body, [zero, one], partitions=2)
    assert [r[0].tolist() for r in results] == [[-1, -1, -1], [3, 1, 2]]


def test_a_permute_start_of_slices_moves_them_only():
    body = """  p = f32[4] parameter(0)
  o = f32[4] parameter(1)
  one = s32[] constant(1)
  two = s32[] constant(2)
  f = (s32[]) tuple(one)
  t = (s32[]) tuple(two)
  s = ((f32[4], f32[4], (s32[]), (s32[])), f32[4]) collective-permute-start(p, o, f, t), source_target_pairs={{0,1}},
    slice_sizes={{2}}
  ROOT r = f32[4] collective-permute-done(s)"""
    inputs = [[[1, 2, 3, 4], [0, 0, 0, 0]], [[5, 6, 7, 8], [9, 9, 9, 9]]]
    assert [r[0].tolist() for r in run(body, inputs, replicas=2)] == [[0, 0, 0, 0], [9, 9, 2, 3]]


def test_the_random_state_advances_by_delta():
    body = """  a = u64[2] rng-get-and-update-state(), delta=5
  b = u64[2] rng-get-and-update-state(), delta=3, control-predecessors={a}
  c = u64[2] rng-get-and-update-state(), delta=1, control-predecessors={b}
  ROOT t = (u64[2], u64[2], u64[2]) tuple(a, b, c)"""
    a, b, c = (int(x[0]) for x in evaluated(body))
    assert (b - a, c - b) == (5, 3)


def test_a_ragged_dot_of_a_batch():
    body = """  p0 = f32[2,3,1] parameter(0)
  p1 = f32[2,2,1,1] parameter(1)
  p2 = s32[2,2] parameter(2)
  ROOT r = f32[2,3,1] ragged-dot(p0, p1, p2), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2},
    rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}"""
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3, 1)
    y = np.array([[1, 10], [100, 1000]], np.float32).reshape(2, 2, 1, 1)  # of groups and batches
    sizes = np.array([[1, 2], [2, 1]], np.int32)  # of batches and groups
    assert evaluated(body, x, y, sizes)[0].reshape(2, 3).tolist() == [[1, 200, 300], [40, 50, 6000]]


@pytest.mark.parametrize(("dimension", "sizes"), [(0, (2, 2)), (1, (4, 1))])
def test_a_reshape_says_which_dimension_takes_the_size_of_run_time(dimension, sizes):
    body = f"""  p = f32[8] parameter(0)
  n = s32[] parameter(1)
  x = f32[<=8] set-dimension-size(p, n), dimensions={{0}}
  r = f32[4,2] reshape(x), inferred_dimension={dimension}
  a = s32[] get-dimension-size(r), dimensions={{0}}
  b = s32[] get-dimension-size(r), dimensions={{1}}
  ROOT t = (s32[], s32[]) tuple(a, b)"""
    found = evaluated(body, np.arange(8, dtype=np.float32), np.int32(4))
    assert tuple(int(x) for x in found) == sizes
