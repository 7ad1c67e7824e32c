"""Profiling in LHLO: what insert-profile makes, that it round trips and keeps results, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.formats.text.parser import parse_module
from testbed.hlo.errors import VerificationError
from testbed.lhlo import from_plan, parse_bytecode, parse_text
from testbed.lhlo.passes.pipeline import run_passes
from testbed.lhlo.to_plan import to_plan
from testbed.planning.planner import plan
from testbed.profiling.insert import profiled
from testbed.thunks import from_plan as thunks_of
from testbed.thunks import to_text

from ..support.lhlo_programs import LOOP, run

PROGRAM = """func.func @f(%p: memref<i1>, %a: memref<4xf32>, %o: memref<4xf32>, %t: !lhlo.profiler)
    attributes {{lhlo.program}} {{
{}
return
}}"""


def mark(which: str, name: str = "a", number: object = 0, profiler: str = "%t") -> str:
    return f'"lhlo.profile_{which}"({profiler}) {{name = "{name}", id = {number} : i64}} : (!lhlo.profiler) -> ()'


NEGATE = '"lhlo.negate"(%a, %o) {name = "n"} : (memref<4xf32>, memref<4xf32>) -> ()'


def marked(text: str):
    return run_passes(parse_text(text), ["insert-profile"])


def test_each_step_is_marked_and_the_program_has_the_thunks_of_a_marked_plan():
    made = plan(parse_module(LOOP))
    lhlo = marked(from_plan(made).to_text())
    wanted = to_text(thunks_of(profiled(made)))
    assert wanted.count("profile begin") == len(list(made.walk())) == wanted.count("profile end")
    for again in (lhlo, parse_text(lhlo.to_text()), parse_bytecode(lhlo.to_bytecode())):
        assert again.to_text() == lhlo.to_text()
        program = to_plan(again)
        assert to_text(thunks_of(program)) == wanted
        assert from_plan(program).to_text() == lhlo.to_text()
    assert lhlo.to_text().count("!lhlo.profiler)") == 1 + 2 * len(list(made.walk()))


def test_a_program_with_a_profiler_stays_as_it_is():
    once = marked(from_plan(plan(parse_module(LOOP))).to_text())
    assert run_passes(once, ["insert-profile"]).to_text() == once.to_text()
    program = to_plan(once)
    assert profiled(program) is program


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_results_keep_their_bits(stack):
    made = plan(parse_module(LOOP))
    program = to_plan(marked(from_plan(made).to_text()))
    inputs = [np.int32(1), np.array([0.5, -1, 2, 3], np.float32), np.array([1 + 2j, -0.5j], np.complex64)]
    for got, want in zip(run(program, stack, inputs), run(made, stack, inputs), strict=True):
        assert got.tobytes() == want.tobytes()


def test_a_step_without_a_name_is_called_by_its_op():
    text = PROGRAM.format('"lhlo.negate"(%a, %o) : (memref<4xf32>, memref<4xf32>) -> ()').replace(
        ", %t: !lhlo.profiler", ""
    )
    assert '{id = 0 : i64, name = "negate"}' in marked(text).to_text()


def test_the_default_passes_mark_nothing():
    text = from_plan(plan(parse_module(LOOP))).to_text()
    assert "profile" not in run_passes(parse_text(text)).to_text()


def test_passes_run_on_a_marked_program():
    lhlo = marked(from_plan(plan(parse_module(LOOP))).to_text())
    after = run_passes(lhlo).to_text()
    assert after.count("lhlo.profile_start") == lhlo.to_text().count("lhlo.profile_start")


def test_a_kernel_alone_is_refused_with_its_place():
    kernel = "func.func @k(%a: memref<4xf32>, %o: memref<4xf32>) attributes {lhlo.kernel} {\n" + NEGATE + "\nreturn }"
    with pytest.raises(VerificationError, match="no program") as caught:
        run_passes(parse_text(kernel, "k.mlir"), ["insert-profile"], "k.mlir")
    assert caught.value.location is not None and caught.value.remedy


LOOPED = '"lhlo.while"(%p) ({{ {} vector.yield }}, {{ {} vector.yield }}) : (memref<i1>) -> ()'

WRONG = {
    "PROFILE1-kernel": PROGRAM.format(NEGATE).replace("lhlo.program", "lhlo.kernel"),
    "PROFILE1-first": PROGRAM.format(NEGATE).replace("%p: memref<i1>", "%q: !lhlo.profiler, %p: memref<i1>"),
    "PROFILE1-middle": PROGRAM.format(NEGATE).replace("%t: !lhlo.profiler", "%t: !lhlo.profiler, %z: memref<i1>"),
    "PROFILE1-attributes": PROGRAM.format(NEGATE).replace("%t: !lhlo.profiler", "%t: !lhlo.profiler {lhlo.written}"),
    "PROFILE2": PROGRAM.format(mark("start", number=-1)),
    "PROFILE2-large": PROGRAM.format(mark("start", number=1 << 24)),
    "PROFILE3-open": PROGRAM.format(mark("start")),
    "PROFILE3-closed": PROGRAM.format(mark("end")),
    "PROFILE3-name": PROGRAM.format(mark("start") + mark("end", "b")),
    "PROFILE3-id": PROGRAM.format(mark("start") + mark("end", number=1)),
    "PROFILE3-order": PROGRAM.format(mark("start") + mark("start", "b", 1) + mark("end") + mark("end", "b", 1)),
    "PROFILE3-across": PROGRAM.format(mark("start") + LOOPED.format(mark("end"), "")),
    "PROFILE3-inside": PROGRAM.format(LOOPED.format("", mark("start")) + mark("end")),
    "PROFILE4": PROGRAM.format((mark("start") + mark("end")) * 2),
    "PROFILE4-inside": PROGRAM.format(mark("start") + LOOPED.format("", mark("start") + mark("end")) + mark("end")),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_interval_is_refused_with_its_place(case):
    with pytest.raises(VerificationError) as caught:
        parse_text(WRONG[case], "bad.mlir")
    assert f"[{case.partition('-')[0]}]" in str(caught.value)
    assert caught.value.location is not None and caught.value.location.file == "bad.mlir"


def test_marks_that_nest_are_accepted():
    inner = mark("start", "b", 7) + mark("end", "b", 7)
    text = PROGRAM.format(
        mark("start") + LOOPED.format(mark("start", "c", 1) + mark("end", "c", 1), inner) + mark("end")
    )
    assert parse_text(text).to_text().count("profile_start") == 3
