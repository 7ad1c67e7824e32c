"""Collectives on simulated devices, compared with NumPy formulas and with XLA:CPU's own devices."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ...backends.xla import installed
from ...evaluator.evaluator import evaluate_replicated
from ...evaluator.reference.device_groups import group_of
from ...formats.text.parser import parse_module
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.replica_groups import iota_groups, mesh_groups
from ..support.simulated_devices import REGIONS, alone, first, run

# --- groups ----------------------------------------------------------------------------------------------------------


def test_iota_groups():
    assert iota_groups("[2,4]<=[8]") == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert iota_groups("[4,2]<=[2,4]T(1,0)") == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert iota_groups("[2,4]<=[9]") is None
    assert iota_groups("[2,4]<=[2,4]T(1,1)") is None


def test_mesh_groups():
    assert mesh_groups("mesh['a'=2,'b'=2] {'b'}") == ((0, 1), (2, 3))
    assert mesh_groups("mesh['a'=2,'b'=2] {'a'}") == ((0, 2), (1, 3))
    assert mesh_groups("mesh['a'=2,'b'=2], device_ids=(3,2,1,0), {'b'}") == ((3, 2), (1, 0))
    assert mesh_groups("mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'a'}") == ((0, 1), (2, 3))
    assert mesh_groups("mesh['a'=2,'b'=1] {'b'}") == ((0,), (1,))


def test_groups_along_a_part_of_an_axis():
    assert mesh_groups("mesh['a'=4] {'a':(1)2}") == ((0, 2), (1, 3))
    assert mesh_groups("mesh['a'=4] {'a':(2)2}") == ((0, 1), (2, 3))
    assert mesh_groups("mesh['a'=8] {'a':(2)2}") == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert mesh_groups("mesh['a'=8] {'a':(4)2,'a':(1)2}") == ((0, 4, 1, 5), (2, 6, 3, 7))
    assert mesh_groups("mesh['a'=2,'b'=4] {'a','b':(2)2}") == ((0, 1, 4, 5), (2, 3, 6, 7))


@pytest.mark.parametrize(
    "text",
    [
        "mesh['a'=2,'b'=2, device_ids=(0,2,1,3)] {'a'}",  # XLA refuses it, too: the ids stand behind the axes
        "mesh['a'=2,'b'=2], device_ids=(0,1,2) {'a'}",
        "mesh['a'=4] {'a':(3)2}",
        "mesh['a'=4] {'a':(4)2}",
        "mesh['a'=4] {'b'}",
        "mesh[a=2,b=2] {a}",
    ],
)
def test_what_is_no_mesh_is_not_guessed(text):
    assert mesh_groups(text) is None


def _collective(opcode: Op, **attributes) -> Instruction:
    x = parse_module("HloModule m\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n").entry.root
    return Instruction(opcode, "c", x.shape, (x,), attributes)


@pytest.mark.parametrize(
    ("opcode", "attributes", "device", "expected"),
    [
        (Op.ALL_REDUCE, {"replica_groups": ((1, 0),)}, 1, (3, 1)),  # replicas 1 and 0, partition 1
        (Op.ALL_REDUCE, {}, 2, (0, 2)),
        (Op.ALL_REDUCE, {"replica_groups": ((0,), (1,)), "channel_id": 1}, 3, (2, 3)),  # a replica with its partitions
        (
            Op.ALL_REDUCE,
            {"replica_groups": ((0, 3), (1, 2)), "channel_id": 1, "use_global_device_ids": True},
            2,
            (1, 2),
        ),
        (Op.ALL_TO_ALL, {"replica_groups": ((1, 0),), "channel_id": 1}, 2, (3, 2)),  # partitions of replica 1
        (Op.COLLECTIVE_BROADCAST, {"replica_groups": ((1,),)}, 0, None),
    ],
)
def test_the_four_modes(opcode: Op, attributes: dict, device: int, expected: tuple):
    assert group_of(_collective(opcode, **attributes), device, 2, 2) == expected


# --- each collective -------------------------------------------------------------------------------------------------


def test_ragged_all_to_all():
    body = """  p = f32[4] parameter(0)
  o = f32[5] parameter(1)
  i = s32[2] parameter(2)
  s = s32[2] parameter(3)
  t = s32[2] parameter(4)
  r = s32[2] parameter(5)
  ROOT x = f32[5] ragged-all-to-all(p, o, i, s, t, r), replica_groups={{0,1}}"""
    rest = [-1.0] * 5

    def table(*numbers: int) -> np.ndarray:
        return np.array(numbers, np.int32)

    # replica 0 sends 1 row to itself and 3 to replica 1; replica 1 sends 2 rows to replica 0 and none to itself
    zero = [[1.0, 2, 3, 4], rest, table(0, 1), table(1, 3), table(0, 1), table(1, 2)]
    one = [[5.0, 6, 7, 8], rest, table(2, 0), table(2, 0), table(3, 0), table(3, 0)]
    assert first(run(body, [zero, one], replicas=2)) == [[1, -1, -1, 7, 8], [-1, 2, 3, 4, -1]]


def test_broadcast_gives_zeros_outside_its_groups():
    body = "  p = f32[1] parameter(0)\n  ROOT r = f32[1] collective-broadcast(p), replica_groups={{2,0}}"
    assert first(run(body, alone([1], [2], [3]), replicas=3)) == [[3], [0], [3]]


def test_all_to_all_of_a_tuple():
    body = """  p = f32[1] parameter(0)
  n = f32[1] negate(p)
  ROOT r = (f32[1], f32[1]) all-to-all(p, n), replica_groups={{1,0}}"""
    results = run(body, alone([1], [2]), replicas=2)
    assert [[float(leaf[0]) for leaf in leaves] for leaves in results] == [[-2, -1], [2, 1]]


def test_reductions_of_several_operands_and_a_region_of_several_operations():
    far = """far { x = f32[] parameter(0)
  y = f32[] parameter(1)
  a = f32[] abs(x)
  b = f32[] abs(y)
  ROOT m = f32[] maximum(a, b) }
