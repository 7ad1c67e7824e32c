"""Parallel partition: which kernels may be split, over which dimensions, from which size on; and its safety."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.ir import Instruction
from ...planning import partition as room
from ...planning.partition import Partition, partition_of
from ...planning.plan import KernelStep, Plan
from ...planning.plan_text import plan_to_text
from ...planning.planner import plan
from ..generators.random_programs import Programs
from ..support.choices import CHOICES
from ..support.passes import agree
from ..support.plan_interpreter import Machine, results_of, to_memory

REDUCERS = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT }
"""


def root(*lines: str) -> Instruction:
    text = f"HloModule m\n{REDUCERS}ENTRY e {{\n" + "\n".join(lines) + "\n}\n"
    return parse_module(text).entry.root


BIG = "x = f32[512,1024] parameter(0)"
ZERO = "z = f32[] constant(0)"
WEIGHTS = "w = f32[3,3,512,512] parameter(1)"
CONVOLVED = (
    "ROOT r = f32[{0},{1},{1},512] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f"
)
SCATTERED = [BIG, "i = s32[2048] parameter(1)", "u = f32[2048,1024] parameter(2)"]
BY_ROW = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
BY_PAIR = "update_window_dims={1}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1"
SEVERAL_ROWS = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
BY_BATCH = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}"


@pytest.mark.parametrize(
    ("lines", "dimensions", "extent"),
    [
        ([BIG, "ROOT r = f32[512,1024] negate(x)"], (0,), 512),
        (["x = f32[512,1024]{0,1} parameter(0)", "ROOT r = f32[512,1024]{0,1} negate(x)"], (1,), 1024),
        (["x = f32[8,16,8192] parameter(0)", "ROOT r = f32[8,16,8192] negate(x)"], (0, 1), 128),
        ([BIG, "ROOT r = f32[1024,512] transpose(x), dimensions={1,0}"], (0,), 1024),
        (
            ["x = f32[100000,5] parameter(0)", "ROOT r = f32[5,100000] transpose(x), dimensions={1,0}"],
            (1,), 100_000,
        ),  # by rows, all of the operand is read for each of them
        ([BIG, ZERO, "ROOT r = f32[512] reduce(x, z), dimensions={1}, to_apply=add"], (0,), 512),
        ([BIG, ZERO, "ROOT r = f32[1024] reduce(x, z), dimensions={0}, to_apply=add"], (0,), 1024),
        ([BIG, ZERO, "ROOT r = f32[] reduce(x, z), dimensions={0,1}, to_apply=add"], None, 0),
        ([BIG, "ROOT r = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"], (1,), 512),
        ([BIG, "ROOT r = f32[512,512]{0,1} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"], (0,), 512),
        (
            [BIG, "y = f32[64,1024] parameter(1)",
             "ROOT r = f32[512,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"],
            (0,), 512,
        ),
        (
            ["x = f32[16,128,64] parameter(0)", f"ROOT r = f32[16,128,128] dot(x, x), {BY_BATCH}"],
            (0,), 16,
        ),
        ([BIG, "ROOT r = f32[512,1024] sort(x), dimensions={1}, to_apply=less"], (0,), 512),
        ([BIG, "ROOT r = f32[512,1024] sort(x), dimensions={0}, to_apply=less"], None, 0),
        (["x = f32[16,65536] parameter(0)", "ROOT r = f32[16,65536] negate(x)"], (0,), 16),
        (["x = f32[8,65536] parameter(0)", "ROOT r = f32[8,65536] negate(x)"], (0, 1), 524288),
        (["x = f32[64,64] parameter(0)", "ROOT r = f32[64,64] negate(x)"], None, 0),
        (["x = f32[64,512] parameter(0)", "ROOT r = f32[64,512] exponential(x)"], (0,), 64),
        (["x = f32[1000000] parameter(0)", "ROOT r = f32[1000000] negate(x)"], (0,), 1_000_000),
        (["x = f32[1,1000000] parameter(0)", "ROOT r = f32[1,1000000] negate(x)"], (1,), 1_000_000),
        (
            [BIG, "u = f32[1,1024] parameter(1)", "i = s32[] parameter(2)", "o = s32[] constant(0)",
             "ROOT r = f32[512,1024] dynamic-update-slice(x, u, i, o)"],
            None, 0,
        ),
        (["x = f32[1,7,7,512] parameter(0)", WEIGHTS, CONVOLVED.format(1, 7)], (1,), 7),
        (["x = f32[32,7,7,512] parameter(0)", WEIGHTS, CONVOLVED.format(32, 7)], (0,), 32),
        (["x = f32[1,2,2,512] parameter(0)", WEIGHTS, CONVOLVED.format(1, 2)], (1, 2, 3), 2**11),
        ([*SCATTERED, f"ROOT r = f32[512,1024] scatter(x, i, u), {BY_ROW}, to_apply=add"], (0,), 512),
        (
            ["x = f32[4,128,1024] parameter(0)", "i = s32[2048,2] parameter(1)", "u = f32[2048,1024] parameter(2)",
             f"ROOT r = f32[4,128,1024] scatter(x, i, u), {BY_PAIR}, to_apply=add"],
            (0, 1), 512,
        ),
        (  # narrow windows: each chunk would mostly read indices
            ["x = f32[65536,64] parameter(0)", "i = s32[65536] parameter(1)", "u = f32[65536,64] parameter(2)",
             f"ROOT r = f32[65536,64] scatter(x, i, u), {BY_ROW}, to_apply=add"],
            None, 0,
        ),
        (  # windows of several rows
            ["x = f32[512,1024] parameter(0)", "i = s32[256] parameter(1)", "u = f32[256,8,1024] parameter(2)",
             f"ROOT r = f32[512,1024] scatter(x, i, u), {SEVERAL_ROWS}, to_apply=add"],
            None, 0,
        ),
        (["x = f32[0,1024] parameter(0)", "ROOT r = f32[0,1024] negate(x)"], None, 0),
    ],
)  # fmt: skip
def test_which_dimensions(lines, dimensions, extent):
    found = partition_of(root(*lines))
    assert (found.dimensions, found.extent) == (dimensions, extent) if found else dimensions is None


