"""XLA's own kernels from jaxlib: both generations and both sources of code against the evaluator, and mixed."""

from dataclasses import replace

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.xla import installed
from ...backends.xla.dump import version
from ...differential.bisect import bisect
from ...differential.child import Child
from ...differential.execute import execute
from ...differential.finding import Finding
from ...differential.setting import Setting
from ...differential.shadow import tolerances
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError, UnsupportedError
from ...migration.compile import compile_program
from ...migration.flags import XLA_STACKS, FlagError, Flags
from ...migration.stacks import prepare
from ...migration.xla_programs import made_by_jaxlib

both_generations = pytest.mark.skipif(
    not installed() or version() != "0.10.2", reason="needs jaxlib 0.10.2 (./testbed setup --xla on Python 3.11)"
)

# A loop that updates its state in place, a reduction whose sum is used twice, and a private function of XLA's.
LOOP = """HloModule loop, entry_computation_layout={(f32[8,16]{1,0}, s32[])->(f32[8,16]{1,0}, f32[8]{0})}

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }

condition {
  s = (s32[], s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT less = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[8,16] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  row = f32[1,16] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,16}
  t = f32[1,16] tanh(row)
  y = f32[8,16] dynamic-update-slice(x, t, i, zero)
  j = s32[] add(i, one)
  ROOT next = (s32[], s32[], f32[8,16]) tuple(j, n, y)
}

ENTRY main {
  x = f32[8,16] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], s32[], f32[8,16]) tuple(zero, n, x)
  loop = (s32[], s32[], f32[8,16]) while(init), condition=condition, body=body
  y = f32[8,16] get-tuple-element(loop), index=2
  f0 = f32[] constant(0)
  sums = f32[8] reduce(y, f0), dimensions={1}, to_apply=add
  wide = f32[8,16] broadcast(sums), dimensions={0}
  z = f32[8,16] divide(y, wide)
  ROOT r = (f32[8,16], f32[8]) tuple(z, sums)
}
"""


@pytest.fixture(scope="module")
def program():
    return Program("loop", LOOP, parse_module(LOOP, "loop.hlo"))


@pytest.fixture(scope="module")
def inputs():
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    return [x, np.array(5, np.int32)]


@both_generations
@pytest.mark.parametrize(
    "flags", [*XLA_STACKS, "xla-old,reduce=mlir", "xla-new-ir,reduce=legacy", "mlir,reduce=xla-old"]
)
def test_a_program_on_xlas_kernels_agrees_with_the_evaluator(program, inputs, flags):
    made = prepare("legacy", program, flags)
    expected = prepare("evaluator", program).run(inputs)
    for _ in range(2):
        for result, right in zip(made.run(inputs), expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=2e-5, atol=1e-6)
    stack = Flags.parse(flags).xla
    stacks = {name for _, name in made.kernels}
    assert stack in stacks
    if stack == flags:
        assert stacks == {stack}
    else:
        assert stacks & {"legacy", "mlir"}


@both_generations
@pytest.mark.parametrize("stack", XLA_STACKS)
def test_a_program_that_xla_compiles_in_one_piece(stack):
    """Its files have no part in their names."""
    text = """HloModule row_sums
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b) }
ENTRY main { x = f32[5,17] parameter(0)
  zero = f32[] constant(0)
  ROOT sums = f32[5] reduce(x, zero), dimensions={1}, to_apply=add }"""
    single = Program("row_sums", text, parse_module(text, "row_sums.hlo"))
    made = prepare(stack, single)
    assert [name for _, name in made.kernels] == [stack]
    (result,) = made.run([np.arange(85, dtype=np.float32).reshape(5, 17)])
    np.testing.assert_array_equal(result, [136, 425, 714, 1003, 1292])


@both_generations
@pytest.mark.parametrize("stack", ["xla-old", "xla-new-ir", "xla-new,reduce=mlir", "legacy+xla-old"])
def test_a_case_runs_from_a_folder_that_is_not_kept(program, inputs, stack):
    """As in a campaign, which keeps nothing in the user's cache: the files are there as long as they are read."""
    expected = prepare("evaluator", program).run(inputs)
    for kernels in (None, 2):
        results = execute(program.module, inputs, stack, Setting(cache=False, kernels=kernels))
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=2e-5, atol=1e-6)


