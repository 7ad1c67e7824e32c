"""Measured programs: what adds up, what is counted, what is known of steps; no time is compared with another."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.loader import deserialize_and_load
from ...backends.host.profiled import profiled
from ...benchmarks import profile_sums
from ...benchmarks.counted import counted
from ...benchmarks.profiles import measure, report
from ...formats.program import save_io
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module, emit_for
from ...profiling import counters as counters_module
from ..support.lhlo_programs import BRANCH, SMALL_LOOP

INPUTS = [np.int32(2), np.linspace(0, 1, 8, dtype=np.float32)]
ITERATIONS = 6

LIBRARY = """HloModule solve
ENTRY e { a = f32[4,4] parameter(0)
  l = f32[4,4] cholesky(a), lower=true, metadata={op_name="jit(f)/cholesky" source_file="model.py" source_line=7}
  b = f32[4,4] dot(l, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[4,4] tanh(b)
  ROOT s = f32[4,4] add(c, l) }"""

SPLIT = """HloModule split
ENTRY e { x = f32[512,512] parameter(0)
  y = f32[512,512] exponential(x)
  ROOT z = f32[512,512] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""


def compiled(text, emitters="legacy", **options):
    flags, options = Flags.parse(emitters), CompileOptions(**options)
    executable = compile_module(parse_module(text), flags, options)
    return profiled(executable, emit_for(flags), options)


def reported(text, inputs, emitters="legacy", iterations=ITERATIONS, **options):
    forms = compiled(text, emitters, **options)
    return report("program", emitters, forms, measure(forms, inputs, iterations))


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
@pytest.mark.parametrize("host_program", ["compiled", "interpreted"])
def test_loops(emitters, host_program):
    made = reported(SMALL_LOOP, INPUTS, emitters, host_program=host_program)
    assert (made.host_program, made.emitters, made.runs, made.lost) == (host_program, emitters, ITERATIONS, 0)
    (loop,) = [step for step in made.steps if step.kind == "while"]
    assert (loop.calls, loop.iterations, loop.depth, loop.opcode, loop.family) == (1, 5, 0, "while", "control")
    inside = [step for step in made.steps if step.depth == 1]
    assert {step.calls for step in inside} == {5, 6}
    assert {step.stack for step in inside if step.kind == "kernel"} == {emitters}
    assert loop.total == pytest.approx(loop.own + sum(step.total for step in inside))
    assert made.between + sum(step.own for step in made.steps) == pytest.approx(made.run)
    assert made.sum == pytest.approx(made.entry + made.run)
    assert min(made.wall, made.least, made.event, made.marginal) > 0


@pytest.mark.parametrize("chosen, calls", [(0, [1, 0, 0]), (1, [0, 1, 1])])
def test_branches(chosen, calls):
    made = reported(BRANCH, [np.int32(chosen), np.eye(64, dtype=np.float32)])
    (branch,) = [step for step in made.steps if step.kind == "conditional"]
    inside = [step for step in made.steps if step.depth == 1]
    assert branch.calls == 1 and [step.calls for step in inside] == calls
    assert branch.total == pytest.approx(branch.own + sum(step.total for step in inside))


def test_a_kernel_of_a_library_is_its_instruction():
    made = reported(LIBRARY, [np.eye(4, dtype=np.float32)])
    (call,) = [step for step in made.steps if step.stack == "library"]
    assert "cholesky" in call.opcode or "potrf" in call.opcode
    assert (call.op_name, call.source) == ("jit(f)/cholesky", "model.py:7") and call.bytes > 0
    (dot,) = [s for s in made.steps if s.opcode == "dot" or any(p.facts.opcode == "dot" for p in s.parts)]
    assert dot.flops >= 2 * 4**3 and dot.stack == "legacy"


def test_a_program_from_a_file_has_names_stacks_and_bytes():
    forms = profiled(deserialize_and_load(compiled(SMALL_LOOP).plain.serialize()))
    made = report("p", "legacy", forms, measure(forms, INPUTS, ITERATIONS))
    known = reported(SMALL_LOOP, INPUTS)
    assert [(s.name, s.kind, s.depth, s.calls, s.stack) for s in made.steps] == [
        (s.name, s.kind, s.depth, s.calls, s.stack) for s in known.steps
    ]
    assert {step.opcode for step in made.steps if step.kind == "kernel"} == {""}
    assert all(step.bytes for step in made.steps if step.kind == "kernel")


def test_kernels_that_threads_share_say_so(two_threads):
    made = reported(SPLIT, [np.ones((512, 512), np.float32)], iterations=2)
    assert made.threads == 2 and any(step.split for step in made.steps)


@pytest.fixture
def two_threads():
    from ...codegen.threads import set_threads, threads

    before = threads()
    set_threads(2)
    yield
    set_threads(before)


def test_a_program_without_steps():
    made = reported("HloModule nothing\nENTRY e { ROOT x = f32[] parameter(0) }", [np.float32(1)])
    assert all(step.kind == "copy" for step in made.steps)
    assert made.sum > 0 and made.overhead > 0


def test_many_marks_of_a_run_fit():
    forms = compiled(SMALL_LOOP.replace("constant(7)", "constant(100000)"))
    made = report("p", "legacy", forms, measure(forms, INPUTS, 1))
    (loop,) = [step for step in made.steps if step.kind == "while"]
    assert made.lost == 0 and loop.iterations == 99_998


def test_long_runs_are_a_burst_each():
    forms = compiled(SMALL_LOOP)
    assert measure(forms, INPUTS, 1).runs == 1


def test_a_run_with_more_marks_than_fit_says_so(monkeypatch):
    forms = compiled(SMALL_LOOP, host_program="interpreted")
    monkeypatch.setattr(forms.steps._executor, "_most_events", 10)
    made = report("p", "legacy", forms, measure(forms, INPUTS, 1))
    assert made.lost > 0 and made.between + sum(step.own for step in made.steps) == pytest.approx(made.run)
    assert any(step.own for step in made.steps)


def test_counters_of_a_run_and_of_steps(monkeypatch):
    class Fake(counters_module.Counters):
        now = 0.0

        def read(self):
            Fake.now += 100.0
            return {"cycles": Fake.now}

    fake = Fake({"cycles": ()}, ("no branch misses: a reason",))
    monkeypatch.setattr("testbed.benchmarks.counted.open_counters", lambda: fake)
    forms = compiled(SMALL_LOOP)
    made = report("p", "legacy", forms, measure(forms, INPUTS, 1))
    found = counted(made, forms.plain, INPUTS)
    assert found.counters == {"cycles": 20.0} and found.notes == ("no branch misses: a reason",)
    kernels = [step for step in found.steps if step.kind == "kernel"]
    assert kernels and all(step.counters == {"cycles": 0.0} for step in kernels)  # what reading costs is taken off
    assert all(step.counters is None for step in found.steps if step.kind == "while")
    monkeypatch.setattr("testbed.benchmarks.counted.MOST_CALLS", 3)
    found = counted(made, forms.plain, INPUTS)
    assert found.counters and "whole run only" in found.notes[-1] and found.steps == made.steps


def test_the_table_of_sums(tmp_path, capsys):
    folder = tmp_path / "loop"
    folder.mkdir()
    (folder / "module.hlo").write_text(SMALL_LOOP)
    save_io(folder / "io.npz", INPUTS, ())
    arguments = [str(tmp_path), "--iterations", "3", "--within", "1e9", "--overhead", "1e9"]
    assert profile_sums.main(arguments) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].startswith("loop ") and "within 100000000000% of wall: 1 of 1" in out
    assert profile_sums.main([*arguments[:3], "--within", "-1"]) == 1
    assert " off" in capsys.readouterr().out