"""
    body = """  p = f32[2] parameter(0)
  q = f32[] parameter(1)
  ROOT r = (f32[2], f32[]) all-reduce(p, q), to_apply=far"""
    inputs = [[np.array([1, -9], np.float32), np.float32(2)], [np.array([-3, 4], np.float32), np.float32(-5)]]
    for leaves in run(body, inputs, replicas=2, computations=far):
        assert [leaf.tolist() for leaf in leaves] == [[3, 9], 5]


def test_starts_and_dones_overlap():
    """Three collectives start before the first one is waited for."""
    body = """  p = f32[2] parameter(0)
  a = f32[2] all-reduce-start(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  g = (f32[2], f32[4]) all-gather-start(p), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true,
    dimensions={0}
  c = (f32[2], f32[2], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1}}
  cd = f32[2] collective-permute-done(c)
  gd = f32[4] all-gather-done(g)
  ad = f32[2] all-reduce-done(a)
  ROOT t = (f32[2], f32[4], f32[2]) tuple(ad, gd, cd)"""
    zero, one = run(body, alone([1, 2], [3, 4]), replicas=2)
    assert [x.tolist() for x in zero] == [[4, 6], [1, 2, 3, 4], [0, 0]]
    assert [x.tolist() for x in one] == [[4, 6], [1, 2, 3, 4], [1, 2]]


def test_devices_may_start_in_another_order_than_they_wait():
    groups = "replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add"
    computations = "".join(
        f"""{name} {{ p = f32[1] parameter(0)
  n = f32[1] negate(p)
  {lines[0]}
  {lines[1]}
  b = f32[1] all-reduce-done(y)
  a = f32[1] all-reduce-done(x)
  ROOT r = f32[2] concatenate(a, b), dimensions={{0}} }}
"""
        for name, lines in {
            "left": (
                f"x = f32[1] all-reduce-start(p), channel_id=1, {groups}",
                f"y = f32[1] all-reduce-start(n), channel_id=2, {groups}",
            ),
            "right": (
                f"y = f32[1] all-reduce-start(n), channel_id=2, {groups}",
                f"x = f32[1] all-reduce-start(p), channel_id=1, {groups}",
            ),
        }.items()
    )
    body = """  p = f32[1] parameter(0)
  i = u32[] replica-id()
  s = s32[] convert(i)
  ROOT r = f32[2] conditional(s, p, p), branch_computations={left, right}"""
    assert first(run(body, alone([1], [2]), replicas=2, computations=computations)) == [[3, -3], [3, -3]]


def test_a_wrapped_collective():
    wrapped = """w { p = f32[1] parameter(0)
  ROOT r = f32[1] collective-permute(p), source_target_pairs={{0,1},{1,0}} }
