"""Reduction: planted faults become a few instructions and keep their outcome; edits make valid modules only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from ...differential.child import Child
from ...differential.fake_inputs import fake_inputs
from ...differential.finding import read_finding
from ...differential.outcome import OutcomeKind, outcome
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS, case_of_fault, plant
from ...differential.reduce import driver
from ...differential.reduce.case import Small, tidy, values_of
from ...differential.reduce.driver import Reducer, check_folder
from ...differential.reduce.edits import PASSES, halves
from ...differential.reduce.sizes import resized, retyped
from ...differential.setting import Setting
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify

UNCACHED = Setting(cache=False)


class Here(Child):
    """A child in this process: it judges at once, with the faults that are planted here."""

    def outcome(self, module, inputs, stacks, limit=0.0, setting=UNCACHED, *, again=False):
        return outcome(module, inputs, stacks, setting, again=again)

    def outcome_like(self, wanted, module, inputs, stacks, limit, setting):
        return outcome(module, inputs, stacks, setting)

    def call(self, function, *arguments, limit_s=0.0):
        return function(*arguments)


HERE = {name: fault for name, fault in FAULTS.items() if fault.text and not name.startswith("thunk")}
"""Faults with a module that may be reduced in this process; a loop with wrong thunks may be endless."""


@pytest.mark.parametrize("fault", HERE.values(), ids=HERE)
def test_a_fault_becomes_a_few_instructions(fault, monkeypatch):
    monkeypatch.setattr(driver, "Child", Here)
    case = replace(case_of_fault(fault), setting=UNCACHED)
    with planted(fault):
        done = Reducer(case, seconds=600).run()
        small = done.finding
        again = outcome(small.module, small.inputs, small.stacks, UNCACHED)
    assert done.complete and done.progress.size <= 6
    assert (again.kind, again.blamed) == (OutcomeKind.DIFFER, fault.blamed) == (small.kind, small.blamed)


def test_what_crashes_is_reduced_in_child_processes(tmp_path):
    """Two at once, from a module with everything that a reduction takes apart."""
    reducer = Reducer(big_case(), jobs=2, seconds=600, begin=partial(plant, "legacy-subtract-swapped"))
    done = reducer.run()
    assert done.outcome.blamed == ("legacy",) and done.progress.size <= 3
    assert done.finding.module.entry.root.opcode is Op.SUBTRACT
    reducer.write(done, tmp_path / "small")
    found = read_finding(tmp_path / "small")
    assert (found.kind, found.blamed, found.text) == (OutcomeKind.DIFFER, ("legacy",), done.finding.text)
    assert (tmp_path / "small/stages/mlir").is_dir()


def test_a_healthy_case_is_returned_as_it_is(monkeypatch):
    monkeypatch.setattr(driver, "Child", Here)
    done = Reducer(case_of_fault(FAULTS["legacy-subtract-swapped"])).run()
    assert done.complete and done.outcome.kind is OutcomeKind.AGREE and done.progress.tried == 0


SIZED = """HloModule m
ENTRY e {{
  x = f32[6] parameter(0)
  n = s32[] parameter(1)
  k = s32[] constant({0})
  m = s32[] add(n, k)
  s = f32[6] subtract(x, x)
  t = f32[6] subtract(x, s)
  {1}d = f32[<=6] set-dimension-size(t, m), dimensions={{0}}
{2}}}
"""


def test_no_edit_sizes_a_dimension_beyond_its_bound(monkeypatch):
    """What stacks do there is undefined, so it would be kept for another reason than the case was found for."""
    case, larger = (SIZED.format(*parts) for parts in ((2, "", "  ROOT r = f32[<=6] copy(d)\n"), (9, "ROOT ", "")))
    module, inputs = parse_module(case), (np.arange(6, dtype=np.float32), np.array(3, np.int32))
    edits = [lambda case: Small.of(parse_module(larger), case.leaves)]
    monkeypatch.setattr(driver, "Child", Here)
    monkeypatch.setattr(driver, "PASSES", {"sizes": lambda case, values: iter(edits)})
    fault = FAULTS["legacy-subtract-swapped"]
    finding = replace(case_of_fault(fault), text=case, module=module, inputs=inputs, setting=UNCACHED)
    with planted(fault):
        assert Reducer(finding, seconds=600).run().progress.kept == 0
        monkeypatch.setattr(driver, "sizes_fit", lambda *case: True)
        assert Reducer(finding, seconds=600).run().progress.kept == 1


def test_the_best_case_survives_an_interrupt(monkeypatch):
    monkeypatch.setattr(driver, "Child", Here)
    fault = FAULTS["mlir-reduce-swaps-accumulator"]

    def stop(progress):
        if progress.kept == 3:
            raise KeyboardInterrupt

    reducer = Reducer(replace(case_of_fault(fault), setting=UNCACHED), seconds=600, on_step=stop)
    with planted(fault), pytest.raises(KeyboardInterrupt):
        reducer.run()
    done = reducer.result()
    assert not done.complete and done.progress.kept == 3 and 5 < done.progress.size < reducer.before + 1
    assert done.outcome.blamed == ("mlir",)


def test_the_last_confirmation_is_a_part_of_the_time(monkeypatch):
    """Each takes 10 s here, and a candidate 1 s: the last one begins after 20 s of 30."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    fault = FAULTS["mlir-reduce-swaps-accumulator"]

    class Slow(Here):
        def outcome(self, *arguments, **options):
            clock.now += 10.0
            return super().outcome(*arguments, **options)

        def outcome_like(self, *arguments):
            clock.now += 1.0
            return super().outcome_like(*arguments)

    monkeypatch.setattr(driver, "Child", Slow)
    monkeypatch.setattr(driver, "time", clock)
    with planted(fault):
        done = Reducer(replace(case_of_fault(fault), setting=UNCACHED), seconds=30).run()
    assert not done.complete and done.progress.kept and 30 < done.seconds <= 32