@both_generations
@pytest.mark.parametrize("pair", ["mlir+xla-old", "legacy+xla-new"])
def test_xlas_kernels_agree_as_shadows(program, inputs, pair):
    made = compile_program(program, Flags.parse(pair), CompileOptions(tolerances=tolerances))
    made.execute(inputs)
    report = made.shadow_report()
    assert len(report.shadowed) >= 3 and report.pairs == 0


@both_generations
def test_bisection_of_a_healthy_case_on_xlas_stacks_finds_nothing(program, inputs):
    case = Finding(program.text, program.module, tuple(inputs), ("evaluator", "xla-old", "xla-new"))
    with Child() as child:
        found = bisect(case, child, 120.0)
    assert not found.culprit and not found.outcome.is_finding, found.outcome.sentence


PACKED = """HloModule packed
ENTRY e {
  x = s4[6] parameter(0)
  y = s32[6] parameter(1)
  w = s32[6] convert(x)
  z = s32[6] add(w, y)
  n = s4[6] negate(x)
  ROOT t = (s32[6], s4[6]) tuple(z, n)
}
"""


@both_generations
def test_arrays_that_xla_packs_run_on_our_kernels():
    """Elements of 4 bits take a byte each in our arrays."""
    packed = Program("packed", PACKED, parse_module(PACKED, "packed.hlo"))
    x = np.array([1, -2, 3, 7, -8, 0]).astype(packed.module.parameter_shapes[0].dtype.numpy)
    arrays = [x, np.arange(6, dtype=np.int32)]
    made = prepare("xla-new", packed)
    results = made.run(arrays)
    for result, right in zip(results, prepare("evaluator", packed).run(arrays), strict=True):
        np.testing.assert_array_equal(np.asarray(result, np.int32), np.asarray(right, np.int32))
    assert {stack for _, stack in made.kernels} == {"legacy"}


@both_generations
def test_a_type_that_jaxlib_changes_is_refused_by_name():
    """The gate of a row counts such a program as none; it used to end at the arrays. Found by toggles promote."""
    text = "HloModule one ENTRY e { x = s1[4] parameter(0) ROOT r = s1[4] reverse(x), dimensions={0} }"
    with pytest.raises(UnsupportedError, match=r"xla-old has no emitter for s1 in .* jaxlib makes pred of it"):
        prepare("xla-old", Program("one", text, parse_module(text, "one.hlo")))


UPDATE = """HloModule update
ENTRY e {
  a = f32[3] parameter(0)
  b = f32[1] parameter(1)
  i = s32[] parameter(2)
  ROOT d = f32[3] dynamic-update-slice(a, b, i)
}
"""


@both_generations
@pytest.mark.parametrize("stack", ["xla-old", "xla-new"])
def test_an_update_outside_fusions_is_a_kernel_of_both_generations(stack):
    """It changes its first operand in place. Found by testbed fuzz."""
    update = Program("update", UPDATE, parse_module(UPDATE, "update.hlo"))
    made = prepare(stack, update)
    arrays = [np.arange(3, dtype=np.float32), np.array([9], np.float32), np.array(-2, np.int32)]
    assert list(made.run(arrays)[0]) == [9, 1, 2]
    assert stack in {name for _, name in made.kernels}


@both_generations
def test_the_generations_are_told_apart():
    made = {generation: made_by_jaxlib(LOOP, generation) for generation in ("old", "new")}
    brought = {generation: replace(program, asked="") for generation, program in made.items()}
    assert {name: program.generation for name, program in brought.items()} == {"old": "old", "new": "new"}
    with pytest.raises(InputError, match="these are kernels of XLA's old emitters"):
        brought["old"].emitter("xla-new")
    asked = replace(brought["old"], asked="new")
    assert asked.generation == "new" and asked.emitter("xla-new"), "what jaxlib was asked for is no guess"
    with pytest.raises(InputError, match="these are kernels of XLA's old emitters"):
        made["old"].emitter("xla-new")


def test_two_stacks_of_xlas_are_refused():
    with pytest.raises(FlagError, match="names two stacks of XLA's"):
        Flags.parse("xla-old,reduce=xla-new")
    assert Flags.parse("mlir,reduce=xla-new-ir").xla == "xla-new-ir"
    assert Flags.parse("mlir").xla == ""
