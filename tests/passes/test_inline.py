"""Inlined calls: nested ones take time in proportion to their size, and effects keep their order."""

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError
from ...hlo.ir import Computation
from ...hlo.opclasses import CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...passes import inline
from ...passes.inline import inline_calls
from ..support.check import check


def nest(levels: int, calls: int = 1) -> str:
    """Functions of which each calls the one before it, one call on the result of another."""
    text = "HloModule m\nf0 { p = f32[] parameter(0)\n  ROOT r = f32[] add(p, p) }\n"
    for n in range(1, levels):
        lines = [f"  c0 = f32[] call(p), to_apply=f{n - 1}\n"]
        lines += [f"  c{k} = f32[] call(c{k - 1}), to_apply=f{n - 1}\n" for k in range(1, calls)]
        half = f"  h = f32[] constant(0.5)\n  ROOT r = f32[] multiply(c{calls - 1}, h) }}\n"
        text += f"f{n} {{ p = f32[] parameter(0)\n{''.join(lines)}{half}"
    return text + f"ENTRY e {{ x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f{levels - 1} }}\n"


def test_each_instruction_is_copied_once_for_each_place(monkeypatch):
    copied = []
    old = inline._Inlining.copy
    monkeypatch.setattr(inline._Inlining, "copy", lambda self, f, i: (copied.append(i), old(self, f, i))[1])
    module = inline_calls(parse_module(nest(300)))
    verify(module)
    assert len(copied) == 2 + 2 + 4 * 299  # the entry, f0, and a parameter, a call and two more of each other one
    assert [c.name for c in module.computations] == ["e"] and Op.CALL not in module.opcodes


def test_calls_nest_deeper_than_the_stack():
    module = parse_module(nest(3000))
    assert len(inline_calls(module).entry.instructions) == 2 + 2 * 2999


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_the_meaning_is_kept(calls):
    text, x = nest(5, calls), np.float32(0.75)
    module = parse_module(text)
    assert evaluate(inline_calls(module), [x]) == evaluate(module, [x])
    check(text, [x])


def test_calls_that_double_without_end_are_refused():
    with pytest.raises(TestbedError, match="e has more than 1,000,000 instructions with all that it calls"):
        inline_calls(parse_module(nest(2000, calls=2)))


EFFECTS = """HloModule m
send { p = f32[] parameter(0)
  t = token[] after-all()
  o = token[] outfeed(p, t), outfeed_shape=f32[]
  ROOT n = f32[] negate(p) }
outer { p = f32[] parameter(0)
  ROOT c = f32[] call(p), to_apply=send }
ENTRY e { x = f32[] parameter(0)
  first = f32[] tanh(x)
  c = f32[] call(x), to_apply=outer, control-predecessors={first}
  ROOT r = f32[] add(x, c), control-predecessors={c} }
"""


def predecessors(computation: Computation, opcode: Op) -> set[str]:
    (found,) = [i for i in computation.instructions if i.opcode is opcode]
    return {computation.by_name[name].opcode.value for name in found.attributes.get(CONTROL_PREDECESSORS, ())}


def test_what_a_call_waits_for_its_effects_and_its_result_wait_for():
    entry = inline_calls(parse_module(EFFECTS)).entry
    assert predecessors(entry, Op.OUTFEED) == predecessors(entry, Op.NEGATE) == {"tanh"}
    assert predecessors(entry, Op.ADD) == {"negate"}


FUSIONS = """HloModule m
inner { p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p) }
held { p = f32[4] parameter(0)
  ROOT f = f32[4] fusion(p), kind=kLoop, calls=inner }
outer { p = f32[4] parameter(0)
  c = f32[4] call(p), to_apply=held
  ROOT a = f32[4] add(c, p) }
ENTRY e { x = f32[4] parameter(0)
  h = f32[4] call(x), to_apply=held
  ROOT f = f32[4] fusion(h), kind=kLoop, calls=outer }
"""


def test_a_fusion_in_a_call_in_a_fusion_is_inlined_and_the_same_call_outside_keeps_it():
    module = inline_calls(parse_module(FUSIONS))
    verify(module)
    by_name = {c.name: c for c in module.computations}
    assert by_name["outer"].opcodes == {Op.PARAMETER, Op.NEGATE, Op.ADD}
    assert sum(i.opcode is Op.FUSION for i in by_name["e"].instructions) == 2
    check(FUSIONS, [np.arange(4, dtype=np.float32)])
