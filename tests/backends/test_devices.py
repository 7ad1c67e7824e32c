"""Devices of one process: what goes wrong ends all of them in one line, and runs at the same time never meet."""

import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.loader import deserialize_and_load
from ...evaluator.evaluator import evaluate_replicated
from ...hlo.errors import CollectiveError, InputError, UnsupportedError
from ...migration import Flags, compile_module
from ..support.several_devices import FORMS, check_bits, compiled, module_of

CHOICE = """  p = f32[2] parameter(0)
  i = u32[] replica-id()
  s = s32[] convert(i)
  ROOT r = f32[2] conditional(s, p, p), branch_computations={first, second}"""
"""Replica 0 runs `first`, the others run `second`."""

ENDLESS = """more { s = (u32[], f32[2]) parameter(0)
  i = u32[] get-tuple-element(s), index=0
  n = u32[] constant(4294967295)
  ROOT r = pred[] compare(i, n), direction=LT }
body { s = (u32[], f32[2]) parameter(0)
  i = u32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  one = u32[] constant(1)
  j = u32[] add(i, one)
  y = f32[2] sine(x)
  ROOT t = (u32[], f32[2]) tuple(j, y) }
first { p = f32[2] parameter(0)
  ROOT met = f32[2] all-reduce(p), to_apply=add }
second { p = f32[2] parameter(0)
  i = u32[] constant(0)
  t = (u32[], f32[2]) tuple(i, p)
  w = (u32[], f32[2]) while(t), condition=more, body=body
  x = f32[2] get-tuple-element(w), index=1
  ROOT late = f32[2] all-reduce(x), to_apply=add }
"""


def inputs(count: int) -> list[list[np.ndarray]]:
    return [[np.float32([d, d + 1])] for d in range(count)]


BRANCHES = {
    "a device that never comes": (
        """first { p = f32[2] parameter(0)
  ROOT met = f32[2] all-reduce(p), to_apply=add }
second { ROOT p = f32[2] parameter(0) }
""",
        "replica 0 waits at all-reduce met for replica 1; replica 1 ended without it",
    ),
    "devices that wait for each other": (
        """first { p = f32[2] parameter(0)
  a = f32[2] all-reduce(p), channel_id=1, to_apply=add
  ROOT b = f32[2] all-reduce(a), channel_id=2, to_apply=add }
second { p = f32[2] parameter(0)
  c = f32[2] all-reduce(p), channel_id=2, to_apply=add
  ROOT d = f32[2] all-reduce(c), channel_id=1, to_apply=add }
""",
        "replica 0 waits at all-reduce a for replica 1; replica 1 waits at all-reduce c for replica 0",
    ),
    "different collectives": (
        """first { p = f32[2] parameter(0)
  ROOT sum = f32[2] all-reduce(p), to_apply=add }
second { p = f32[2] parameter(0)
  ROOT swap = f32[2] all-to-all(p), dimensions={0} }
""",
        r"replica \d reaches (all-reduce sum|all-to-all swap) where replica \d reached all-",
    ),
    "nobody sends": (
        """first { p = f32[2] parameter(0)
  ROOT got = f32[2] collective-permute(p), source_target_pairs={{1,0}} }
second { ROOT p = f32[2] parameter(0) }
""",
        "replica 0 waits at collective-permute got for replica 1; replica 1 ended without it",
    ),
    "no group": (
        """first { p = f32[2] parameter(0)
  ROOT left = f32[2] all-reduce(p), replica_groups={{0,1}}, to_apply=add }
second { p = f32[2] parameter(0)
  ROOT out = f32[2] all-reduce(p), replica_groups={{0}}, to_apply=add }
""",
        "no group of all-reduce out names replica 1",
    ),
}


@pytest.mark.parametrize("stack, form", FORMS)
@pytest.mark.parametrize("name", BRANCHES)
def test_devices_that_do_not_meet_end_at_once_with_a_line(name: str, stack: str, form: str):
    branches, message = BRANCHES[name]
    executable = compiled(module_of(CHOICE, branches), 2, stack=stack, form=form)
    for _ in range(2):
        with pytest.raises(CollectiveError) as caught:
            executable.execute_replicated(inputs(2))
        assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("stack, form", FORMS)
def test_a_device_that_is_late_ends_all_at_the_limit_and_the_program_runs_again(stack: str, form: str):
    executable = compiled(module_of(CHOICE, ENDLESS), 2, stack=stack, form=form)
    executable.outside.wait_limit = 0.2
    for _ in range(2):
        with pytest.raises(CollectiveError) as caught:
            executable.execute_replicated(inputs(2))
        assert "replica 0 waits at all-reduce met for replica 1, for more than 0.2 s" in str(caught.value)
        assert not [t for t in threading.enumerate() if t.name == "replica 1" and t.join(60) is None and t.is_alive()]


