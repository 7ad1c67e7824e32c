"""Results do not depend on the number of threads: split kernels give the same bits on one thread and on several.

A chunk has work for tens of microseconds; here it may have one step, so that small arrays are split too.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from ...backends.base import CompileOptions
from ...backends.host.loader import load_executable
from ...codegen.options import EmitOptions
from ...codegen.threads import set_threads
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...planning import partition
from ...thunks.wire.container import unpack
from ..generators.random_programs import Programs
from ..support.choices import CHOICES
from ..support.corpus import sample
from ..support.inputs import make_inputs
from ..support.passes import agree
from ..support.ranges import check_ranges_alone, check_threads, compiled, number_of_threads, split_kernels

STACKS = ("legacy", "mlir")


@pytest.fixture(autouse=True)
def restored_threads():
    with number_of_threads():
        yield


FILES = [*sample("xla_modules/*.hlo", 0), *sample("jax_programs/*/*.hlo", 0), *sample("op_cases/*.hlo", 0)]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_one_thread_and_several_give_the_same_bits(path: Path, stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    check_ranges_alone(check_threads(parse_module(path.read_text(), str(path)), stack))


REGIONS = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT }
"""


def one(shape: str, line: str, *more: str) -> str:
    lines = "\n  ".join([f"x = {shape} parameter(0)", "z = f32[] constant(0)", *more, f"ROOT r = {line}"])
    return f"HloModule m\n{REGIONS}ENTRY e {{\n  {lines}\n}}\n"


def sorted_along(dims: str, dimension: int) -> str:
    return one(f"f32[{dims}]", f"f32[{dims}] sort(x), dimensions={{{dimension}}}, to_apply=less")


SOFTMAX = one(
    "f32[40,33]",
    "f32[40,33] divide(e, c)",
    "e = f32[40,33] exponential(x)",
    "s = f32[40] reduce(e, z), dimensions={1}, to_apply=add",
    "c = f32[40,33] broadcast(s), dimensions={0}",
)

LOOP = """HloModule m
next { s = (s32[], f32[300000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[300000] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[300000] sine(x)
  ROOT t = (s32[], f32[300000]) tuple(j, y) }
more { s = (s32[], f32[300000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[300000] parameter(0)
  i = s32[] constant(0)
  s = (s32[], f32[300000]) tuple(i, x)
  w = (s32[], f32[300000]) while(s), condition=more, body=next
  ROOT r = f32[300000] get-tuple-element(w), index=1 }
"""

ROWS = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=add"
)
UPDATES = (
    "u = f32[70,272] parameter(1)",
    "n = s32[70] iota(), iota_dimension=0",
    "m = s32[] constant(29)",
    "k = s32[70] broadcast(m), dimensions={}",
    "t = s32[70] multiply(n, k)",
    "f = s32[] constant(43)",
    "g = s32[70] broadcast(f), dimensions={}",
    "i = s32[70] remainder(t, g)",  # each row several times, and some outside
)
NARROW = ("i = s32[70] iota(), iota_dimension=0", "u = f32[70,60] parameter(1)")

