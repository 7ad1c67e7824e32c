"""Plans of gathers and scatters: one kernel together with their neighbours, and updates in place."""

import numpy as np
import pytest

from ...formats.text.parser import parse_module
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...planning.plan import CopyStep, KernelStep
from ...planning.planner import plan
from ..support.check import check

HEAD = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
two { a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  m = pred[] compare(c, a), direction=GT
  x = f32[] select(m, c, a)
  y = s32[] select(m, d, b)
  ROOT t = (f32[], s32[]) tuple(x, y) }
"""
ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}"
ADD_ROWS = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=add"
)


def entry(*lines: str, head: str = HEAD) -> str:
    return head + "ENTRY e {\n" + "\n".join(lines) + "\n}\n"


def kernels(text: str) -> list[str]:
    """The opcodes of each kernel, and 'copy' for a copy, in order."""

    def describe(i: Instruction) -> str:
        body = i.called()[0].instructions if i.opcode is Op.FUSION else (i,)
        return " ".join(m.opcode.value for m in body if m.opcode not in (Op.PARAMETER, Op.CONSTANT))

    steps = plan(parse_module(text)).walk()
    return [
        "copy" if isinstance(s, CopyStep) else describe(s.instruction)
        for s in steps
        if isinstance(s, CopyStep | KernelStep)
    ]


def rows(count: int, low: int = -5, high: int = 60) -> np.ndarray:
    return np.random.default_rng(count).integers(low, high, count).astype(np.int32)


def floats(*dims: int) -> np.ndarray:
    return np.random.default_rng(len(dims)).uniform(-1, 1, dims).astype(np.float32)


def test_an_embedding_is_one_kernel_with_its_indices_and_its_sum():
    text = entry(
        "x = f32[50,16] parameter(0)", "i = s32[8,5] parameter(1)", "n = s32[] constant(50)", "z = s32[] constant(0)",
        "ns = s32[8,5] broadcast(n), dimensions={}", "zs = s32[8,5] broadcast(z), dimensions={}",
        "b = pred[8,5] compare(i, zs), direction=LT", "j = s32[8,5] add(i, ns)", "k = s32[8,5] select(b, j, i)",
        "f = s32[40] reshape(k)", f"g = f32[40,16] gather(x, f), {ROWS}", "h = f32[8,5,16] reshape(g)",
        "w = f32[] constant(0)", "ROOT r = f32[8,16] reduce(h, w), dimensions={1}, to_apply=add",
    )  # fmt: skip
    assert len(kernels(text)) == 1
    check(text, [floats(50, 16), rows(40).reshape(8, 5)])


def test_a_gather_reads_what_it_needs_of_a_computed_operand():
    text = entry(
        "x = f32[1000,16] parameter(0)", "i = s32[4] parameter(1)", "t = f32[1000,16] tanh(x)",
        f"g = f32[4,16] gather(t, i), {ROWS}", "ROOT r = f32[4,16] negate(g)",
    )  # fmt: skip
    assert kernels(text) == ["tanh gather negate"]
    check(text, [floats(1000, 16), rows(4, -10, 1100)])


def test_a_dear_operand_that_is_read_often_is_stored():
    text = entry(
        "x = f32[300,16] parameter(0)", "i = s32[9000] parameter(1)", "t = f32[300,16] tanh(x)",
        f"ROOT g = f32[9000,16] gather(t, i), {ROWS}",
    )  # fmt: skip
    assert kernels(text) == ["tanh", "gather"]


def test_a_gather_that_a_broadcast_would_repeat_is_stored():
    text = entry(
        "x = f32[50] parameter(0)", "i = s32[1000] parameter(1)", "y = f32[1000,1000] parameter(2)",
        "g = f32[1000] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1}",
        "b = f32[1000,1000] broadcast(g), dimensions={1}", "ROOT r = f32[1000,1000] multiply(b, y)",
    )  # fmt: skip
    assert kernels(text) == ["gather", "broadcast multiply"]


def test_a_scatter_takes_its_start_its_indices_and_its_updates():
    text = entry(
        "i = s32[40] parameter(0)", "u = f32[40,16] parameter(1)", "z = f32[] constant(0)", "one = s32[] constant(1)",
        "x = f32[50,16] broadcast(z), dimensions={}", "ones = s32[40] broadcast(one), dimensions={}",
        "j = s32[40] add(i, ones)", "v = f32[40,16] sine(u)", f"ROOT s = f32[50,16] scatter(x, j, v), {ADD_ROWS}",
    )  # fmt: skip
    (only,) = kernels(text)
    assert only.split()[-1] == "scatter" and {"broadcast", "add", "sine"} <= {*only.split()}
    check(text, [rows(40), floats(40, 16)])


@pytest.mark.parametrize("other", ["u", "v"])
def test_a_dying_operand_is_updated_in_place(other):
    """The second scatter overwrites the first one's result, unless it also reads it in another operand."""
    text = entry(
        "x = f32[50,16] parameter(0)", "i = s32[50] parameter(1)", "u = f32[50,16] parameter(2)",
        f"v = f32[50,16] scatter(x, i, u), {ADD_ROWS}", f"w = f32[50,16] scatter(v, i, {other}), {ADD_ROWS}",
        "ROOT r = f32[50,16] copy(w)",
    )  # fmt: skip
    steps = [s for s in plan(parse_module(text)).walk() if isinstance(s, KernelStep)]
    shared = [set(s.kernel.operands) & set(s.kernel.results) for s in steps]
    assert shared[:2] == [set(), {0} if other == "u" else set()]
    check(text, [floats(50, 16), rows(50), floats(50, 16)])