FUSED = """HloModule m
later {{ a = f32[] parameter(0)
  m = s32[] parameter(1)
  b = f32[] parameter(2)
  n = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GT
  v = f32[] select(c, a, b)
  k = s32[] select(c, m, n)
  ROOT r = (f32[], s32[]) tuple(v, k) }}
body {{ x = f32[512,1024] parameter(0)
  i = s32[512,1024] iota(), iota_dimension=1
  z = f32[] constant(0)
  o = s32[] constant(0)
  ROOT r = (f32[{n}], s32[{n}]) reduce(x, i, z, o), dimensions={{{d}}}, to_apply=later }}
ENTRY e {{ x = f32[512,1024] parameter(0)
  ROOT r = (f32[{n}], s32[{n}]) fusion(x), kind=kInput, calls=body }}
"""


@pytest.mark.parametrize("kept, reduced", [(512, 1), (1024, 0)])
def test_a_fused_reduction_of_several_operands_is_split_as_one_of_one(kept, reduced):
    found = partition_of(parse_module(FUSED.format(n=kept, d=reduced)).entry.root)
    assert found is not None and (found.dimensions, found.extent) == ((0,), kept)


def test_the_more_work_a_step_the_fewer_steps_make_a_chunk():
    cheap = partition_of(root("x = f32[1000000] parameter(0)", "ROOT r = f32[1000000] negate(x)"))
    expensive = partition_of(root("x = f32[1000000] parameter(0)", "ROOT r = f32[1000000] sine(x)"))
    assert cheap.least == 40_000  # chunks of one size are at least half of CHUNK
    assert expensive.least == 8_000