FAMILIES: dict[str, tuple[str, str]] = {
    "flat": (one("f32[1000]", "f32[1000] tanh(x)"), "legacy mlir"),
    "nest": (one("f32[40,33]", "f32[33,40,5] broadcast(x), dimensions={1,0}"), "legacy mlir"),
    "nest of few rows": (one(
        "f32[5,1024]", "f32[5,256] tanh(y)", "y = f32[5,256] slice(x), slice={[0:5], [256:512]}"
    ), "legacy mlir"),
    "nest of few odd rows": (one(
        "f32[5,1024]", "f32[5,259] tanh(y)", "y = f32[5,259] slice(x), slice={[0:5], [256:515]}"
    ), "legacy mlir"),
    "transpose": (one("f32[129,160]", "f32[160,129] transpose(x), dimensions={1,0}"), "legacy mlir"),
    "batched transpose": (one("f32[4,64,72]", "f32[4,72,64] transpose(x), dimensions={0,2,1}"), "legacy mlir"),
    "transpose of few columns": (one("f32[67,5]", "f32[5,67] transpose(x), dimensions={1,0}"), "legacy mlir"),
    "odd transpose": (one("f32[7,13,31,19]", "f32[7,13,19,31] transpose(x), dimensions={0,1,3,2}"), "legacy mlir"),
    "transpose in blocks along steps": (one("f32[20,9,31]", "f32[31,9,20] transpose(x), dimensions={2,1,0}"), ""),
    "rows": (SOFTMAX, "legacy mlir"),
    "row reduction": (one("f32[40,300]", "f32[40] reduce(x, z), dimensions={1}, to_apply=add"), "legacy mlir"),
    "column reduction": (one("f32[70,1100]", "f32[1100] reduce(x, z), dimensions={0}, to_apply=add"), "legacy mlir"),
    "middle reduction": (one("f32[9,70,64]", "f32[9,64] reduce(x, z), dimensions={1}, to_apply=add"), "legacy mlir"),
    "dot of many columns": (one(
        "f32[40,64]", "f32[40,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = f32[64,300] parameter(1)",
    ), "legacy mlir"),
    "dot of many batches": (one(
        "f32[9,32,64]",
        "f32[9,32,48] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={1}",
        "y = f32[9,64,48] parameter(1)",
    ), "legacy mlir"),
    "dot with elementwise ops": (one(
        "f32[40,64]", "f32[40,300] tanh(d)", "y = f32[64,300] parameter(1)",
        "d = f32[40,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ), "legacy mlir"),
    "dot of complex numbers": (one(
        "c64[40,64]", "c64[40,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = c64[64,300] parameter(1)",
    ), "legacy mlir"),
    "dot of complex numbers by rows": (one(
        "c64[520,64]", "c64[520,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = c64[64,40] parameter(1)",
    ), "legacy mlir"),
    "dot of bf16 by rows": (one(
        "bf16[520,600]", "bf16[520,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = bf16[600,40] parameter(1)",
    ), "legacy mlir"),
    "dot of bf16 by columns": (one(
        "bf16[20,1030]", "f32[20,1040] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "y = bf16[1040,1030] parameter(1)",
    ), "legacy mlir"),
    "dot of complex numbers with elementwise ops": (one(
        "c128[301,64]", "f64[301,40] abs(d)", "y = c128[64,40] parameter(1)",
        "d = c128[301,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ), "legacy mlir"),
    "dot of few complex rows along memory": (one(
        "c64[3,640]", "c64[3,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "y = c64[300,640] parameter(1)",
    ), "legacy mlir"),
    "dot of batches of complex numbers": (one(
        "c64[9,32,64]",
        "c64[9,32,48] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={2}",
        "y = c64[9,48,64] parameter(1)",
    ), "legacy mlir"),
    "deep dot": (one(
        "f32[8,3000]", "f32[8,260] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = f32[3000,260] parameter(1)",
    ), "legacy mlir"),
    "transposed dot": (one(
        "f32[64,300]", "f32[300,40]{0,1} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "y = f32[64,40] parameter(1)",
    ), "legacy mlir"),
    "narrow dot of many columns": (one(
        "bf16[40,64]", "bf16[40,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = bf16[64,300] parameter(1)",
    ), "legacy mlir"),
    "dot of few columns": (one(
        "f32[300,64]", "f32[300,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = f32[64,40] parameter(1)",
    ), "legacy mlir"),
    "dot of few columns with elementwise ops": (one(
        "f32[301,64]", "f32[301,40] tanh(d)", "y = f32[64,40] parameter(1)",
        "d = f32[301,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ), "legacy mlir"),
    "deep dot of few columns": (one(
        "f32[70,3000]", "f32[70,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = f32[3000,40] parameter(1)",
    ), "legacy mlir"),
    "narrow deep dot of few columns": (one(
        "bf16[70,3000]", "bf16[70,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = bf16[3000,40] parameter(1)",
    ), "legacy mlir"),
    "dot of rows of two dimensions": (one(
        "f32[9,33,64]", "f32[9,33,40] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        "y = f32[64,40] parameter(1)",
    ), "legacy mlir"),
    "dot of batches behind a dimension of one": (one(
        "f32[1,9,32,64]",
        "f32[1,9,32,48] dot(x, y), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, "
        "rhs_contracting_dims={2}",
        "y = f32[1,9,64,48] parameter(1)",
    ), "legacy mlir"),
    "dot of batches of two dimensions": (one(
        "f32[2,32,5,16]",
        "f32[2,5,32,32] dot(x, y), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, "
        "rhs_contracting_dims={3}",
        "y = f32[2,32,5,16] parameter(1)",
    ), "legacy mlir"),
    "dot of few batches": (one(
        "f32[5,24,64]",
        "f32[5,24,48] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={1}",
        "y = f32[5,64,48] parameter(1)",
    ), "legacy mlir"),
    "dot of few batches with many rows": (one(
        "f32[3,5,40,64]",
        "f32[3,5,40,24] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, "
        "rhs_contracting_dims={1}",
        "y = f32[3,64,24] parameter(1)",
    ), "legacy mlir"),
    "dot whose columns lie around its rows": (one(
        "f32[24,9,128]", "f32[9,128,40]{1,2,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "y = f32[24,40] parameter(1)",
    ), "legacy mlir"),
    "dot of few rows and columns": (one(
        "f32[8,500]", "f32[8,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "y = f32[500,128] parameter(1)",
    ), "legacy mlir"),
    "product of vectors": (one(
        "f32[600000]", "f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "y = f32[600000] parameter(1)",
    ), "legacy mlir"),
    "rows with a number of each": (one(
        "f32[40,33]", "(f32[40,33], f32[40]) tuple(e, s)",
        "e = f32[40,33] exponential(x)",
        "s = f32[40] reduce(e, z), dimensions={1}, to_apply=add",
    ), "legacy mlir"),
    "convolution of small images": (one(
        "f32[6,4,5,5,8]",
        "f32[6,4,5,5,16] convolution(x, y), window={size=3x3x3 pad=1_1x1_1x1_1}, dim_labels=b012f_012io->b012f",
        "y = f32[3,3,3,8,16] parameter(1)",
    ), "legacy mlir"),
    "convolution to a small kernel": (one(
        "f32[5,12,12,8]",
        "f32[3,3,8,16] convolution(x, y), window={size=10x10}, dim_labels=f01b_i01o->01bf",
        "y = f32[5,10,10,16] parameter(1)",
    ), "legacy mlir"),
    "odd transpose of five dimensions": (one(
        "f32[7,11,5,17,19]", "f32[19,11,7,17,5] transpose(x), dimensions={4,1,0,3,2}"
    ), "legacy mlir"),
    "convolution": (one(
        "f32[2,18,18,16]",
        "f32[2,18,18,24] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        "y = f32[3,3,16,24] parameter(1)",
    ), "legacy mlir"),
    "convolution of one image": (one(
        "f32[1,20,20,8]",
        "f32[1,20,20,12] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        "y = f32[3,3,8,12] parameter(1)",
    ), "legacy mlir"),
    "convolution of a small image": (one(
        "f32[1,7,7,32]",
        "f32[1,7,7,64] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        "y = f32[3,3,32,64] parameter(1)",
    ), "legacy mlir"),
    "convolution to few features whose pixels are neighbours": (one(
        "f32[2,8,18,19]",
        "f32[2,3,18,19] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01",
        "y = f32[3,8,3,3] parameter(1)",
    ), "legacy mlir"),
    "convolution to few features": (one(
        "f32[1,18,19,24]",
        "f32[1,18,19,3] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f",
        "y = f32[3,3,3,24] parameter(1)",
    ), "legacy mlir"),
    "convolution of weights by feature": (one(
        "f32[1,3,3,160]",
        "f32[1,1,1,64] convolution(x, y), window={size=3x3}, dim_labels=b01f_o01i->b01f",
        "y = f32[64,3,3,160] parameter(1)",
    ), "legacy mlir"),
    "transposed convolution": (one(
        "f32[1,9,12,16]",
        "f32[1,18,24,12] convolution(x, y), window={size=4x4 pad=2_2x2_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
        "y = f32[4,4,16,12] parameter(1)",
    ), "legacy mlir"),
    "depthwise convolution": (one(
        "f32[2,18,18,16]",
        "f32[2,18,18,16] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, "
        "feature_group_count=16",
        "y = f32[3,3,1,16] parameter(1)",
    ), "legacy mlir"),
    "sort": (sorted_along("40,300", 1), "legacy mlir"),
    "sort with scratch memory": (sorted_along("40,3000", 1), "legacy mlir"),
    "sorts of short rows of few": (sorted_along("3000,3,7", 2), "legacy mlir"),
    "sort of short rows": (sorted_along("45,12", 1), "legacy mlir"),
    "sort of short rows beside steps": (sorted_along("66,19,12", 2), "legacy mlir"),
    "sort of short rows in several dimensions": (sorted_along("9,21,12", 2), "legacy mlir"),
    "sort of short rows, few in each dimension": (sorted_along("11,5,3,12", 3), "legacy mlir"),
    "sort of columns": (sorted_along("40,3000", 0), ""),
    "running sum": (one(
        "f32[40,300]", "f32[40,300] reduce-window(x, z), window={size=1x300 pad=0_0x299_0}, to_apply=add"
    ), "legacy mlir"),
    "running sum of columns": (one(
        "f32[7,40,300]", "f32[7,40,300] reduce-window(x, z), window={size=1x40x1 pad=0_0x39_0x0_0}, to_apply=add"
    ), "legacy mlir"),
    "running sum of all": (
        one("f32[300]", "f32[300] reduce-window(x, z), window={size=300 pad=299_0}, to_apply=add"), ""
    ),
    "pool": (one(
        "f32[2,20,20,16]",
        "f32[2,10,10,16] reduce-window(x, z), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_1x0_0}, to_apply=add",
    ), "legacy mlir"),
    "concatenate": (one(
        "f32[80,33]", "f32[80,73] concatenate(x, y), dimensions={1}", "y = f32[80,40] parameter(1)"
    ), "legacy mlir"),
    "concatenate of rows": (one(
        "f32[80,33]", "f32[120,33] concatenate(x, y), dimensions={0}", "y = f32[40,33] parameter(1)"
    ), ""),
    "pad": (one("f32[80,33]", "f32[90,40] pad(x, z), padding=5_5x3_4"), "mlir"),
    "update": (one(
        "f32[80,33]", "f32[80,33] dynamic-update-slice(x, u, i, i)",
        "u = f32[2,33] parameter(1)", "i = s32[] constant(0)",
    ), ""),
    "sum of all": (one("f32[80,330]", "f32[] reduce(x, z), dimensions={0,1}, to_apply=add"), ""),
    "sum of many": (one("f32[1024,520]", "f32[] reduce(x, z), dimensions={0,1}, to_apply=add"), "legacy mlir"),
    "sums of few columns": (one("f32[90000,6]", "f32[6] reduce(x, z), dimensions={0}, to_apply=add"), "legacy mlir"),
    "scatter of rows": (one("f32[40,272]", f"f32[40,272] scatter(x, i, u), {ROWS}", *UPDATES), "legacy mlir"),
    "scatter of rows in place": (one(
        "f32[40,272]", f"f32[40,272] scatter(y, i, u), {ROWS}", "y = f32[40,272] tanh(x)", *UPDATES
    ), "legacy mlir"),
    "scatter of fused rows in another layout": (one(
        "f32[40,272]{0,1}", f"f32[40,272]{{1,0}} scatter(y, i, v), {ROWS}", *UPDATES,
        "y = f32[40,272]{1,0} copy(x)", "v = f32[70,272] tanh(u)",
    ), "legacy mlir"),
    "scatter of batches": (one(
        "f32[6,9,260]",
        "f32[6,9,260] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1}, input_batching_dims={0}, "
        "scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=add",
        "i = s32[6,20] iota(), iota_dimension=1", "u = f32[6,20,260] parameter(1)",
    ), "legacy mlir"),
    "scatter of narrow rows": (one("f32[40,60]", f"f32[40,60] scatter(x, i, u), {ROWS}", *NARROW), ""),
    "gather": (one(
        "f32[50,24]",
        "f32[30,24] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,24}",
        "i = s32[30] iota(), iota_dimension=0",
    ), "legacy mlir"),
}  # fmt: skip
"""Family of loops → (program, the stacks whose loops take ranges)."""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("stack", STACKS)
def test_which_loops_take_ranges(family: str, stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    text, stacks = FAMILIES[family]
    executable = check_threads(parse_module(text), stack, (2, 5))
    check_ranges_alone(executable)
    assert bool(split_kernels(executable)) == (stack in stacks.split())


@given(CHOICES)
@settings(max_examples=settings().max_examples // 3)
def test_random_programs(choices: Random):
    kept, partition.CHUNK = partition.CHUNK, 1
    try:
        programs = Programs(choices, size=8)
        for stack in STACKS:
            executable = compiled(programs.module, stack)
            set_threads(1)
            alone = executable.execute(programs.inputs)
            set_threads(3)
            assert [x.tobytes() for x in alone] == [x.tobytes() for x in executable.execute(programs.inputs)]
            agree(programs.module, evaluate(programs.module, programs.inputs), alone)
    finally:
        partition.CHUNK = kept


@pytest.mark.parametrize("stack", STACKS)
def test_a_split_kernel_runs_between_guard_bytes_for_calls_and_in_loops(stack: str):
    module = parse_module(LOOP)
    (x,) = make_inputs(module)
    options = CompileOptions(emit=replace(EmitOptions.host(), ranges=True))
    executable = compile_module(module, Flags.parse(stack), options)
    assert split_kernels(executable)
    set_threads(2)
    expected = executable.execute([x])[0]
    guarded = compile_module(module, Flags.parse(stack), replace(options, red_zones=True))
    assert guarded.execute([x])[0].tobytes() == expected.tobytes()
    assert all(np.asarray(executable(x)).tobytes() == expected.tobytes() for _ in range(3))


@pytest.mark.parametrize("stack", STACKS)
def test_kernels_too_small_have_constant_bounds_and_code_does_not_depend_on_threads(stack: str):
    large = parse_module(one("f32[1000000]", "f32[1000000] negate(x)"))
    for count in (1, 2):
        set_threads(count)
        assert split_kernels(compile_module(large, Flags.parse(stack)))
    without = CompileOptions(emit=EmitOptions(EmitOptions.host().target))
    assert not split_kernels(compile_module(large, Flags.parse(stack), without))
    assert not split_kernels(compiled(parse_module(one("f32[1000]", "f32[1000] negate(x)")), stack))


@pytest.mark.parametrize("stack", STACKS)
def test_subnormals_flush_on_every_thread(stack: str):
    module = parse_module(one("f32[4000000]", "f32[4000000] multiply(x, x)"))
    set_threads(3)
    (result,) = compiled(module, stack).execute([np.full(4_000_000, 1e-20, np.float32)])
    assert not result.any()


@pytest.mark.parametrize("stack", STACKS)
def test_a_file_keeps_what_several_threads_may_share(stack: str, tmp_path: Path):
    module = parse_module(one("f32[1000000]", "f32[1000000] tanh(x)"))
    inputs = make_inputs(module)
    made = compiled(module, stack)
    made.save(tmp_path / "tanh.tbx")
    loaded = load_executable(tmp_path / "tanh.tbx")
    assert split_kernels(loaded) == split_kernels(made) and loaded.thunks == made.thunks
    set_threads(2)
    assert loaded.execute(inputs)[0].tobytes() == made.execute(inputs)[0].tobytes()
    assert unpack((tmp_path / "tanh.tbx").read_bytes()).reader == 2  # older readers do not know ranges
    compile_module(module, Flags.parse(stack), CompileOptions(emit=EmitOptions(made.target))).save(tmp_path / "one.tbx")
    assert unpack((tmp_path / "one.tbx").read_bytes()).reader == 1


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("stack", STACKS)
def test_ranges_give_the_bits_of_constant_bounds(family: str, stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    module = parse_module(FAMILIES[family][0])
    inputs = make_inputs(module)
    without = compile_module(module, Flags.parse(stack), CompileOptions(emit=EmitOptions(EmitOptions.host().target)))
    assert not split_kernels(without)
    ranged, whole = compiled(module, stack).execute(inputs), without.execute(inputs)
    assert [x.tobytes() for x in ranged] == [x.tobytes() for x in whole]
