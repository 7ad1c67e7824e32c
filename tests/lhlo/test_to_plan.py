"""LHLO as a program: the thunks of the HLO that it came from, hand-written programs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.backends.base import CompileOptions
from testbed.evaluator.evaluator import evaluate
from testbed.formats.program import Program
from testbed.formats.text.parser import parse_module
from testbed.hlo.errors import UnsupportedError, VerificationError
from testbed.hlo.verify.verifier import verify
from testbed.lhlo import from_plan, parse_bytecode, parse_text
from testbed.lhlo.to_plan import to_plan
from testbed.migration import Flags
from testbed.migration.compile import compile_program
from testbed.migration.programs import load_any
from testbed.planning.planner import plan
from testbed.thunks import from_plan as thunks_of
from testbed.thunks import to_text

from ..support.corpus import sample
from ..support.lhlo_programs import LOOP, run

STACKS = ("legacy", "mlir")


def everywhere(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    """The results of an LHLO program, the same on evaluator and both stacks."""
    program = to_plan(parse_text(text))
    verify(program.module)
    wanted = evaluate(program.module, list(inputs))
    for stack in STACKS:
        for got, want in zip(run(program, stack, [x.copy() for x in inputs]), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    return wanted


def same_as_hlo(text: str, inputs: list[np.ndarray]) -> None:
    made = plan(parse_module(text))
    lhlo = from_plan(made)
    for again in (parse_text(lhlo.to_text()), parse_bytecode(lhlo.to_bytecode())):
        program = to_plan(again)
        assert to_text(thunks_of(program)) == to_text(thunks_of(made))
        assert [k.name for k in program.kernels] == [k.name for k in made.kernels]
        assert from_plan(program).to_text() == lhlo.to_text()
    for got, want in zip(evaluate(program.module, inputs), evaluate(made.module, inputs), strict=True):
        assert got.tobytes() == want.tobytes()
    for stack in STACKS:
        for got, want in zip(run(program, stack, inputs), run(made, stack, inputs), strict=True):
            assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("branch", [0, 1, 7])
def test_a_program_is_what_its_hlo_was(branch):
    x = np.array([0.5, -1.0, 2.0, np.inf], np.float32)
    same_as_hlo(LOOP, [np.int32(branch), x, np.array([1 + 2j, -0.5j], np.complex64)])


def test_programs_of_the_corpus_are_what_their_hlo_was():
    for path in sample("jax_programs/*/module.hlo", 2, seed=11):
        made = plan(parse_module(path.read_text(), str(path)))
        program = to_plan(parse_text(from_plan(made).to_text()))
        assert to_text(thunks_of(program)) == to_text(thunks_of(made))
        verify(program.module)


ROW = """func.func @row(%x: memref<4x8xf32>, %s: memref<4xf32>, %y: memref<4x8xf32>) attributes {lhlo.program} {
  %z = memref.get_global @constant_3 : memref<f32>
  "lhlo.reduce"() ({
  ^bb0(%a: memref<f32>, %b: memref<f32>, %r: memref<f32>):
    "lhlo.add"(%a, %b, %r) : (memref<f32>, memref<f32>, memref<f32>) -> ()
    vector.yield
  }, {
    vector.yield %x, %z, %s : memref<4x8xf32>, memref<f32>, memref<4xf32>
  }) {dimensions = array<i64: 1>} : () -> ()
  "lhlo.broadcast"(%s, %y) {dimensions = array<i64: 0>} : (memref<4xf32>, memref<4x8xf32>) -> ()
  "lhlo.multiply"(%y, %x, %y) : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>) -> ()
  return
}
memref.global "private" constant @constant_3 : memref<f32> = dense<0.0>
"""


def test_a_written_program_needs_no_attributes():
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    sums, product = everywhere(ROW, x)
    np.testing.assert_array_equal(sums, x.sum(1))
    np.testing.assert_array_equal(product, x * x.sum(1, keepdims=True))


def test_a_kernel_alone_is_a_program_of_one_step():
    text = """func.func @exp_add(%x: memref<8xf32>, %y: memref<8xf32>) attributes {lhlo.kernel} {
  "lhlo.fusion"() ({
  ^bb0(%a: memref<8xf32>, %b: memref<8xf32>, %o: memref<8xf32>):
    %t = memref.alloca() : memref<8xf32>
    "lhlo.negate"(%a, %t) : (memref<8xf32>, memref<8xf32>) -> ()
    "lhlo.add"(%t, %b, %o) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
    vector.yield
  }, {
    vector.yield %x, %y, %y : memref<8xf32>, memref<8xf32>, memref<8xf32>
  }) : () -> ()
  return
}"""
    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    (got,) = everywhere(text, x, y)
    np.testing.assert_array_equal(got, y - x)


def test_bytes_keep_their_meaning_through_views():
    """Types change, pieces overlap, and a part of an array is written."""
    text = """func.func @views(
    %x: memref<4xf32>, %k: memref<2xi32>, %c: memref<2xcomplex<f32>>, %o: memref<4xi32>,
    %p: memref<2x2xf32, strided<[1, 2]>>, %q: memref<2xcomplex<f32>>, %b: memref<12xi8>,
    %t: memref<64xi8> {lhlo.kind = "temporary"}) attributes {lhlo.program} {
  %whole = "lhlo.view"(%t) {offset = 16 : i64} : (memref<64xi8>) -> memref<4xf32>
  %words = "lhlo.view"(%t) {offset = 16 : i64} : (memref<64xi8>) -> memref<4xi32>
  %half = "lhlo.view"(%t) {offset = 24 : i64} : (memref<64xi8>) -> memref<2xi32>
  %turned = "lhlo.view"(%t) {offset = 16 : i64} : (memref<64xi8>) -> memref<2x2xf32, strided<[1, 2]>>
  %pairs = "lhlo.view"(%t) {offset = 16 : i64} : (memref<64xi8>) -> memref<2xcomplex<f32>>
  %bytes = "lhlo.view"(%t) {offset = 18 : i64} : (memref<64xi8>) -> memref<12xi8>
  "lhlo.negate"(%x, %whole) : (memref<4xf32>, memref<4xf32>) -> ()
  "lhlo.not"(%k, %half) : (memref<2xi32>, memref<2xi32>) -> ()
  "lhlo.copy"(%words, %o) : (memref<4xi32>, memref<4xi32>) -> ()
  "lhlo.copy"(%turned, %p) : (memref<2x2xf32, strided<[1, 2]>>, memref<2x2xf32, strided<[1, 2]>>) -> ()
  "lhlo.add"(%pairs, %c, %q) : (memref<2xcomplex<f32>>, memref<2xcomplex<f32>>, memref<2xcomplex<f32>>) -> ()
  "lhlo.not"(%bytes, %b) : (memref<12xi8>, memref<12xi8>) -> ()
  return
}"""
    x, k = np.array([1.5, -2.0, 3.0, 4.0], np.float32), np.array([5, -(2**30)], np.int32)
    c = np.array([1 + 1j, 2 - 1j], np.complex64)
    memory = np.zeros(64, np.uint8)
    memory[16:32] = (-x).view(np.uint8)
    memory[24:32] = (~k).view(np.uint8)
    words, turned, sums, inverted = everywhere(text, x, k, c)
    np.testing.assert_array_equal(words, memory[16:32].view(np.int32))
    np.testing.assert_array_equal(turned, memory[16:32].view(np.float32).reshape(2, 2).T)
    np.testing.assert_array_equal(sums, memory[16:32].view(np.complex64) + c)
    np.testing.assert_array_equal(inverted.view(np.uint8), ~memory[18:30])


def test_what_a_condition_writes_is_seen_by_the_body_and_after_the_loop():
    text = """func.func @loop(%n: memref<i32>,
    %i: memref<i32> {lhlo.kind = "result", lhlo.number = 0 : i64},
    %twice: memref<i32> {lhlo.kind = "result", lhlo.number = 1 : i64},
    %sum: memref<i32> {lhlo.kind = "result", lhlo.number = 2 : i64},
    %p: memref<i1> {lhlo.kind = "temporary"}) attributes {lhlo.program} {
  %zero = memref.get_global @constant_5 : memref<i32>
  %one = memref.get_global @constant_6 : memref<i32>
  "lhlo.copy"(%zero, %i) : (memref<i32>, memref<i32>) -> ()
  "lhlo.copy"(%zero, %sum) : (memref<i32>, memref<i32>) -> ()
  "lhlo.while"(%p) ({
    "lhlo.add"(%i, %i, %twice) : (memref<i32>, memref<i32>, memref<i32>) -> ()
    "lhlo.compare"(%twice, %n, %p) {direction = "LT"} : (memref<i32>, memref<i32>, memref<i1>) -> ()
    vector.yield
  }, {
    "lhlo.add"(%sum, %twice, %sum) : (memref<i32>, memref<i32>, memref<i32>) -> ()
    "lhlo.add"(%i, %one, %i) : (memref<i32>, memref<i32>, memref<i32>) -> ()
    vector.yield
  }) : (memref<i1>) -> ()
  return
}
memref.global "private" constant @constant_5 : memref<i32> = dense<0>
memref.global "private" constant @constant_6 : memref<i32> = dense<1>
"""
    assert [int(v) for v in everywhere(text, np.int32(7))] == [4, 8, 12]


REVERSE = '"lhlo.reverse"(%y, %y) {dimensions = array<i64: 1>} : (memref<4x8xf32>, memref<4x8xf32>) -> ()'
REFUSED = {
    "ENTRY1": ("attributes {lhlo.program}", ""),
    "ENTRY2": ("%s: memref<4xf32>,", "%s: memref<4xf32> {lhlo.allocation = 0 : i64},"),
    "ENTRY3": ("%s: memref<4xf32>,", '%s: memref<4xf32> {lhlo.kind = "arena"},'),
    "ENTRY4": ("%x: memref<4x8xf32>,", '%x: memref<4x8xf32> {lhlo.kind = "parameter", lhlo.number = 3 : i64},'),
    "ENTRY5": ("{lhlo.program}", '{lhlo.program, lhlo.parameters = ["f32[8,4]"]}'),
    "ENTRY6": ("{lhlo.program}", '{lhlo.program, lhlo.result = "(f32[4], f32[4,8], s32[])"}'),
    "ENTRY7": ("%x: memref<4x8xf32>,", '%x: memref<4x8xf32> {lhlo.kind = "parameter", lhlo.result = 0 : i64},'),
    "PLAN2": ("%s: memref<4xf32>,", '%s: memref<4xf32> {lhlo.kind = "parameter", lhlo.number = 1 : i64},'),
    "PLAN5": ("  return", f"  {REVERSE}\n  return"),
}


@pytest.mark.parametrize("label", REFUSED)
def test_what_cannot_run_is_refused_with_its_place(label):
    old, new = REFUSED[label]
    assert old in ROW
    with pytest.raises(VerificationError, match=rf"\[{label}\]") as found:
        to_plan(parse_text(ROW.replace(old, new)))
    assert found.value.location is not None


VIEWS = """func.func @views(%t: memref<64xi8> {{lhlo.kind = "temporary"}}) attributes {{lhlo.program}} {{
  %a = "lhlo.view"(%t) {{offset = {a} : i64}} : (memref<64xi8>) -> memref<4xf32>
  %b = "lhlo.view"(%t) {{offset = {b} : i64}} : (memref<64xi8>) -> memref<4xf32>
  {step}
  return
}}"""


@pytest.mark.parametrize(
    "label, a, b, step",
    [
        ("PLAN3", 0, 8, '"lhlo.negate"(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()'),
        ("PLAN4", 0, 8, "memref.copy %a, %b : memref<4xf32> to memref<4xf32>"),
        ("ATTR1", 0, 16, "memref.copy %a, %b {name = dense<1> : tensor<2xi32>} : memref<4xf32> to memref<4xf32>"),
        ("VIEW2", 0, 56, '"lhlo.negate"(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()'),
    ],
)
def test_overlapping_bytes_and_odd_names_are_refused(label, a, b, step):
    with pytest.raises(VerificationError, match=rf"\[{label}\]"):
        to_plan(parse_text(VIEWS.format(a=a, b=b, step=step)))


def test_one_name_stands_for_one_kernel():
    text = ROW.replace("(%s, %y) {dimensions", '(%s, %y) {kernel = "k", dimensions').replace(
        '"lhlo.multiply"(%y, %x, %y)', '"lhlo.multiply"(%y, %x, %y) {kernel = "k"}'
    )
    with pytest.raises(VerificationError, match="two different kernels have the name 'k'"):
        to_plan(parse_text(text))


SORTED_INSIDE = """func.func @main(%a: memref<4xf32>, %o: memref<4xf32>) attributes {lhlo.program} {
  "lhlo.fusion"() ({
  ^bb0(%x: memref<4xf32>, %r: memref<4xf32>):
    %t = memref.alloca() : memref<4xf32>
    "lhlo.sort"() ({
    ^bb0(%l: memref<f32>, %m: memref<f32>, %q: memref<i1>):
      "lhlo.compare"(%l, %m, %q) {direction = "LT"} : (memref<f32>, memref<f32>, memref<i1>) -> ()
      vector.yield
    }, {
      vector.yield %x, %t : memref<4xf32>, memref<4xf32>
    }) {dimensions = array<i64: 0>} : () -> ()
    "lhlo.negate"(%t, %r) : (memref<4xf32>, memref<4xf32>) -> ()
    vector.yield
  }, {
    vector.yield %a, %o : memref<4xf32>, memref<4xf32>
  }) : () -> ()
  return
}"""

CALLED_OUTSIDE = """func.func @main(%a: memref<4xf32>, %o: memref<4xf32>) attributes {lhlo.program} {
  "lhlo.custom_call"() ({
    vector.yield %a, %o : memref<4xf32>, memref<4xf32>
  }) {custom_call_target = "nothing"} : () -> ()
  return
}"""


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("text", "line"), [(SORTED_INSIDE, 5), (CALLED_OUTSIDE, 2)], ids=["sort", "call"])
def test_what_a_stack_cannot_emit_is_refused_at_its_line_in_the_users_file(text, line, stack):
    loaded = load_any(text.encode(), "mine.lhlo.mlir")
    program = Program("mine", loaded.text, loaded.module, plan=loaded.plan)
    with pytest.raises(UnsupportedError) as caught:
        compile_program(program, Flags.parse(stack), CompileOptions(cache=None))
    place = caught.value.location
    assert place is not None and (place.file, place.line) == ("mine.lhlo.mlir", line)
