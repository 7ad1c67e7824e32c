"""Errors of collectives on simulated devices: invalid groups, devices that do not arrive, devices that deadlock."""

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import CollectiveError, InputError, UnsupportedError
from ..support.simulated_devices import REGIONS, alone, run


def test_a_device_that_never_comes():
    computations = """yes { p = f32[1] parameter(0)
  ROOT met = f32[1] all-reduce(p), to_apply=add }
no { ROOT p = f32[1] parameter(0) }
"""
    body = """  p = f32[1] parameter(0)
  i = u32[] replica-id()
  s = s32[] convert(i)
  ROOT r = f32[1] conditional(s, p, p), branch_computations={yes, no}"""
    with pytest.raises(CollectiveError) as error:
        run(body, alone([1], [2]), replicas=2, computations=computations)
    assert "replica 0 waits at met (line 6) for replica 1; replica 1 ended without it" in str(error.value)


def test_devices_that_wait_for_each_other():
    computations = """left { p = f32[1] parameter(0)
  a = f32[1] all-reduce(p), channel_id=1, to_apply=add
  ROOT b = f32[1] all-reduce(a), channel_id=2, to_apply=add }
right { p = f32[1] parameter(0)
  c = f32[1] all-reduce(p), channel_id=2, to_apply=add
  ROOT d = f32[1] all-reduce(c), channel_id=1, to_apply=add }
"""
    body = """  p = f32[1] parameter(0)
  i = u32[] replica-id()
  s = s32[] convert(i)
  ROOT r = f32[1] conditional(s, p, p), branch_computations={left, right}"""
    with pytest.raises(CollectiveError) as error:
        run(body, alone([1], [2]), replicas=2, computations=computations)
    assert "replica 0 waits at a" in str(error.value) and "replica 1 waits at c" in str(error.value)


def test_different_collectives_meet():
    computations = """left { p = f32[2] parameter(0)
  ROOT sum = f32[2] all-reduce(p), to_apply=add }
right { p = f32[2] parameter(0)
  ROOT swap = f32[2] all-to-all(p), dimensions={0} }
"""
    body = """  p = f32[2] parameter(0)
  i = u32[] replica-id()
  s = s32[] convert(i)
  ROOT r = f32[2] conditional(s, p, p), branch_computations={left, right}"""
    message = "replica 1 reaches all-to-all swap where replica 0 reached all-reduce sum"
    with pytest.raises(CollectiveError, match=message):
        run(body, alone([1, 2], [3, 4]), replicas=2, computations=computations)


def test_an_error_on_one_device_ends_all():
    body = """  p = f32[1] parameter(0)
  s = f32[1] all-reduce(p), to_apply=add
  ROOT r = f32[1] custom-call(s), custom_call_target="nobody_knows_it\""""
    with pytest.raises(UnsupportedError, match="nobody_knows_it"):
        run(body, alone([1], [2]), replicas=2)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("ROOT r = f32[1] all-reduce(p), replica_groups={{0,5}}, to_apply=add", UnsupportedError, "needs more devices"),
        ("ROOT r = f32[1] all-reduce(p), replica_groups={{0}}, to_apply=add", CollectiveError, "names replica 1"),
        ("ROOT r = f32[1] all-reduce(p), use_global_device_ids=true, to_apply=add", CollectiveError, "no channel_id"),
        ("ROOT r = f32[3] all-gather(p), dimensions={0}", CollectiveError, "gives [2] on this number of devices"),
        ("ROOT r = f32[1] all-to-all(p), dimensions={0}", CollectiveError, "cannot cut 1 elements into 2"),
        ("ROOT r = (f32[1]) all-to-all(p), replica_groups={{0,1}}", CollectiveError, "1 operands for a group of 2"),
        (
            "ROOT r = f32[1] all-reduce(p), replica_groups=mesh['a'=2] {'a':(2)2}, to_apply=add",
            UnsupportedError,
            "write the groups out",
        ),
    ],
)
def test_groups_that_cannot_be(body: str, error: type, message: str):
    with pytest.raises(error) as caught:
        run(f"  p = f32[1] parameter(0)\n  {body}", alone([1], [2]), replicas=2)
    assert message in str(caught.value)


def test_inputs_must_be_given_for_each_device():
    with pytest.raises(InputError, match="1 lists of inputs for 2 devices"):
        run("  ROOT p = f32[1] parameter(0)", alone([1]), replicas=2)
    with pytest.raises(InputError, match="there is no device: 0 replicas × 1 partitions"):
        run("  ROOT p = f32[1] parameter(0)", [], replicas=0)


def test_one_device_is_told_how_to_get_more():
    module = parse_module(
        f"HloModule m\n{REGIONS}ENTRY e {{\n  p = f32[1] parameter(0)\n"
        "  ROOT r = f32[1] all-reduce(p), replica_groups={{0,1}}, to_apply=add\n}\n"
    )
    with pytest.raises(UnsupportedError, match="evaluate_replicated"):
        evaluate(module, [np.ones(1, np.float32)])