@given(st.integers(2, 10_000), st.integers(1, 100), st.integers(1, 64))
def test_ranges_cover_all_steps_once_and_are_no_smaller_than_asked(extent, least, workers):
    ranges = Partition((0,), extent, least).ranges(workers)
    assert ranges[0][0] == 0 and ranges[-1][1] == extent and len(ranges) <= workers
    assert all(a[1] == b[0] for a, b in pairwise(ranges))
    assert len(ranges) == 1 or all(stop - start >= least for start, stop in ranges)


def test_the_wider_the_windows_of_a_scatter_the_more_chunks():
    for width, chunks in ((256, 4), (512, 8), (4096, 64)):
        lines = [f"x = f32[8192,{width}] parameter(0)", "i = s32[16384] parameter(1)"]
        lines += [f"u = f32[16384,{width}] parameter(2)"]
        found = partition_of(root(*lines, f"ROOT r = f32[8192,{width}] scatter(x, i, u), {BY_ROW}, to_apply=add"))
        assert found is not None and found.extent // found.least == chunks


def test_chunks_of_a_convolution_with_large_weights_have_many_positions():
    """Each of them reads all weights."""

    def least(images: int, size: int, features: int) -> tuple[int, int]:
        s, w = f"f32[{images},{size},{size},{features}]", f"f32[3,3,{features},{features}]"
        body = f"ROOT r = {s} convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f"
        found = partition_of(root(f"x = {s} parameter(0)", f"w = {w} parameter(1)", body))
        assert found is not None
        return found.extent, found.least

    assert least(1, 56, 64) == (56, 1)  # 144 KiB: a row a chunk
    assert least(1, 14, 256) == (14, 7)  # 98 positions
    assert least(1, 28, 256) == (28, 2)  # 56
    assert least(1, 7, 512) == (7, 3)  # threads still share it
    assert least(1, 2, 512)[1] < 512  # chunks of features read their own weights only


def test_chunks_are_of_whole_tiles():
    many = partition_of(root("x = f32[1000,100] parameter(0)", "ROOT r = f32[100,1000] transpose(x), dimensions={1,0}"))
    assert many is None  # eight rows are the least
    tall = partition_of(
        root("x = f32[100,10000] parameter(0)", "ROOT r = f32[10000,100] transpose(x), dimensions={1,0}")
    )
    assert tall.least % 64 == 0
    few = partition_of(
        root("x = f32[4096,512] parameter(0)", ZERO, "ROOT r = f32[512] reduce(x, z), dimensions={0}, to_apply=add")
    )
    assert few is None  # all chunks would walk over all rows
    cube = partition_of(
        root("x = f32[128,128,128] parameter(0)", "ROOT r = f32[128,128,128] transpose(x), dimensions={2,1,0}")
    )
    assert cube.least == 64  # chunks of 8 would read an eighth of each line


@pytest.mark.parametrize(
    ("columns", "least"),
    [((1024,), 512), ((2048,), 512), ((4096,), 1024), ((9000,), 1024), ((4, 1024), 512), ((16, 256), 1)],
)
def test_a_reduction_reads_long_pieces_of_rows(columns: tuple[int, ...], least: int):
    dims = ",".join(map(str, columns))
    found = partition_of(
        root(
            f"x = f32[2048,{dims}] parameter(0)",
            ZERO,
            f"ROOT r = f32[{dims}] reduce(x, z), dimensions={{0}}, to_apply=add",
        )
    )
    assert found is not None and found.least == least


@pytest.mark.parametrize(
    ("rows", "columns", "least"), [(1, 4096, 1024), (3, 16384, 2048), (1, 512, 64), (16, 4096, 1024), (17, 4096, 64)]
)
def test_a_product_with_few_rows_reads_a_matrix_in_long_pieces(rows: int, columns: int, least: int):
    x, w, result = f"f32[{rows},8192]", f"f32[8192,{columns}]", f"f32[{rows},{columns}]"
    body = f"ROOT r = {result} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    found = partition_of(root(f"x = {x} parameter(0)", f"w = {w} parameter(1)", body))
    assert found is not None and found.least == least