def test_no_time_gives_the_case_itself(monkeypatch):
    monkeypatch.setattr(driver, "Child", Here)
    fault = FAULTS["legacy-reverse-forgotten"]
    with planted(fault):
        done = Reducer(replace(case_of_fault(fault), setting=UNCACHED), seconds=1e-9).run()
    assert not done.complete and done.progress.kept == 0 and done.outcome.blamed == ("legacy",)


BIG = """HloModule big, entry_computation_layout={(f64[6,8]{0,1}, (s32[3], f32[8]))->(f64[6,4], f32[], s32[3])}

add {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT r = f64[] add(a, b)
}

fused {
  x = f64[6,8] parameter(0)
  y = f64[6,8] parameter(1)
  s = f64[6,8] subtract(x, y)
  ROOT c = f64[6,8] sine(s)
}

yes {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  ROOT t = f32[8] tanh(n)
}

no {
  ROOT x = f32[8] parameter(0)
}

cond {
  s = (s32[], f64[6,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f64[6,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(1)
  j = s32[] add(i, k)
  x = f64[6,8] get-tuple-element(s), index=1
  y = f64[6,8] multiply(x, x)
  ROOT t = (s32[], f64[6,8]) tuple(j, y)
}

ENTRY e {
  p = f64[6,8]{0,1} parameter(0), sharding={replicated}
  q = (s32[3], f32[8]) parameter(1)
  i = s32[3] get-tuple-element(q), index=0
  f = f32[8] get-tuple-element(q), index=1
  z = s32[] constant(0)
  t0 = (s32[], f64[6,8]) tuple(z, p)
  w = (s32[], f64[6,8]) while(t0), condition=cond, body=body, metadata={op_name="loop"}
  v = f64[6,8] get-tuple-element(w), index=1
  g = f64[6,8] fusion(v, p), kind=kLoop, calls=fused
  h = f64[6,4] slice(g), slice={[0:6], [2:6]}
  one = pred[] constant(true)
  c = f32[8] conditional(one, f, f), true_computation=yes, false_computation=no
  zero = f64[] constant(0)
  d = f64[8] convert(c)
  m = f64[] reduce(d, zero), dimensions={0}, to_apply=add
  u = f32[] convert(m)
  ROOT r = (f64[6,4], f32[], s32[3]) tuple(h, u, i)
}
"""


def big_case():
    from ...differential.finding import Finding

    module = parse_module(BIG)
    return Finding(BIG, module, tuple(fake_inputs(module, 3)), setting=UNCACHED)


def offered(name: str, case: Small) -> Iterator[Small]:
    values = values_of(case.module, case.leaves)
    for edit in PASSES[name](case, values):
        made = edit(case)
        if made is not None:
            yield made


@pytest.mark.parametrize("name", PASSES)
def test_edits_of_a_pass_make_valid_cases(name):
    case = Small.of(parse_module(BIG), big_case().inputs)
    smaller = 0
    for made in offered(name, case):
        verify(made.module)
        parse_module(made.text)
        if name != "constants":  # which may make a loop endless; children have a time limit
            assert len(evaluate(made.module, made.leaves)) == sum(1 for _ in made.module.result_shape.leaves())
        smaller += made.cost < case.cost
    assert smaller > 0


def test_a_cut_keeps_the_value():
    case = Small.of(parse_module(BIG), big_case().inputs)
    wanted = evaluate(case.module, case.leaves)
    found = 0
    for made in offered("cuts", case):
        if made.module.result_shape == case.module.result_shape:
            given = evaluate(made.module, made.leaves)
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(wanted, given, strict=True))
            found += made.size < case.size
    assert found > 0


def test_a_size_changes_everywhere_with_its_inputs():
    case = Small.of(parse_module(BIG), big_case().inputs)
    made = resized(case, 8, 3)
    assert made is not None and {8} & {n for i in made.module.instructions() for n in i.shape.dims} == set()
    assert [x.shape for x in made.leaves] == [(6, 3), (3,), (3,)]
    assert made.module.result_shape.elements[0].dims == (6, 1)


def test_a_type_changes_everywhere_with_its_inputs():
    case = Small.of(parse_module(BIG), big_case().inputs)
    made = retyped(case, DType.F64, DType.F32)
    assert made is not None
    assert DType.F64 not in {s.dtype for i in made.module.instructions() for _, s in i.shape.leaves()}
    assert made.leaves[0].dtype == np.float32


def test_chunks_of_delta_debugging():
    assert [list(c) for c in halves("abcd")] == [[*"abcd"], [*"cd"], [*"ab"], ["d"], ["c"], ["b"], ["a"]]
    assert list(halves([])) == []


def test_an_edit_that_fits_nothing_is_none():
    broken = parse_module("HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[5] sine(p)\n}\n")
    assert tidy(broken, {"p": (np.zeros(4, np.float32),)}) is None


def test_a_folder_with_files_is_refused_before_the_work(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match="not an empty folder"):
        check_folder(tmp_path)
    check_folder(tmp_path / "new")
