"""Passes on LHLO: what they leave, that results stay, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.evaluator.evaluator import evaluate
from testbed.formats.text.parser import parse_module
from testbed.hlo.errors import InputError, VerificationError
from testbed.lhlo import from_plan, parse_text
from testbed.lhlo.passes.pipeline import PASSES, run_passes
from testbed.lhlo.to_plan import to_plan
from testbed.planning.planner import plan

from ..support.corpus import sample
from ..support.lhlo_programs import LOOP, run

COPIES = """func.func @copies(%x: memref<4xf32>, %n: memref<i32>, %y: memref<4xf32>, %z: memref<4xf32>,
    %t: memref<64xi8> {lhlo.kind = "temporary"}) attributes {lhlo.program} {
  %a = "lhlo.view"(%t) : (memref<64xi8>) -> memref<32xi8>
  %b = "lhlo.view"(%a) {offset = 16 : i64} : (memref<32xi8>) -> memref<4xf32>
  %same = "lhlo.view"(%t) {offset = 16 : i64} : (memref<64xi8>) -> memref<4xf32>
  %c = "lhlo.view"(%t) {offset = 32 : i64} : (memref<64xi8>) -> memref<4xf32>
  %unused = "lhlo.view"(%t) {offset = 48 : i64} : (memref<64xi8>) -> memref<4xf32>
  memref.copy %x, %b : memref<4xf32> to memref<4xf32>
  "lhlo.negate"(%same, %y) {kernel = "k"} : (memref<4xf32>, memref<4xf32>) -> ()
  "lhlo.exponential"(%b, %c) : (memref<4xf32>, memref<4xf32>) -> ()
  memref.copy %y, %c : memref<4xf32> to memref<4xf32>
  "lhlo.abs"(%y, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  "lhlo.sine"(%c, %z) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}"""


def same_results(before: str, after: str, inputs: list[np.ndarray]) -> None:
    old, new = to_plan(parse_text(before)), to_plan(parse_text(after))
    wanted = evaluate(old.module, inputs)
    for got in (evaluate(new.module, inputs), run(new, "legacy", inputs), run(new, "mlir", inputs)):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_copies_and_dead_steps_go():
    after = run_passes(parse_text(COPIES)).to_text()
    assert after.count("memref.copy") == 1, after  # c keeps what y was, because y changes
    assert "lhlo.exponential" not in after
    assert after.count("lhlo.view") == 1
    assert 'kernel = "k"' not in after
    same_results(COPIES, after, [np.array([1, -2, 3, 0.5], np.float32), np.int32(0)])


def test_canonical_form_folds_views():
    after = run_passes(parse_text(COPIES), ["canonicalize"]).to_text()
    assert after.count("lhlo.view") == 2 and after.count("memref.copy") == 2
    assert run_passes(parse_text(after), ["canonicalize"]).to_text() == after


@pytest.mark.parametrize("name", PASSES)
def test_programs_keep_their_results(name):
    made = plan(parse_module(LOOP))
    text = from_plan(made).to_text()
    after = run_passes(parse_text(text), [name]).to_text()
    x = np.array([0.5, -1.0, 2.0, 3.0], np.float32)
    same_results(text, after, [np.int32(1), x, np.array([1 + 2j, -0.5j], np.complex64)])


def test_programs_of_the_corpus_keep_their_results():
    for path in sample("jax_programs/*/module.hlo", 2, seed=8):
        text = from_plan(plan(parse_module(path.read_text(), str(path)))).to_text()
        after = run_passes(parse_text(text))
        assert after.to_text().count("kernel = ") <= text.count("kernel = ")
        to_plan(parse_text(after.to_text()))


LOOPED = """func.func @loop(%n: memref<i32>, %i: memref<i32> {{lhlo.kind = "result", lhlo.number = 0 : i64}},
    %last: memref<i32> {{lhlo.kind = "result", lhlo.number = 1 : i64}},
    %old: memref<i32> {{lhlo.kind = "temporary"}},
    %p: memref<i1> {{lhlo.kind = "temporary"}}) attributes {{lhlo.program}} {{
  %zero = memref.get_global @constant_5 : memref<i32>
  %one = memref.get_global @constant_6 : memref<i32>
  "lhlo.copy"(%zero, %i) : (memref<i32>, memref<i32>) -> ()
  {first}
  "lhlo.while"(%p) ({{
    "lhlo.compare"(%i, %n, %p) {{direction = "LT"}} : (memref<i32>, memref<i32>, memref<i1>) -> ()
    vector.yield
  }}, {{
    "lhlo.copy"(%old, %last) : (memref<i32>, memref<i32>) -> ()
    memref.copy %i, %old : memref<i32> to memref<i32>
    "lhlo.add"(%i, %one, %i) : (memref<i32>, memref<i32>, memref<i32>) -> ()
    vector.yield
  }}) : (memref<i1>) -> ()
  return
}}
memref.global "private" constant @constant_5 : memref<i32> = dense<0>
memref.global "private" constant @constant_6 : memref<i32> = dense<1>
"""
FIRST = """memref.copy %zero, %old : memref<i32> to memref<i32>
  "lhlo.copy"(%zero, %last) : (memref<i32>, memref<i32>) -> ()"""


def test_what_an_iteration_leaves_for_the_next_is_live():
    text = LOOPED.format(first=FIRST)
    after = run_passes(parse_text(text))
    assert after.to_text().count("memref.copy") == 2
    assert [int(v) for v in evaluate(to_plan(after).module, [np.int32(4)])] == [4, 2]


def test_reads_of_what_nothing_wrote_are_refused_with_their_line():
    with pytest.raises(VerificationError, match="which nothing has written") as found:
        run_passes(parse_text(LOOPED.format(first="")), ["check-buffers"])
    assert found.value.location is not None and found.value.location.line == 13


def test_only_a_kernel_has_scratch_memory():
    text = LOOPED.format(first=FIRST).replace("memref.copy %zero, %old", "memref.copy %zero, %old {scratch}")
    after = run_passes(parse_text(text.replace("return\n", "return {scratch}\n")), ["check-buffers"])
    assert after.to_text().count("{scratch}") == 2


def test_a_pass_that_breaks_the_module_is_named(monkeypatch):
    def broken(op):
        function = next(o.operation for o in op.regions[0].blocks[0].operations if o.operation.name == "func.func")
        del function.attributes["lhlo.program"]
        raise VerificationError("broken on purpose")

    from testbed.lhlo.passes import pipeline

    monkeypatch.setitem(pipeline.PASSES, "broken", pipeline.LhloPass("broken", "", broken))
    with pytest.raises(VerificationError, match="on purpose"):
        run_passes(parse_text(COPIES), ["broken"])


def test_an_unknown_pass_is_refused():
    with pytest.raises(InputError, match="no LHLO pass 'fuse'"):
        run_passes(parse_text(COPIES), ["fuse"])
