"""Exchanges between devices as thunks: what overlaps, what keeps its order, and what stages print and read."""

from random import Random

import numpy as np
import pytest

from ...differential.executions import in_order
from ...hlo.devices import Devices
from ...hlo.errors import UnsupportedError
from ...lhlo.from_plan import from_plan as to_lhlo
from ...lhlo.to_plan import to_plan
from ...passes.pipeline import PipelineOptions
from ...planning.parse_plan import plan_from_text
from ...planning.plan import BufferSlice, Plan
from ...planning.plan_text import plan_to_text
from ...planning.planner import PlanOptions, plan
from ...thunks import KernelThunk, ProfileThunk, SequentialThunk, from_plan, read, write
from ...thunks.exchanges import overlapped
from ...thunks.kinds import CollectiveDoneThunk, CollectiveStartThunk, Exchange
from ...thunks.legal_order import dependencies
from ..support.several_devices import check_bits, compiled, module_of

A, B, C, D = (BufferSlice(0, offset, 8) for offset in (0, 8, 16, 24))
BODY = """  p = f32[4,2] parameter(0)
  a = f32[4,2] all-reduce(p), replica_groups={{1,0}}, to_apply=add
  s = f32[4,2] sine(p)
  g = f32[8,2] all-gather(s), replica_groups=[1,2]<=[2], dimensions={0}
  t = f32[4,2] all-to-all(a), dimensions={0}
  c = f32[4,2] collective-permute(a), source_target_pairs={{0,1}}
  b = f32[4,2] collective-broadcast(s), replica_groups={{1,0}}
  i = u32[] replica-id()
  ROOT r = (f32[4,2], f32[8,2], f32[4,2], f32[4,2], f32[4,2], u32[]) tuple(a, g, t, c, b, i)"""
TWO = Devices(2)


def start(name: str, source: BufferSlice) -> CollectiveStartThunk:
    return CollectiveStartThunk(name, Exchange.ALL_GATHER, f"all-gather {name}", ((0, 1),), source)


def kernel(name: str, *uses) -> KernelThunk:
    return KernelThunk(name, name, uses)


def test_a_done_stands_before_the_first_use_of_its_result():
    begin, done = start("s", A), CollectiveDoneThunk("s", B)
    other, user = kernel("other", read(A), write(C)), kernel("user", read(B), write(D))
    assert overlapped([begin, done, other, user]) == (begin, other, done, user)
    assert overlapped([begin, done, kernel("over", write(B))])[1] is done
    assert overlapped([begin, done, other]) == (begin, other, done)
    mark = ProfileThunk("m", 0, True)
    assert overlapped([begin, done, mark, other]) == (begin, done, mark, other)
    second = start("t", C), CollectiveDoneThunk("t", D)
    assert overlapped([begin, done, *second, user]) == (begin, second[0], done, second[1], user)


def test_many_waits_stand_before_the_first_use_of_their_results():
    random = Random(0)

    def place() -> BufferSlice:
        return BufferSlice(random.randrange(2), random.randrange(60), random.choice([0, 1, 4, 20]))

    for _ in range(50):
        thunks = [
            CollectiveDoneThunk(f"d{n}", place()) if random.random() < 0.5 else kernel(f"k{n}", read(place()))
            for n in range(30)
        ]
        expected, waiting = [], []
        for thunk in thunks:
            if isinstance(thunk, CollectiveDoneThunk):
                waiting.append(thunk)
                continue
            due = [done for done in waiting if done.uses[0].conflicts(thunk.uses[0])]
            waiting = [done for done in waiting if done not in due]
            expected += [*due, thunk]
        assert overlapped(thunks) == (*expected, *waiting)


def test_exchanges_keep_their_order():
    thunks = [start("s", A), kernel("k", write(C)), start("t", B), CollectiveDoneThunk("t", D)]
    assert dependencies(thunks) == [set(), set(), {0}, {2}]
    inside = [start("s", A), SequentialThunk((start("t", B),))]
    assert dependencies(inside) == [set(), {0}]


def test_what_a_schedule_has_between_start_and_done_runs_while_others_compute():
    """XLA's schedules put work there."""
    body = """  p = f32[4,2] parameter(0)
  a = f32[4,2] all-reduce-start(p), replica_groups={{1,0}}, to_apply=add
  s = f32[4,2] sine(p)
  d = f32[4,2] all-reduce-done(a)
  ROOT r = f32[4,2] add(d, s)"""
    made = plan(module_of(body, header=", is_scheduled=true"), PlanOptions(PipelineOptions(devices=TWO)))
    kinds = [type(t).__name__ for t in from_plan(made, devices=TWO).thunks]
    started, done = kinds.index("CollectiveStartThunk"), kinds.index("CollectiveDoneThunk")
    assert kinds[started + 1 : done] == ["KernelThunk"]


def planned(body: str = BODY) -> Plan:
    return plan(module_of(body), PlanOptions(PipelineOptions(devices=TWO)))


def test_plan_and_lhlo_hold_what_becomes_of_collectives():
    made = planned()
    expected = from_plan(made, devices=TWO)
    assert from_plan(plan_from_text(plan_to_text(made)), devices=TWO) == expected
    assert from_plan(to_plan(to_lhlo(made)), devices=TWO) == expected


def test_feeds_have_no_lhlo():
    made = planned("  k = token[] after-all()\n  i = (f32[2], token[]) infeed(k)\n"
                   "  ROOT x = f32[2] get-tuple-element(i), index=0")  # fmt: skip
    assert from_plan(plan_from_text(plan_to_text(made))) == from_plan(made)
    with pytest.raises(UnsupportedError, match="lhlo has no emitter for infeed with a token") as caught:
        to_lhlo(made)
    assert caught.value.location is not None


def test_every_legal_order_gives_the_same_bits():
    executable = compiled(module_of(BODY), 2, form="interpreted")
    inputs = [[np.float32(Random(d).sample(range(50), 8)).reshape(4, 2)] for d in range(2)]
    expected = executable.execute_replicated(inputs)
    for seed in range(8):
        check_bits(expected, in_order(seed)(executable).execute_replicated(inputs), f"order {seed}")