def test_an_update_takes_its_start_but_not_in_place_of_what_it_reads():
    text = entry(
        "x = f32[50,16] parameter(0)", "k = s32[] parameter(1)", "a = f32[50,16] cosine(x)", "p = f32[50,16] negate(a)",
        "q = f32[50,16] reverse(a), dimensions={0}", "u = f32[20,16] slice(q), slice={[10:30], [0:16]}",
        "o = s32[] constant(0)", "v = f32[50,16] dynamic-update-slice(p, u, k, o)",
        "ROOT r = f32[50,16] sine(v)",
    )  # fmt: skip
    assert kernels(text) == ["cosine", "negate slice reverse dynamic-update-slice", "sine"]
    check(text, [floats(50, 16), np.array(7, np.int32)])


def test_an_operand_that_is_computed_on_the_way_shares_its_place_only_if_the_updates_do_not_read_it():
    text = entry(
        "x = f32[50,16] parameter(0)", "i = s32[50] parameter(1)", "a = f32[50,16] cosine(x)",
        "p = f32[50,16] abs(a)", "q = f32[50,16] reverse(a), dimensions={0}",
        f"v = f32[50,16] scatter(p, i, q), {ADD_ROWS}", "ROOT r = f32[50,16] tanh(v)",
    )  # fmt: skip
    check(text, [floats(50, 16), rows(50)])


UPDATES = {
    "a scatter": f"y = f32[50,16] scatter(x, i, u), {ADD_ROWS}",
    "a scatter into what is computed": f"v = f32[50,16] negate(x)\n  y = f32[50,16] scatter(v, i, u), {ADD_ROWS}",
    "an update of what is computed": """v = f32[50,16] negate(x)
  w = f32[1,16] broadcast(f), dimensions={}
  o = s32[] constant(0)
  y = f32[50,16] dynamic-update-slice(v, w, k, o)""",
}


@pytest.mark.parametrize("update", UPDATES)
def test_a_loop_of_updates_copies_nothing(update):
    head = (
        HEAD
        + f"""body {{ t = (s32[], f32[50,16], s32[50]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  x = f32[50,16] get-tuple-element(t), index=1
  i = s32[50] get-tuple-element(t), index=2
  one = s32[] constant(1)
  n = s32[] add(k, one)
  f = f32[] convert(k)
  u = f32[50,16] broadcast(f), dimensions={{}}
  {UPDATES[update]}
  ROOT r = (s32[], f32[50,16], s32[50]) tuple(n, y, i) }}
more {{ t = (s32[], f32[50,16], s32[50]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  n = s32[] constant(9)
  ROOT p = pred[] compare(k, n), direction=LT }}
"""
    )
    text = entry(
        "z = s32[] constant(0)", "w = f32[] constant(0)", "x = f32[50,16] broadcast(w), dimensions={}",
        "i = s32[50] parameter(0)", "t = (s32[], f32[50,16], s32[50]) tuple(z, x, i)",
        "l = (s32[], f32[50,16], s32[50]) while(t), condition=more, body=body",
        "ROOT r = f32[50,16] get-tuple-element(l), index=1", head=head,
    )  # fmt: skip
    assert sum("scatter" in k or "update" in k or "negate" in k for k in kernels(text)) == 1
    assert [s for s in plan(parse_module(text)).walk() if isinstance(s, CopyStep) and s.source.size > 4] == []
    check(text, [rows(50)])


TWO = (
    "s = (f32[40], s32[40]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=two"
)


def test_a_scatter_of_several_arrays_sees_each_update_whole():
    text = entry(
        "x = f32[40] parameter(0)", "y = s32[40] parameter(1)", "i = s32[90] parameter(2)", "u = f32[90] parameter(3)",
        "v = s32[90] parameter(4)", f"ROOT {TWO}",
    )  # fmt: skip
    check(text, [floats(40), rows(40), rows(90, -3, 44), floats(90), rows(90)])


def test_a_fusion_whose_root_is_a_scatter_of_several_arrays():
    """A fusion as XLA makes it, with results in place and elsewhere."""
    head = (
        HEAD.replace("HloModule m", "HloModule m, is_scheduled=true")
        + f"""fused {{ x = f32[40] parameter(0)
  y = s32[40] parameter(1)
  i = s32[90] parameter(2)
  c = f32[90] parameter(3)
  v = s32[90] parameter(4)
  u = f32[90] negate(c)
  ROOT {TWO} }}
"""
    )
    text = entry(
        "x = f32[40] parameter(0)", "y = s32[40] parameter(1)", "i = s32[90] parameter(2)", "u = f32[90] parameter(3)",
        "v = s32[90] parameter(4)", "n = f32[40] negate(x)",
        "f = (f32[40], s32[40]) fusion(n, y, i, u, v), kind=kLoop, calls=fused",
        "a = f32[40] get-tuple-element(f), index=0", "b = s32[40] get-tuple-element(f), index=1",
        "ROOT r = (f32[40], s32[40]) tuple(a, b)", head=head,
    )  # fmt: skip
    check(text, [floats(40), rows(40), rows(90, -3, 44), floats(90), rows(90)])