@pytest.mark.parametrize(
    ("rows", "columns", "dimensions", "least"),
    [(8, 128, (1,), 8), (12, 32, (1,), 8), (64, 32, (0,), 32), (1000, 32, (0,), 32), (8, 4, None, 0)],
)
def test_each_chunk_of_rows_of_a_product_reads_all_columns(rows: int, columns: int, dimensions, least: int):
    """Chunks of one row copied the columns into panels for each row, on one thread too: five times the time."""
    x, w, result = f"f32[{rows},10007]", f"f32[10007,{columns}]", f"f32[{rows},{columns}]"
    body = f"ROOT r = {result} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    found = partition_of(root(f"x = {x} parameter(0)", f"w = {w} parameter(1)", body))
    assert (found.dimensions, found.least >= least) == (dimensions, True) if found else dimensions is None


def test_it_is_printed():
    text = "HloModule m\nENTRY e { x = f32[512,1024] parameter(0)\n  ROOT r = f32[512,1024] negate(x) }\n"
    assert "split: 512 steps over [0], 64 at least = %r in e  // negate(" in plan_to_text(plan(parse_module(text)))


# --- safety ----------------------------------------------------------------------------------------------------------
class Split(Machine):
    """Runs kernels range by range; each range sees the results of the earlier ranges."""

    def kernel(self, step: KernelStep) -> None:
        partition = step.kernel.partition
        if partition is None:
            super().kernel(step)
            return
        shapes = [s for _, s in step.kernel.instruction.shape.leaves()]
        ranges = list(partition.ranges(3))
        self.random.shuffle(ranges)
        for start, stop in ranges:
            for n, value, shape in zip(step.kernel.results, self.evaluate(step), shapes):
                each = shape.bytes // partition.extent
                there, made = self.bytes(step.arguments[n]), to_memory(value, shape)
                there[start * each : stop * each] = made[start * each : stop * each]
            self.split = getattr(self, "split", 0) + 1


def run_split(made: Plan, inputs: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    machine = Split(made, inputs, 0)
    return results_of(machine), getattr(machine, "split", 0)


@given(CHOICES)
def test_ranges_in_any_order_give_the_same_results(choices: Random):
    kept = room.CHUNK, room.PRODUCT_ROWS
    room.CHUNK = room.PRODUCT_ROWS = 1
    try:
        programs = Programs(choices, size=8)
        made = plan(programs.module)
    finally:
        room.CHUNK, room.PRODUCT_ROWS = kept
    actual, _ = run_split(made, programs.inputs)
    agree(programs.module, evaluate(programs.module, programs.inputs), actual)


def test_a_kernel_in_place_is_split(monkeypatch):
    monkeypatch.setattr(room, "CHUNK", 1)
    monkeypatch.setattr(room, "PRODUCT_ROWS", 1)
    text = f"""HloModule m
{REDUCERS}ENTRY e {{ x = f32[6,5] parameter(0)
  d = f32[6,6] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  k = f32[6,6] opt-barrier(d)
  s = f32[6,6] sine(k)
  l = f32[6,6] opt-barrier(s)
  z = f32[] constant(0)
  q = f32[6] reduce(l, z), dimensions={{1}}, to_apply=add
  ROOT t = (f32[6,6], f32[6]) tuple(l, q) }}
"""
    module, x = parse_module(text), np.arange(30, dtype=np.float32).reshape(6, 5) / 30
    actual, count = run_split(plan(module), [x])
    assert count == 3 * 3  # ranges of the product, the sines and the sums
    agree(module, evaluate(module, [x]), actual)
