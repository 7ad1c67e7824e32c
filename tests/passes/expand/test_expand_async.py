"""Starts and dones, collectives of one device, and annotations are replaced by what they wrap."""

import numpy as np
import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.errors import CollectiveError, UnsupportedError
from ....hlo.opcodes import Op
from ....migration import compile_module
from ....planning.planner import plan
from ...support.check import check
from ...support.passes import fill, opcodes, run, same

REGIONS = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
work { p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  ROOT s = f32[4] multiply(p, q) }
many { p = f32[4] parameter(0)
  ROOT r = f32[4] all-reduce(p), replica_groups={{0}}, to_apply=add }
"""


def entry(*lines: str) -> str:
    return REGIONS + "ENTRY e {\n" + "\n".join(("x = f32[4] parameter(0)", *lines)) + "\n}\n"


BODIES = {
    "async": (
        "s = ((f32[4], f32[4]), f32[4], u32[]) async-start(x, x), calls=work",
        "u = ((f32[4], f32[4]), f32[4], u32[]) async-update(s), output_to_operand_aliasing={{}: (0, {})}",
        "ROOT d = f32[4] async-done(u)",
    ),
    "wrapped collective": (
        "s = ((f32[4]), f32[4], u32[]) async-start(x), calls=many", "ROOT d = f32[4] async-done(s)",
    ),
    "copy": ("s = (f32[4], f32[4], u32[]) copy-start(x)", "ROOT d = f32[4] copy-done(s)"),
    "all-reduce": ("ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add",),
    "all-reduce of two": (
        "n = f32[4] negate(x)", "ROOT r = (f32[4], f32[4]) all-reduce(x, n), replica_groups={{0}}, to_apply=add",
    ),
    "all-reduce by channel": (
        "ROOT r = f32[4] all-reduce(x), replica_groups={{0}}, channel_id=1, use_global_device_ids=true, to_apply=add",
    ),
    "all-reduce, others apart": ("ROOT r = f32[4] all-reduce(x), replica_groups={{1,2},{0}}, to_apply=add",),
    "all-reduce of an iota": ("ROOT r = f32[4] all-reduce(x), replica_groups=[1,1]<=[1], to_apply=add",),
    "all-reduce pair": (
        "s = f32[4] all-reduce-start(x), replica_groups={{0}}, to_apply=add", "ROOT r = f32[4] all-reduce-done(s)",
    ),
    "all-gather": ("ROOT r = f32[4] all-gather(x), replica_groups={{0}}, dimensions={0}",),
    "all-gather pair": (
        "s = (f32[4], f32[4]) all-gather-start(x), replica_groups={{0}}, dimensions={0}",
        "ROOT r = f32[4] all-gather-done(s)",
    ),
    "reduce-scatter": ("ROOT r = f32[4] reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=add",),
    "all-to-all": ("ROOT r = f32[4] all-to-all(x), replica_groups={{0}}, dimensions={0}",),
    "all-to-all of a tuple": ("ROOT r = (f32[4]) all-to-all(x)",),
    "collective-broadcast": ("ROOT r = f32[4] collective-broadcast(x), replica_groups={{0}}",),
    "permute": ("ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,0}}",),
    "permute nothing": ("ROOT r = f32[4] collective-permute(x), source_target_pairs={}",),
    "permute among others": ("ROOT r = f32[4] collective-permute(x), source_target_pairs={{1,2}}",),
    "permute pair": (
        "s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}",
        "ROOT r = f32[4] collective-permute-done(s)",
    ),
    "ids": ("a = u32[] replica-id()", "b = u32[] partition-id()", "ROOT r = u32[] add(a, b)"),
    "annotation": ('ROOT r = f32[4] custom-call(x), custom_call_target="Sharding"',),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_what_is_left(name):
    text = entry(*BODIES[name])
    inputs = fill(parse_module(text), 1)
    after = same(text, inputs, "flatten", "expand-async", exact=True)
    kinds = {o.value for o in opcodes(after)}
    assert not any(k.startswith(("all-", "async", "copy-", "collective", "ragged", "reduce-scatter")) for k in kinds)
    assert not {Op.REPLICA_ID, Op.PARTITION_ID, Op.CUSTOM_CALL} & opcodes(after)
    check(text, inputs)


@pytest.mark.parametrize(
    "line",
    [
        "ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add",
        "ROOT r = f32[4] all-reduce(x), replica_groups=[1,2]<=[2], to_apply=add",
        "ROOT r = f32[4] all-reduce(x), replica_groups={{1,0}}, channel_id=1, to_apply=add",
        "ROOT r = f32[8] all-gather(x), replica_groups={}, dimensions={0}",
        "ROOT r = f32[4] collective-permute(x), source_target_pairs={{2,0}}",
        "ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}",
    ],
)
def test_other_devices_are_an_error_with_its_remedy(line):
    with pytest.raises(UnsupportedError, match=r"devices.*evaluate_replicated"):
        plan(parse_module(entry(line)))


@pytest.mark.parametrize(
    "line",
    [
        "ROOT r = f32[4] all-reduce(x), replica_groups={{0}}, use_global_device_ids=true, to_apply=add",
        "ROOT r = f32[4] all-reduce(x), replica_groups={}, channel_id=1, use_global_device_ids=true, to_apply=add",
    ],
)
def test_ids_that_number_nothing_are_refused_by_evaluator_and_plan(line):
    module = parse_module(entry(line))
    for run_on in (plan, lambda m: evaluate(m, [np.zeros(4, np.float32)])):
        with pytest.raises(CollectiveError, match="has use_global_device_ids, but no"):
            run_on(module)


def test_an_unknown_target_is_left_to_the_stacks():
    text = entry('ROOT r = f32[4] custom-call(x), custom_call_target="nobody"')
    assert [k.instruction.opcode for k in plan(parse_module(text)).kernels] == [Op.CUSTOM_CALL]


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("row", ["", ",2", ",2,3"])
def test_ragged_rows_go_where_the_table_says(rows, row):
    table = [f"{n} = s64[{rows}] parameter({k})" for k, n in enumerate("abcd", 2)]
    text = (
        f"HloModule m\nENTRY e {{\nx = f32[6{row}] parameter(0)\no = f32[8{row}] parameter(1)\n" + "\n".join(table)
        + f"\nROOT r = f32[8{row}] ragged-all-to-all(x, o, a, b, c, d), replica_groups={{{{0}}}}\n}}\n"
    )  # fmt: skip
    x, o, *_ = fill(parse_module(text), 2)
    starts, sizes, targets = (np.array(v[:rows], np.int64) for v in ([0, 2, 5], [2, 3, 1], [1, 2, 7]))  # two overlap
    check(text, [x, o, starts, sizes, targets, sizes])


QUEUES = {
    "send": "(f32[4], u32[], token[]) send(x, k), channel_id=1",
    "recv": "(f32[4], u32[], token[]) recv(k), channel_id=1",
}


DONE = {
    "send": "d = token[] send-done(y), channel_id=1",
    "recv": "d = (f32[4], token[]) recv-done(y), channel_id=1",
}


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("opcode", QUEUES)
def test_channels_are_refused_by_name_and_it_is_said_that_xla_refuses_them(opcode, done):
    lines = [f"y = {QUEUES[opcode]}", *[DONE[opcode]] * done]
    text = entry("k = token[] after-all()", *lines, "ROOT r = f32[4] negate(x)")
    with pytest.raises(UnsupportedError, match=rf"no emitter for {opcode}(-done)? .XLA:CPU has none either") as caught:
        compile_module(parse_module(text))
    assert caught.value.location is not None


def test_control_dependencies_stay():
    text = entry(
        "a = f32[4] negate(x)",
        "c = f32[4] all-reduce(x), to_apply=add, control-predecessors={a}",
        "d = f32[4] abs(x), control-predecessors={c}",
        "ROOT r = (f32[4], f32[4]) tuple(c, d)",
    )
    c, d = run(text, "flatten", "expand-async", "simplify", "dce").entry.root.operands
    assert c.opcode is Op.COPY and [i.attributes["control-predecessors"] for i in (c, d)] == [("a",), ("c",)]