def test_a_region_may_see_the_bits_of_its_values():
    head = (
        HEAD
        + """bits { p = f32[] parameter(0)
  q = f32[] parameter(1)
  a = s32[] bitcast(p)
  b = s32[] bitcast-convert(q)
  c = s32[] xor(a, b)
  d = f32[] bitcast(c)
  ROOT r = f32[] bitcast(d) }
"""
    )
    text = entry(
        "x = f32[40] parameter(0)", "i = s32[30] parameter(1)", "u = f32[30] parameter(2)",
        "ROOT s = f32[40] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=bits", head=head,
    )  # fmt: skip
    check(text, [floats(40), np.arange(30, dtype=np.int32) // 2, floats(30)])


def test_what_leads_to_a_scatter_of_several_arrays_is_in_its_kernel():
    text = entry(
        "w = f32[] constant(1)", "x = f32[40] broadcast(w), dimensions={}", "y = s32[40] parameter(0)",
        "j = s32[90] parameter(1)", "c = f32[90] parameter(2)", "v = s32[90] parameter(3)", "i = s32[90] not(j)",
        "u = f32[90] exponential(c)", f"ROOT {TWO}",
    )  # fmt: skip
    assert kernels(text) == ["broadcast not exponential scatter"]
    check(text, [rows(40), rows(90, -44, 3), floats(90), rows(90)])


@pytest.mark.parametrize(
    "end",
    [
        "ROOT n = f32[5] negate(s)",
        "ROOT n = (f32[5], f32[5]) tuple(s, s)",
        "n = f32[5] negate(s)\n  ROOT t = (f32[5], f32[5]) tuple(s, n)",
        "n = f32[5] negate(x)\n  ROOT t = (f32[5], f32[5]) tuple(s, n)",
    ],
)
def test_a_fusion_that_does_more_with_a_scatter_than_give_it_is_taken_apart(end):
    shape = "(f32[5], f32[5])" if "tuple" in end else "f32[5]"
    head = (
        HEAD.replace("HloModule m", "HloModule m, is_scheduled=true")
        + f"""fused {{ x = f32[5] parameter(0)
  i = s32[3] parameter(1)
  u = f32[3] parameter(2)
  s = f32[5] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}},
    index_vector_dim=1, to_apply=add
  {end} }}
"""
    )
    text = entry(
        "x = f32[5] parameter(0)", "i = s32[3] parameter(1)", "u = f32[3] parameter(2)",
        f"ROOT f = {shape} fusion(x, i, u), kind=kLoop, calls=fused", head=head,
    )  # fmt: skip
    assert ("scatter" in kernels(text)) is ("negate(x)" not in end)
    check(text, [floats(5), rows(3, -1, 7), floats(3)])


def test_indices_that_are_joined_are_read_part_by_part():
    text = entry(
        "x = f32[20,30] parameter(0)", "i = s32[9] parameter(1)", "j = s32[9] parameter(2)",
        "a = s32[9,1] reshape(i)", "b = s32[9,1] reshape(j)", "c = s32[9,2] concatenate(a, b), dimensions={1}",
        "ROOT g = f32[9] gather(x, c), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, "
        "index_vector_dim=1, slice_sizes={1,1}",
    )  # fmt: skip
    assert len(kernels(text)) == 1
    check(text, [floats(20, 30), rows(9, -2, 22), rows(9, -2, 32)])


@pytest.mark.parametrize("size", [0, 5])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("place", ["alone", "with a consumer", "with a producer and a control edge"])
def test_a_slice_without_extent_reads_nothing_that_is_not_there(size, count, place):
    """A dimension that the result drops may have a slice size of 0."""
    gather = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={0}"
    given = f"x = f32[{size}] parameter(0)", f"i = s32[{count},1] parameter(1)"
    ends = {
        "alone": [f"ROOT r = f32[{count}] gather(x, i), {gather}"],
        "with a consumer": [f"g = f32[{count}] gather(x, i), {gather}", f"ROOT r = f32[{count}] negate(g)"],
        "with a producer and a control edge": [
            f"n = f32[{size}] negate(x)",
            f"g = f32[{count}] gather(n, i), {gather}",
            f"ROOT r = f32[{count}] exponential(g), control-predecessors={{n}}",
        ],
    }
    text = entry(*given, *ends[place])
    x = np.arange(1, size + 1, dtype=np.float32)
    check(text, [x, np.arange(-1, 3 * count - 1, 3, dtype=np.int32).reshape(count, 1)])