"""
    body = """  p = f32[1] parameter(0)
  s = ((f32[1]), f32[1]) async-start(p), calls=w
  ROOT d = f32[1] async-done(s)"""
    assert first(run(body, alone([1], [2]), replicas=2, computations=wrapped)) == [[2], [1]]


def test_permute_of_slices_leaves_the_rest_of_the_output():
    body = """  p = f32[4] parameter(0)
  o = f32[4] parameter(1)
  one = s32[] constant(1)
  two = s32[] constant(2)
  f = (s32[]) tuple(one)
  t = (s32[]) tuple(two)
  ROOT r = f32[4] collective-permute(p, o, f, t), source_target_pairs={{0,1}}, slice_sizes={{2}}"""
    inputs = [[[1, 2, 3, 4], [0, 0, 0, 0]], [[5, 6, 7, 8], [9, 9, 9, 9]]]
    assert first(run(body, inputs, replicas=2)) == [[0, 0, 0, 0], [9, 9, 2, 3]]


def test_permute_of_several_slices_uses_a_part_of_the_pairs_for_each():
    body = """  p = f32[4] parameter(0)
  o = f32[4] parameter(1)
  i = (f32[4]) tuple(p)
  j = (f32[4]) tuple(o)
  k0 = s32[] constant(0)
  k2 = s32[] constant(2)
  k3 = s32[] constant(3)
  t0 = (s32[]) tuple(k0)
  t2 = (s32[]) tuple(k2)
  t3 = (s32[]) tuple(k3)
  from = ((s32[]), (s32[])) tuple(t0, t2)
  f = (((s32[]), (s32[]))) tuple(from)
  to = ((s32[]), (s32[])) tuple(t3, t0)
  t = (((s32[]), (s32[]))) tuple(to)
  ROOT r = f32[4] collective-permute(i, j, f, t), source_target_pairs={{0,1},{1,0}}, slice_sizes={{1},{2}}"""
    inputs = [[[1, 2, 3, 4], [0, 0, 0, 0]], [[5, 6, 7, 8], [9, 9, 9, 9]]]
    assert first(run(body, inputs, replicas=2)) == [[7, 8, 0, 0], [9, 9, 9, 1]]


def test_collectives_in_loops_and_branches():
    """A reduction of a loop's state in each iteration, and a branch that only one group takes."""
    computations = """c { s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[1] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add
  ROOT t = (s32[], f32[1]) tuple(j, y) }
yes { p = f32[1] parameter(0)
  ROOT r = f32[1] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add }
no { ROOT p = f32[1] parameter(0) }
"""
    body = """  p = f32[1] parameter(0)
  i = s32[] constant(0)
  t = (s32[], f32[1]) tuple(i, p)
  w = (s32[], f32[1]) while(t), condition=c, body=b
  x = f32[1] get-tuple-element(w), index=1
  d = u32[] replica-id()
  two = u32[] constant(2)
  low = pred[] compare(d, two), direction=LT
  ROOT r = f32[1] conditional(low, x, x), true_computation=yes, false_computation=no"""
    assert first(run(body, alone([1], [2], [3], [4]), replicas=4, computations=computations)) == [
        [24],
        [24],
        [28],
        [28],
    ]


# --- the world outside -----------------------------------------------------------------------------------------------

RING = """  p = f32[1] parameter(0)
  a = token[] after-all()
  v = (f32[1], u32[], token[]) recv(a), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
  s = (f32[1], u32[], token[]) send(p, a), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
  w = (f32[1], token[]) recv-done(v), channel_id=1
  d = token[] send-done(s), channel_id=1
  ROOT r = f32[1] get-tuple-element(w), index=0"""


def test_send_and_recv_by_pairs():
    """recv comes before send, as in XLA's pipelining. A device that is no target gets zeros."""
    assert first(run(RING, alone([1], [2], [3]), partitions=3)) == [[0], [1], [2]]
    assert first(run(RING, alone([1], [2], [3]), replicas=3)) == [[0], [1], [2]]


def test_send_in_one_branch_and_recv_in_the_other():
    computations = """giver { p = f32[1] parameter(0)
  a = token[] after-all()
  s = (f32[1], u32[], token[]) send(p, a), channel_id=7
  d = token[] send-done(s), channel_id=7
  ROOT n = f32[1] negate(p) }
taker { p = f32[1] parameter(0)
  a = token[] after-all()
  v = (f32[1], u32[], token[]) recv(a), channel_id=7
  w = (f32[1], token[]) recv-done(v), channel_id=7
  ROOT r = f32[1] get-tuple-element(w), index=0 }
"""
    body = """  p = f32[1] parameter(0)
  i = u32[] partition-id()
  s = s32[] convert(i)
  ROOT r = f32[1] conditional(s, p, p), branch_computations={taker, giver}"""
    assert first(run(body, alone([5], [6]), partitions=2, computations=computations)) == [[6], [-6]]


def test_each_device_has_its_own_feeds_and_random_numbers():
    body = """  a = token[] after-all()
  i = (f32[1], token[]) infeed(a)
  x = f32[1] get-tuple-element(i), index=0
  y = f32[1] all-reduce(x), to_apply=add
  o = token[] outfeed(x, a), outfeed_shape=f32[1]
  z = f32[] constant(0)
  w = f32[] constant(1)
  u = f32[4] rng(z, w), distribution=rng_uniform
  ROOT t = (f32[1], f32[4]) tuple(y, u)"""
    out: list = [[], []]
    zero, one = run(body, [[], []], replicas=2, infeeds=[[np.float32([3])], [np.float32([4])]], outfeeds=out)
    assert zero[0].tolist() == one[0].tolist() == [7]
    assert [v.tolist() for sent in out for v in sent] == [[3], [4]]
    assert (zero[1] != one[1]).all()