def test_ctrl_c_ends_devices_that_wait_and_that_compute():
    executable = compiled(module_of(CHOICE, ENDLESS), 2)
    for _ in range(2):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            executable.execute_replicated(inputs(2))
        for thread in threading.enumerate():
            if thread.name.startswith("replica"):
                thread.join(60)
                assert not thread.is_alive()


def test_an_error_on_one_device_ends_all():
    text = "  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), to_apply=add"
    executable = compiled(module_of(text), 2)
    with pytest.raises(InputError, match=r"^replica 1: input 0: expected f32\[2\], given f32\[3\]"):
        executable.execute_replicated([[np.zeros(2, np.float32)], [np.zeros(3, np.float32)]])
    assert [r[0].tolist() for r in executable.execute_replicated(inputs(2))] == [[1, 3], [1, 3]]


def test_each_device_has_its_inputs():
    text = "  p = f32[2] parameter(0)\n  ROOT r = f32[2] negate(p)"
    two, one = compiled(module_of(text), 2), compiled(module_of(text))
    with pytest.raises(InputError, match=r"1 lists of inputs for 2 devices \(2 replicas × 1 partitions\)"):
        two.execute_replicated(inputs(1))
    with pytest.raises(InputError, match=r"m was compiled for 2 replicas.*execute_replicated"):
        two(np.zeros(2, np.float32))
    for options in ({"replicas": 0}, {"partitions": 0}, {"replicas": 2000}):
        with pytest.raises(InputError, match=r"there is no device|too many devices"):
            CompileOptions(**options)
    assert [r[0].tolist() for r in two.execute_replicated(inputs(2))] == [[0, -1], [-1, -2]]
    assert one.execute_replicated(inputs(1))[0][0].tolist() == [0, -1]


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("ROOT r = f32[1] all-reduce(p), replica_groups={{0,5}}, to_apply=add", UnsupportedError, "needs more devices"),
        ("ROOT r = f32[1] collective-permute(p), source_target_pairs={{0,2}}", UnsupportedError, "needs more devices"),
        ("ROOT r = f32[1] all-reduce(p), use_global_device_ids=true, to_apply=add", CollectiveError, "no channel_id"),
        ("ROOT r = f32[3] all-gather(p), dimensions={0}", CollectiveError, "gives [2] on this number of devices"),
        ("ROOT r = f32[1] all-to-all(p), dimensions={0}", CollectiveError, "cannot cut 1 elements into 2"),
        ("ROOT r = (f32[1]) all-to-all(p), replica_groups={{0,1}}", CollectiveError, "1 operands for a group of 2"),
        ("ROOT r = f32[2] all-gather(p), replica_groups={{0},{1}}, dimensions={0}", CollectiveError, "gives [1]"),
        (
            "ROOT r = f32[1] all-reduce(p), replica_groups=mesh['a'=2] {'a':(2)2}, to_apply=add",
            UnsupportedError,
            "write the groups out",
        ),
        (
            "z = s32[3] parameter(1)\n  ROOT r = f32[1] ragged-all-to-all(p, p, z, z, z, z), replica_groups={{0,1}}",
            CollectiveError,
            "tables of 3 numbers for a group of 2",
        ),
    ],
)
def test_groups_that_cannot_be_are_refused_when_it_is_compiled(line: str, error: type, message: str):
    with pytest.raises(error) as caught:
        compiled(module_of(f"  p = f32[1] parameter(0)\n  {line}"), 2)
    assert message in str(caught.value)


SUM = """  p = f32[2] parameter(0)
  a = f32[2] all-reduce(p), to_apply=add
  n = f32[2] multiply(a, p)
  ROOT r = f32[2] all-reduce(n), replica_groups={{0,2},{1}}, to_apply=add"""


def test_runs_and_executables_at_the_same_time_never_meet():
    module = module_of(SUM)
    programs = [compiled(module, 3, stack=stack, form=form) for stack, form in FORMS]
    given = [[[x * number for x in own] for own in inputs(3)] for number in range(8)]
    expected = [evaluate_replicated(module, xs, replicas=3) for xs in given]

    def work(number: int) -> None:
        for repeat in range(10):
            program = programs[(number + repeat) % 2]
            check_bits(expected[number], program.execute_replicated(given[number]), f"{number}")

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(8)))
    assert done == [None] * 8


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_red_zones_profiles_and_observers_see_devices(stack: str):
    module = module_of(SUM)
    expected = evaluate_replicated(module, inputs(3), replicas=3)
    guarded = compile_module(module, Flags.parse(stack), CompileOptions(replicas=3, red_zones=True))
    check_bits(expected, guarded.execute_replicated(inputs(3)), "red zones")
    profiled = compile_module(module, Flags.parse(stack), CompileOptions(replicas=3, profile=True))
    check_bits(expected, profiled.execute_replicated(inputs(3)), "profile")
    assert {row.calls for row in profiled.profile().rows} == {3}


