"""The profile of a compiled program: as many calls as its steps ran, and results with the bits of a run without it."""

import threading

import numpy as np
import pytest

import testbed

from ...backends.base import CompileOptions
from ...differential import executions
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...lhlo import from_plan
from ...migration import Flags, compile_module
from ...migration.compile import compile_program
from ...migration.programs import load_any
from ...planning.planner import plan
from ...profiling.insert import profiled
from ..support.lhlo_programs import BRANCH, LOOP

STACKS = ("legacy", "mlir")

NESTED = """HloModule nested
inner { s = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] cosine(x)
  ROOT t = (s32[], s32[], f32[8]) tuple(j, n, y) }
less { s = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, n), direction=LT }
outer { s = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[8] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  t = (s32[], s32[], f32[8]) tuple(zero, n, x)
  w = (s32[], s32[], f32[8]) while(t), condition=less, body=inner
  y = f32[8] get-tuple-element(w), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], s32[], f32[8]) tuple(j, n, y) }
ENTRY e { n = s32[] parameter(0)
  x = f32[8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], s32[], f32[8]) tuple(zero, n, x)
  w = (s32[], s32[], f32[8]) while(t), condition=less, body=outer
  ROOT y = f32[8] get-tuple-element(w), index=2 }"""

X = np.linspace(0, 1, 8, dtype=np.float32)


def compiled(text, stack, profile=True, **options):
    return compile_module(
        parse_module(text), Flags.parse(stack), CompileOptions(cache=None, profile=profile, **options)
    )


def calls(executable, kind):
    return [(r.depth, r.calls) for r in executable.profile().rows if r.what == kind]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_loops_in_loops_are_counted(stack, n):
    executable = compiled(NESTED, stack)
    assert calls(executable, "while") == [(0, 0), (1, 0)]
    for _ in range(2):
        executable.execute([np.int32(n), X])
    assert calls(executable, "while") == [(0, 2), (1, 2 * n)]
    inner = [count for depth, count in calls(executable, "kernel") if depth == 2]
    assert sorted(set(inner)) == sorted({2 * n * n, 2 * n * (n + 1)})
    assert executable.profile().runs == 2 and executable.profile().lost == 0


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(
    "text, inputs", [(LOOP, [np.int32(1), X[:4], np.array([1 + 2j, -0.5j], np.complex64)]), (NESTED, [np.int32(2), X])]
)
def test_results_have_the_bits_of_a_run_without_a_profile(stack, text, inputs):
    with_profile, without = compiled(text, stack), compiled(text, stack, profile=False)
    for got, want in zip(with_profile.execute(inputs), without.execute(inputs), strict=True):
        assert got.tobytes() == want.tobytes()
    assert with_profile.kernels == without.kernels


@pytest.mark.parametrize("chosen, counts", [(0, [3, 0, 0]), (1, [0, 3, 3])])
def test_a_conditional_counts_the_branch_that_ran(chosen, counts):
    executable = compiled(BRANCH, "legacy")
    for _ in range(3):
        executable.execute([np.int32(chosen), np.eye(64, dtype=np.float32)])
    assert calls(executable, "conditional") == [(0, 3)]
    assert calls(executable, "kernel") == [(1, count) for count in counts]


def test_lhlo_with_a_profiler_needs_no_option():
    text = from_plan(profiled(plan(parse_module(NESTED)))).to_text()
    loaded = load_any(text.encode(), "n.lhlo.mlir")
    program = Program("n", loaded.text, loaded.module, plan=loaded.plan)
    executable = compile_program(program, Flags.parse("mlir"), CompileOptions(cache=None))
    executable.execute([np.int32(3), X])
    assert calls(executable, "while") == [(0, 1), (1, 3)]


def test_a_program_from_a_file_has_its_profile(tmp_path):
    executable = compiled(NESTED, "legacy")
    executable.save(tmp_path / "nested.tbx")
    loaded = testbed.load_executable(tmp_path / "nested.tbx")
    loaded.execute([np.int32(3), X])
    assert calls(loaded, "while") == [(0, 1), (1, 3)]
    assert executable.profile().runs == 0


def test_conform_runs_programs_with_a_profile(monkeypatch):
    executable = compiled(NESTED, "legacy", profile=False, host_program="interpreted")
    made = executions.WAYS["with a profile"](executable)
    made.execute([np.int32(3), X])
    assert calls(made, "while") == [(0, 1), (1, 3)]
    program = Program("nested", NESTED, parse_module(NESTED))
    assert executions.difference(program) is None
    other = compiled(NESTED.replace("cosine", "sine"), "legacy")
    monkeypatch.setitem(executions.WAYS, "with a profile", lambda executable: other)
    assert executions.difference(program) == "legacy: the results with a profile differ"


def test_red_zones_and_a_profile_go_together():
    executable = compiled(NESTED, "legacy", red_zones=True)
    executable.execute([np.int32(2), X])
    assert calls(executable, "while") == [(0, 1), (1, 2)]


def test_threads_are_counted_together():
    executable = compiled(NESTED, "legacy")
    threads = [threading.Thread(target=executable.execute, args=([np.int32(3), X],)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert executable.profile().runs == 6
    assert calls(executable, "while") == [(0, 6), (1, 18)]


def test_clear_begins_again():
    executable = compiled(NESTED, "legacy")
    executable.execute([np.int32(2), X])
    assert executable.profile(clear=True).runs == 1
    executable.execute([np.int32(1), X])
    assert calls(executable, "while") == [(0, 1), (1, 1)]


def test_events_that_do_not_fit_are_reported(monkeypatch):
    executable = compiled(NESTED, "legacy")
    monkeypatch.setattr(executable._executor, "_most_events", 10)
    executable.execute([np.int32(4), X])
    made = executable.profile()
    assert made.lost > 0 and "did not fit" in str(made)
    assert calls(executable, "while")[0] == (0, 0)  # its end is lost


def test_a_program_without_profile_says_how_to_get_one():
    executable = compiled(NESTED, "legacy", profile=False)
    with pytest.raises(InputError, match="compiled without a profile") as caught:
        executable.profile()
    assert "profile=True" in caught.value.remedy


@pytest.mark.parametrize("text", [
    "HloModule none\nENTRY e {\n  ROOT t = () tuple()\n}\n",
    "HloModule none\nENTRY e {\n  p = c64[1,0] parameter(0)\n  ROOT r = c64[1,0] exponential(p)\n}\n",
])  # fmt: skip
def test_a_program_without_steps_has_an_empty_profile(text):
    module = parse_module(text)
    executable = compile_module(module, Flags.parse("mlir"), CompileOptions(profile=True))
    executable.execute([np.zeros(p.shape.dims, np.complex64) for p in module.entry.parameters])
    assert executable.profile().rows == ()
