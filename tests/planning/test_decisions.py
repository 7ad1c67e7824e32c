"""The planner's decisions one by one: what may be computed in place, what is split over threads, and small parts."""

import numpy as np
import pytest

from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.verify.verifier import verify
from ...planning.assignment_checker import check_assignment
from ...planning.inplace import reuses
from ...planning.order_graph import OrderGraph
from ...planning.packing import EXACT_LIMIT, pack
from ...planning.partition import Partition, partition_of
from ...planning.plan import BufferSlice, KernelStep
from ...planning.planner import plan_scheduled
from ...planning.schedule import schedule
from ..support.plan_interpreter import run_plan

REGIONS = """add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=LT }
less2 { p = f32[] parameter(0)
  q = f32[] parameter(1)
  r = f32[] parameter(2)
  t = f32[] parameter(3)
  ROOT s = pred[] compare(p, q), direction=LT }
"""
ROWS = """z = f32[] constant(0); s = f32[8] reduce(p0, z), dimensions={1}, to_apply=add;
  b = f32[8,64] broadcast(s), dimensions={0}; d = f32[8,64] divide(p0, b); """
LOOP = """z = f32[] constant(0); s = f32[8] reduce(p1, z), dimensions={1}, to_apply=add; a = f32[8] add(p0, s); """


def instruction(shapes: str, root: str) -> Instruction:
    """`root` on p0, p1, … of these shapes; a fusion's result where it holds several lines: `body => shape`."""
    given = "".join(f"  p{n} = {shape} parameter({n})\n" for n, shape in enumerate(shapes.split()))
    fused = ""
    if "=>" in root:
        body, _, shape = root.partition("=>")
        lines = "\n".join(f"  {line.strip()}" for line in body.split(";"))
        fused = f"fused {{\n{given}{lines} }}\n"
        names = ", ".join(f"p{n}" for n in range(len(shapes.split())))
        root = f"{shape.strip()} fusion({names}), kind=kLoop, calls=fused"
    module = parse_module(f"HloModule m\n{REGIONS}{fused}ENTRY e {{\n{given}  ROOT f = {root} }}\n")
    verify(module)
    return module.entry.root


# (why, shapes of the operands, the op or fusion, what reuses gives: pairs of operand and result leaf)
IN_PLACE = [
    ("the same width", "f32[8]", "s32[8] convert(p0)", ((0, 0),)),
    ("another width", "f32[8]", "f16[8] convert(p0)", ()),
    ("a sorted row", "f32[8,8]", "f32[8,8] sort(p0), dimensions={1}, to_apply=less", ((0, 0),)),
    ("another layout", "f32[8,8]{0,1}", "f32[8,8]{1,0} sort(p0), dimensions={1}, to_apply=less", ()),
    (
        "a row that is read elsewhere too",
        "f32[8,8]",
        ("r = f32[8,8] reverse(p0), dimensions={1};"
        "ROOT s = (f32[8,8], f32[8,8]) sort(p0, r), dimensions={1}, to_apply=less2 => (f32[8,8], f32[8,8])"),
        (),
    ),
    (
        "a parameter of whole rows, not one that is spread over them",
        "f32[8,64] f32[64]",
        ROWS + "c = f32[8,64] broadcast(p1), dimensions={1}; ROOT r = f32[8,64] multiply(d, c) => f32[8,64]",
        ((0, 0),),
    ),
    (
        "nor one that is read in another row",
        "f32[8,64] f32[8,64]",
        ROWS + "v = f32[8,64] reverse(p1), dimensions={0}; ROOT r = f32[8,64] multiply(d, v) => f32[8,64]",
        ((0, 0),),
    ),
    (
        "what a loop of several results reads in place",
        "f32[8] f32[8,4] f32[8]",
        LOOP + "v = f32[8] reverse(p2), dimensions={0}; c = f32[8] multiply(p0, v);"
        "ROOT t = (f32[8], f32[8], f32[8]) tuple(a, s, c) => (f32[8], f32[8], f32[8])",
        ((0, 0), (0, 1), (0, 2)),
    ),
    (
        "results of two shapes, of which one is written first",
        "f32[8] f32[2,4]",
        ("a = f32[8] negate(p0); b = f32[2,4] reshape(p0); c = f32[2,4] add(b, p1);"
        "ROOT t = (f32[8], f32[2,4]) tuple(a, c) => (f32[8], f32[2,4])"),
        ((1, 1),),
    ),
    ("what a library overwrites", "f32[8,8]", "f32[8,8] cholesky(p0), lower=true", ((0, 0),)),
]  # fmt: skip


@pytest.mark.parametrize(("shapes", "root", "pairs"), [c[1:] for c in IN_PLACE], ids=[c[0] for c in IN_PLACE])
def test_what_may_be_computed_in_place(shapes, root, pairs):
    assert reuses(instruction(shapes, root)) == pairs


