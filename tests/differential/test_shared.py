"""What the runs of a case share: each kernel is emitted and compiled once for each stack, and results stay the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from ...backends.host.compiler import FEW, batches_of
from ...codegen import optimize
from ...differential.execute import execute
from ...differential.outcome import OutcomeKind, outcome
from ...differential.setting import Setting
from ...differential.shared import Shared
from ...formats.text.parser import parse_module
from ...hlo.opcodes import Op
from ...migration.choose import choose
from ...migration.flags import Flags

MIXTURES = ("legacy,sine=mlir,sort=mlir", "mlir,reduce=legacy")
STACKS = ("evaluator", "legacy", "mlir", *MIXTURES)
SETTING = Setting(cache=False, fusion=False, optimized=False)
LOOP = """
body {
  s = (s32[], f32[2,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2,2] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2,2] sine(x)
  ROOT r = (s32[], f32[2,2]) tuple(j, y)
}
more {
  s = (s32[], f32[2,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(40)
  ROOT r = pred[] compare(i, n), direction=LT
}
"""
MODULE = parse_module(f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
{LOOP}
ENTRY e {{
  p = f32[2,2] parameter(0)
  zero = s32[] constant(0)
  z = f32[] constant(0)
  state = (s32[], f32[2,2]) tuple(zero, p)
  last = (s32[], f32[2,2]) while(state), condition=more, body=body
  x = f32[2,2] get-tuple-element(last), index=1
  c = f32[2,2] cholesky(p), lower=true
  y = f32[2,2] cosine(c)
  sum = f32[2] reduce(y, z), dimensions={{1}}, to_apply=add
  e = f32[2,2] exponential(y)
  t = f32[4,2] concatenate(e, y), dimensions={{0}}
  ROOT r = (f32[2,2], f32[2], f32[4,2]) tuple(x, sum, t)
}}
""")
X = [np.array([[4, 1], [1, 3]], np.float32)]


@pytest.fixture
def emitted(monkeypatch):
    """How often each stack emitted each kernel."""
    module = import_module("...migration.choose", __package__)  # `migration.choose` is a function, too
    counts, made, emitters = Counter(), module.emitter, {}

    def counting(name):
        emitter = made(name)

        def emit(requests, options):
            counts.update((name, request.name) for request in requests)
            return emitter.emit(requests, options)

        return emitters.setdefault(name, replace(emitter, emit=emit))

    monkeypatch.setattr(module, "emitter", counting)
    return counts


def test_each_stack_emits_each_kernel_once_however_many_mixtures_run(emitted, monkeypatch):
    compiled, build = Counter(), optimize.optimized
    monkeypatch.setattr(optimize, "optimized", lambda ir, *rest: compiled.update([ir]) or build(ir, *rest))
    found = outcome(MODULE, X, STACKS, SETTING)
    assert found.kind is OutcomeKind.AGREE and set(emitted.values()) == {1}
    of = {stack: {kernel for name, kernel in emitted if name == stack} for stack in ("legacy", "mlir", "library")}
    assert of["legacy"] == of["mlir"] and len(of["mlir"]) > 4 and len(of["library"]) == 1
    assert set(compiled.values()) == {1}


def test_without_mixtures_batches_are_those_of_every_program():
    shared = Shared(MODULE, SETTING, ("evaluator", "legacy", "mlir", "xla", "no stack"))
    kernels = [k for k in shared.plan.kernels if k.instruction.opcode is not Op.CHOLESKY]
    assert len(kernels) > FEW and shared.options().batches(kernels) == batches_of(kernels)


def test_a_mixture_gives_the_bits_of_a_run_of_its_own():
    shared = Shared(MODULE, SETTING, STACKS)
    for stack in STACKS:
        together, alone = execute(MODULE, X, stack, SETTING, shared), execute(MODULE, X, stack, SETTING)
        assert [a.tobytes() for a in together] == [a.tobytes() for a in alone]


def test_kernels_of_a_mixture_are_of_the_stacks_that_its_flags_say():
    shared = Shared(MODULE, SETTING, STACKS)
    for text in MIXTURES:
        flags = Flags.parse(text)
        chosen = {k.name: shared.emitters(flags)(k).name for k in shared.plan.kernels}
        assert chosen == {k.name: choose(flags, k) for k in shared.plan.kernels}
        assert len(set(chosen.values())) == 3


def test_other_emitters_emit_anew_for_the_same_plan(emitted):
    shared = Shared(MODULE, SETTING, STACKS)
    execute(MODULE, X, "legacy", SETTING, shared)
    other = shared.with_other_emitters()
    execute(MODULE, X, "legacy", SETTING, other)
    assert other.plan is shared.plan
    assert {n for (stack, _), n in emitted.items() if stack == "legacy"} == {2}


def test_objects_are_on_disk_only_where_the_setting_has_the_cache():
    assert Shared(MODULE, Setting()).options().cache is Setting().options().cache
    memory = Shared(MODULE, SETTING).options().cache
    assert memory.read("key") is None and memory.directory is None
    memory.write("key", b"object")
    assert memory.read("key") == b"object" and memory.directory is None
