"""Executables with marks: the bits of the plain one; events by native calls and by Python's; from files; of LHLO."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.loader import deserialize_and_load
from ...backends.host.profiled import profiled
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...lhlo import from_plan
from ...migration import Flags, compile_module, emit_for
from ...migration.compile import compile_program
from ...migration.programs import load_any
from ...planning.planner import plan
from ...profiling.insert import profiled as profiled_plan
from ...profiling.totals import totals
from ...thunks.marked import numbered_steps
from ..support.lhlo_programs import SMALL_LOOP

INPUTS = [np.int32(2), np.linspace(0, 1, 8, dtype=np.float32)]
STACKS = ("legacy", "mlir")


def forms_of(stack, host_program):
    options = CompileOptions(host_program=host_program)
    flags = Flags.parse(stack)
    return profiled(compile_module(parse_module(SMALL_LOOP), flags, options), emit_for(flags), options)


def calls(executable, runs):
    """Step → calls of all runs, from the events of runs since the last time."""
    count = len(numbered_steps(executable.thunks)) + 1
    parts = [totals(r.marks, r.times, count) for r in executable.take_events()]
    assert sum(p.runs for p in parts) == runs
    return np.sum([p.calls for p in parts], axis=0).tolist()


@pytest.mark.parametrize("host_program", ["compiled", "interpreted"])
@pytest.mark.parametrize("stack", STACKS)
def test_forms_give_the_same_bits_and_count_calls(stack, host_program):
    forms = forms_of(stack, host_program)
    wanted = [r.tobytes() for r in forms.plain.execute(INPUTS)]
    for executable in (forms.run, forms.steps):
        assert executable.host_program == host_program
        for _ in range(5):
            assert [r.tobytes() for r in executable.execute(INPUTS)] == wanted
    runs, *none = calls(forms.run, 5)
    assert runs == 5 and not any(none)
    runs, *each = calls(forms.steps, 5)
    assert runs == 5 and sorted(set(each)) == [5, 25, 30]  # the loop; its body, five times; its condition
    assert forms.steps.take_events() == []


def test_a_program_from_a_file():
    loaded = deserialize_and_load(forms_of("legacy", "compiled").plain.serialize())
    forms = profiled(loaded)
    wanted = [r.tobytes() for r in loaded.execute(INPUTS)]
    for _ in range(3):
        assert [r.tobytes() for r in forms.steps.execute(INPUTS)] == wanted
    assert forms.steps.host_program == "compiled" and forms.plain is loaded
    assert calls(forms.steps, 3)[0] == 3


def test_marks_of_the_program_itself_are_no_part_of_it():
    text = from_plan(profiled_plan(plan(parse_module(SMALL_LOOP)))).to_text()
    loaded = load_any(text.encode(), "marked.lhlo.mlir")
    flags = Flags.parse("mlir")
    executable = compile_program(Program("m", loaded.text, loaded.module, plan=loaded.plan), flags)
    forms = profiled(executable, emit_for(flags), CompileOptions())
    assert forms.plain is not executable
    wanted = [r.tobytes() for r in executable.execute(INPUTS)]
    assert [r.tobytes() for r in forms.plain.execute(INPUTS)] == wanted
    assert [r.tobytes() for r in forms.steps.execute(INPUTS)] == wanted
    assert len(numbered_steps(forms.steps.thunks)) == len(numbered_steps(executable.thunks))


def test_kernels_inlined_into_loops_stay_so_around_the_run():
    """A long loop of small kernels: with marks around the run only, it still calls none of them."""
    text = SMALL_LOOP.replace("constant(7)", "constant(5000)")
    assert text != SMALL_LOOP
    flags, options = Flags.parse("legacy"), CompileOptions()
    executable = compile_module(parse_module(text), flags, options)
    forms = profiled(executable, emit_for(flags), options)
    count = len(numbered_steps(executable.thunks)) + 1
    forms.run.execute(INPUTS)
    (run,) = forms.run.take_events()
    assert totals(run.marks, run.times, count).calls.tolist() == [1, *[0] * (count - 1)]
    assert forms.run.execute(INPUTS)[0].tobytes() == executable.execute(INPUTS)[0].tobytes()