MATRICES = "f32[512,512] f32[512,512]"
DOT = "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
ROW_SCATTER = (
    "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=add"
)
SPLIT = [
    ("add", "f32[1024,512] f32[1024,512]", "f32[1024,512] add(p0, p1)", Partition((0,), 1024, 128)),
    ("exponential", "f32[1024,512]", "f32[1024,512] exponential(p0)", Partition((0,), 1024, 64)),
    ("pad", "f32[1024,512] f32[]", "f32[1025,512] pad(p0, p1), padding=1_0x0_0", Partition((0,), 1025, 192)),
    (
        "convolution",
        "f32[8,64,64,16] f32[3,3,16,16]",
        "f32[8,62,62,16] convolution(p0, p1), window={size=3x3}, dim_labels=b01f_01io->b01f",
        Partition((0, 1), 496, 1),
    ),
    (
        "reduce-window",
        "f32[1024,512] f32[]",
        "f32[1024,510] reduce-window(p0, p1), window={size=1x3}, to_apply=add",
        Partition((0,), 1024, 128),
    ),
    ("dot", MATRICES, f"f32[512,512] {DOT}", Partition((1,), 512, 64)),
    ("dot with rows side by side", MATRICES, f"f32[512,512]{{0,1}} {DOT}", Partition((0,), 512, 64)),
    ("dot of few columns", "f32[512,512] f32[512,128]", f"f32[512,128] {DOT}", Partition((0,), 512, 64)),
    ("sort", "f32[1024,512]", "f32[1024,512] sort(p0), dimensions={1}, to_apply=less", Partition((0,), 1024, 16)),
    (
        "running sum",
        "f32[64,16384] f32[]",
        "f32[64,16384] reduce-window(p0, p1), window={size=1x16384 pad=0_0x16383_0}, to_apply=add",
        Partition((0,), 64, 8),
    ),
    ("topk", "f32[1024,512]", "(f32[1024,512], s32[1024,512]) topk(p0), k=512", Partition((0,), 1024, 64)),
    ("topk by columns", "f32[1024,512]", "(f32[1024,512]{0,1}, s32[1024,512]{0,1}) topk(p0), k=512", None),
    (
        "scatter of wide windows",
        "f32[4096,512] s32[2048,1] f32[2048,512]",
        f"f32[4096,512] {ROW_SCATTER}",
        Partition((0,), 4096, 512),
    ),
    ("scatter", "f32[32768,64] s32[16384,1] f32[16384,64]", f"f32[32768,64] {ROW_SCATTER}", None),
    (
        "dynamic-update-slice",
        "f32[1024,512] f32[1000,500] s32[]",
        "f32[1024,512] dynamic-update-slice(p0, p1, p2, p2)",
        None,
    ),
    ("random bits", "u64[2]", "(u64[2], u32[1048576]) rng-bit-generator(p0), algorithm=rng_three_fry", None),
]


@pytest.mark.parametrize(("shapes", "root", "partition"), [c[1:] for c in SPLIT], ids=[c[0] for c in SPLIT])
def test_what_is_split_and_from_how_many_steps_on(shapes, root, partition):
    assert partition_of(instruction(shapes, root)) == partition


def test_slices_overlap_from_one_byte_on():
    here = BufferSlice(0, 8, 4)
    assert here.overlaps(BufferSlice(0, 11, 4)) and here.overlaps(BufferSlice(0, 5, 4))
    assert not here.overlaps(BufferSlice(0, 12, 4)) and not here.overlaps(BufferSlice(0, 4, 4))
    assert not here.overlaps(BufferSlice(1, 8, 4))


def test_many_buffers_one_after_the_other_take_the_room_of_one():
    count = EXACT_LIMIT + 1
    assert pack([64] * count, [[(2 * n, 2 * n + 1)] for n in range(count)]).size == 64


def test_a_value_that_is_overwritten_before_its_last_use_counts_as_broken():
    module = parse_module("""HloModule m
ENTRY e { x = f32[64] parameter(0)
  i = s32[] parameter(1)
  y = f32[64] exponential(x)
  u = f32[1] slice(x), slice={[0:1]}
  n = f32[64] negate(y)
  d = f32[64] dynamic-update-slice(y, u, i)
  ROOT t = (f32[64], f32[64]) tuple(d, n) }""")
    graph = OrderGraph(module.entry)
    place = {i.name: n for n, i in enumerate(module.entry.instructions)}
    last = [place[name] for name in ("x", "i", "y", "u")]
    assert graph.broken([*last, place["n"], place["d"], place["t"]]) == 0
    assert graph.broken([*last, place["d"], place["n"], place["t"]]) == 1


def test_arrays_of_unknown_size_are_refused():
    module = parse_module("""HloModule m
ENTRY e { x = f32[8] parameter(0)
  n = s32[] parameter(1)
  ROOT d = f32[<=8] set-dimension-size(x, n), dimensions={0} }""")
    with pytest.raises(UnsupportedError, match="dynamic dimensions"):
        plan_scheduled(module)


def test_an_effect_without_a_result_is_a_step():
    module = parse_module("""HloModule m
ENTRY e { x = f32[8] parameter(0)
  o = token[] custom-call(x), custom_call_target="log", custom_call_has_side_effect=true
  ROOT r = f32[8] negate(x) }""")
    steps = [s.instruction.name for s in plan_scheduled(schedule(module)).walk() if isinstance(s, KernelStep)]
    assert sorted(steps) == ["o", "r"]


def test_a_result_that_nobody_reads_does_not_overwrite_an_operand_that_lives_on():
    module = parse_module("""HloModule m
fused { p = f32[64] parameter(0)
  n = f32[64] negate(p)
  a = f32[64] sine(p)
  ROOT t = (f32[64], f32[64]) tuple(n, a) }
ENTRY e { x = f32[64] parameter(0)
  y = f32[64] exponential(x)
  f = (f32[64], f32[64]) fusion(y), kind=kLoop, calls=fused
  g = f32[64] get-tuple-element(f), index=0
  ROOT r = f32[64] subtract(g, y) }""")
    made = plan_scheduled(schedule(module))
    check_assignment(made)
    x = np.linspace(0, 1, 64, dtype=np.float32)
    np.testing.assert_allclose(run_plan(made, [x])[0], -2 * np.exp(x), rtol=1e-6)