def test_counts_come_from_the_header():
    text = """HloModule m, replica_count=2, num_partitions=3
ENTRY e {
  a = u32[] replica-id()
  b = u32[] partition-id()
  ROOT t = (u32[], u32[]) tuple(a, b)
}
"""
    results = evaluate_replicated(parse_module(text), [[]] * 6)
    assert [tuple(int(x) for x in leaves) for leaves in results] == [(r, p) for r in range(2) for p in range(3)]


# --- XLA:CPU with eight devices --------------------------------------------------------------------------------------

MANUAL = "channel_id=1, sharding={manual}"
WITH_XLA = {
    "all-reduce": (4, 1, "f32[4,4] all-reduce(p), replica_groups={{0,2},{3,1}}, to_apply=add"),
    "all-reduce, iota": (4, 1, "f32[4,4] all-reduce(p), replica_groups=[2,2]<=[2,2]T(1,0), to_apply=add"),
    "all-gather": (4, 1, "f32[4,8] all-gather(p), replica_groups={{2,0},{3,1}}, dimensions={1}"),
    "reduce-scatter": (4, 1, "f32[4,2] reduce-scatter(p), replica_groups={{2,0},{3,1}}, dimensions={1}, to_apply=add"),
    "all-to-all": (4, 1, "f32[4,4] all-to-all(p), replica_groups={{3,2,1,0}}, dimensions={0}"),
    "permute": (4, 1, "f32[4,4] collective-permute(p), source_target_pairs={{0,1},{1,2},{3,3}}"),
    "permute of partitions": (
        2,
        4,
        "f32[4,4] collective-permute(p), source_target_pairs={{0,1},{1,2},{3,3}}, " + MANUAL,
    ),
    "all-reduce of both": (2, 2, "f32[4,4] all-reduce(p), replica_groups={{0,1}}, to_apply=add, " + MANUAL),
    "all-reduce of partitions": (2, 2, "f32[4,4] all-reduce(p), replica_groups={{0},{1}}, to_apply=add, " + MANUAL),
    "all-gather of both": (2, 2, "f32[16,4] all-gather(p), replica_groups={{1,0}}, dimensions={0}, " + MANUAL),
    "all-gather of devices": (
        2,
        4,
        "f32[4,16] all-gather(p), replica_groups={{0,3,5,6},{2,1,7,4}}, dimensions={1}, "
        "use_global_device_ids=true, " + MANUAL,
    ),
    "all-to-all of partitions": (2, 2, "f32[4,4] all-to-all(p), replica_groups={{1,0}}, dimensions={1}, " + MANUAL),
}

SCRIPT = """
import json, sys
import numpy as np
from jaxlib import _hlo, xla_client
import jax

devices = jax.local_devices(backend="cpu")
for name, (replicas, partitions, text) in json.load(sys.stdin).items():
    count = replicas * partitions
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    module = xla_client._xla.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = replicas, partitions
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(count).reshape(replicas, partitions))
    options.executable_build_options.use_spmd_partitioning = partitions > 1
    loaded = devices[0].client.compile_and_load(module, xla_client.DeviceList(tuple(devices[:count])), options)
    mesh = jax.sharding.Mesh(np.array(devices[:count]), "x")
    shards = [jax.device_put(np.arange(16, dtype=np.float32).reshape(4, 4) + 100 * d, devices[d]) for d in range(count)]
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    x = jax.make_array_from_single_device_arrays((4 * count, 4), sharding, shards)
    (leaf,) = loaded.execute_sharded([x]).disassemble_into_single_device_arrays()
    print(json.dumps([name, [np.asarray(v).tolist() for v in leaf]]))
"""


@pytest.mark.skipif(not installed(), reason="jaxlib is not installed (./testbed setup --xla)")
def test_xla_with_eight_devices_agrees(tmp_path: Path):
    def text(partitions: int, root: str) -> str:
        sharding = ", sharding={manual}" if partitions > 1 else ""
        return f"HloModule m\n{REGIONS}ENTRY e {{\n  p = f32[4,4] parameter(0){sharding}\n  ROOT r = {root}\n}}\n"

    cases = {name: (r, p, text(p, root)) for name, (r, p, root) in WITH_XLA.items()}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    expected = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))
    assert set(expected) == set(cases)
    for name, (replicas, partitions, module) in cases.items():
        inputs = [[np.arange(16, dtype=np.float32).reshape(4, 4) + 100 * d] for d in range(replicas * partitions)]
        results = evaluate_replicated(parse_module(module), inputs, replicas=replicas, partitions=partitions)
        assert first(results) == expected[name], name