FEEDS = """more { s = (s32[], f32[2], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[2], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  a = token[] get-tuple-element(s), index=2
  f = ((f32[2], s32[]), token[]) infeed(a)
  v = (f32[2], s32[]) get-tuple-element(f), index=0
  k = token[] get-tuple-element(f), index=1
  y = f32[2] get-tuple-element(v), index=0
  j = s32[] get-tuple-element(v), index=1
  z = f32[2] add(x, y)
  t = (f32[2], s32[]) tuple(z, j)
  o = token[] outfeed(t, k), outfeed_shape=(f32[2], s32[])
  ROOT r = (s32[], f32[2], token[]) tuple(j, z, o)
}
"""
LOOP = """  p = f32[2] parameter(0)
  a = token[] after-all()
  z = s32[] constant(0)
  t = (s32[], f32[2], token[]) tuple(z, p, a)
  w = (s32[], f32[2], token[]) while(t), condition=more, body=body
  ROOT r = f32[2] get-tuple-element(w), index=1"""
VALUES = [(np.float32([n, n + 1]), np.int32(last)) for n, last in ((1, 1), (5, 1), (0, 1), (7, 3))]


@pytest.mark.parametrize("stack, form", FORMS)
@pytest.mark.parametrize("late", [False, True])
def test_feeds_keep_their_order_and_wait(stack: str, form: str, late: bool):
    executable = compiled(module_of(LOOP, FEEDS), stack=stack, form=form)
    executable = deserialize_and_load(executable.serialize()) if late else executable

    def feed() -> None:
        for value in VALUES:
            time.sleep(0.01 if late else 0)
            executable.infeed(*value)

    thread = threading.Thread(target=feed)
    thread.start()
    if not late:
        thread.join()
    assert executable(np.float32([10, 20])).tolist() == [23, 37]
    thread.join()
    written = [[leaf.tolist() for leaf in executable.outfeed()] for _ in VALUES]
    assert written == [[[11, 22], 1], [[16, 28], 1], [[16, 29], 1], [[23, 37], 3]]


def test_feeds_of_each_device():
    body = """  k = token[] after-all()
  i = (f32[2], token[]) infeed(k)
  x = f32[2] get-tuple-element(i), index=0
  y = f32[2] all-reduce(x), to_apply=add
  o = token[] outfeed(x, k), outfeed_shape=f32[2]
  ROOT r = f32[2] negate(y)"""
    executable = compiled(module_of(body), 2)
    for device in range(2):
        executable.infeed(np.float32([device, 4]), device=device)
    assert [r[0].tolist() for r in executable.execute_replicated([[], []])] == [[-1, -8]] * 2
    assert [executable.outfeed(device)[0].tolist() for device in range(2)] == [[0, 4], [1, 4]]
    executable.infeed(np.float32([1, 2]))
    executable.close_infeed()
    with pytest.raises(InputError, match="replica 1: m: its infeed is empty at i"):
        executable.execute_replicated([[], []])


def test_values_that_no_infeed_takes_are_refused():
    executable = compiled(module_of(LOOP, FEEDS))
    with pytest.raises(InputError, match=r"the infeed of m takes \(f32\[2\], s32\[\]\), given \(f32\[2\], f32\[\]\)"):
        executable.infeed(np.float32([1, 2]), np.float32(1))
    with pytest.raises(InputError, match="there is no device 1"):
        executable.infeed(*VALUES[0], device=1)
    with pytest.raises(InputError, match="the outfeed of m is empty, after 0 s"):
        executable.outfeed()
    executable.outside.wait_limit = 0.1
    with pytest.raises(InputError, match=r"m: no value came within 0\.1 s at f"):
        executable(np.float32([1, 2]))
    plain = compiled(module_of("  p = f32[2] parameter(0)\n  ROOT r = f32[2] negate(p)"))
    with pytest.raises(InputError, match="m has neither an infeed nor an outfeed"):
        plain.outfeed()


def test_two_infeeds_take_values_of_their_own_shapes():
    body = """  k = token[] after-all()
  i = (f32[2], token[]) infeed(k)
  x = f32[2] get-tuple-element(i), index=0
  l = token[] get-tuple-element(i), index=1
  j = (s32[], token[]) infeed(l)
  y = s32[] get-tuple-element(j), index=0
  ROOT r = (f32[2], s32[]) tuple(x, y)"""
    executable = compiled(module_of(body))
    executable.infeed(np.float32([1, 2]))
    executable.infeed(np.int32(3))
    assert [r.tolist() for r in executable.execute([])] == [[1, 2], 3]
    executable.infeed(np.int32(3))
    with pytest.raises(InputError, match=r"m: the infeed i takes \(f32\[2\]\), given \(s32\[\]\)"):
        executable.execute([])
