"""copy.deepcopy and pickle of modules: the copy is the same program and shares no instruction with the original."""

import copy
import pickle

import numpy as np
import pytest

from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.dtypes import DType
from ...hlo.equality import difference
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array

CALLS = """HloModule calls, replica_count=2
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT l = pred[] compare(a, b), direction=LT }
yes { x = f32[4] parameter(0)
 ROOT s = f32[4] sort(x), dimensions={0}, to_apply=less }
no { y = f32[4] parameter(0)
 c = f32[4] constant(7)
 ROOT m = f32[4] maximum(y, c) }
ENTRY e { p = pred[] parameter(0)
 v = f32[4] parameter(1)
 t = f32[2] constant({1, nan})
 r = f32[4] conditional(p, v, v), true_computation=yes, false_computation=no
 i = s32[] convert(p), control-predecessors={t}
 ROOT b = f32[4] conditional(i, r, r, r), branch_computations={yes, no, yes} }
"""

COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda module: pickle.loads(pickle.dumps(module))}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_the_same_program(how):
    module = parse_module(CALLS)
    made = COPIES[how](module)
    assert difference(module, made) is None
    assert print_module(made) == print_module(module)
    assert not set(made.instructions()) & set(module.instructions())
    assert [i.location for i in made.instructions()] == [i.location for i in module.instructions()]


@pytest.mark.parametrize("how", COPIES)
def test_a_copied_array_stays_frozen_and_small(how):
    shape = array(DType.BF16, 1000, 1000)
    before = Literal(shape, np.broadcast_to(np.asarray(3, DType.BF16.numpy), shape.dims))
    root = Instruction(Op.CONSTANT, "c", shape, (), {"literal": before})
    entry = Computation("e", (root,), root)
    module = Module("m", (entry,), entry)
    after = COPIES[how](module).entry.root.literal
    assert before.is_splat and after.is_splat and after == before
    assert not after.array.flags.writeable
    assert len(pickle.dumps(module)) < 10_000
    assert after.array.dtype == before.array.dtype and np.all(after.array == 3)


@pytest.mark.parametrize("how", COPIES)
def test_a_long_chain_is_copied(how):
    lines = [f"x{n} = f32[] negate(x{n - 1})" for n in range(1, 5000)]
    module = parse_module("HloModule m\nENTRY e {\nx0 = f32[] parameter(0)\n" + "\n".join(lines) + "\n}")
    assert difference(module, COPIES[how](module)) is None
