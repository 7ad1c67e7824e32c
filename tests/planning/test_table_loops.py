"""Loops over tables: what a step overwrites is read before, so that no step copies the table; else it is copied."""

import numpy as np
import pytest

from ...benchmarks.table_programs import TABLE_LOOPS, TableLoop, inputs_of
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.analysis.overwrites import reads_first
from ...hlo.analysis.updates import updated_operands
from ...planning.assignment_checker import check_assignment
from ...planning.plan import CopyStep, Plan
from ...planning.planner import plan
from ..support.check import check
from ..support.passes import agree
from ..support.plan_interpreter import run_plan
from ..support.whole_arrays import written_whole

ROWS = "f32[$n,64]"
LARGE = "f32[$n,1000]"
READ = "f32[1,64] dynamic-slice({0}, {1}, zero), dynamic_slice_sizes={{1,64}}"


def write(name: str, table: str, row: str, place: str = "i") -> str:
    return f"{name} = f32[$n,64] dynamic-update-slice({table}, {row}, {place}, zero)\n"


def planned(loop: TableLoop, n: int) -> Plan:
    """The plan, proved, and run on buffers."""
    module, inputs = parse_module(loop.text(n)), inputs_of(loop, n)
    made = plan(module)
    check_assignment(made)
    agree(module, evaluate(module, inputs), run_plan(made, inputs))
    return made


def table_bytes(loop: TableLoop, n: int) -> int:
    """Bytes of a part of a table that no step needs: 4 for each place."""
    return 4 * n


@pytest.mark.parametrize("loop", TABLE_LOOPS, ids=lambda loop: loop.name)
def test_no_step_writes_a_whole_table(loop):
    made = plan(parse_module(loop.text(1024)))
    check_assignment(made)
    assert written_whole(made, table_bytes(loop, 1024)) == []


@pytest.mark.parametrize("n", [5, 12])
@pytest.mark.parametrize("loop", TABLE_LOOPS, ids=lambda loop: loop.name)
def test_loops_give_the_evaluators_results(loop, n):
    planned(loop, n)
    check(loop.text(n), inputs_of(loop, n, seed=n))


# Bodies: v is written to s1 at i; what is copied in each step, if anything.
PLACES = "k = s32[1] dynamic-slice(s2, i), dynamic_slice_sizes={1}\n k0 = s32[] reshape(k)\n"
IN_PLACE = [
    (
        "the old row is read below the write",
        f"v = {READ.format('s1', 'b1')}\n n = f32[1,64] tanh(v)\n"
        + write("u", "s1", "n")
        + f"old = {READ.format('s1', 'i')}\n f = f32[64] reshape(old) -> u, f",
        f"{ROWS}; f32[64]",
    ),
    (
        "an old row beside a new one, which share their kernel's other operand",
        f"v = {READ.format('s1', 'b1')}\n" + write("u", "s1", "v") + f"new = {READ.format('u', 'b2')}\n"
        f"old = {READ.format('s1', 'i')}\n c = f32[1,64] reshape(s2)\n a = f32[1,64] multiply(old, c)\n"
        "b = f32[1,64] multiply(new, c)\n d = f32[1,64] add(a, b)\n f = f32[64] reshape(d) -> u, f",
        f"{ROWS}; f32[64]",
    ),
    (
        "rows of the table before each of two writes",
        f"v = {READ.format('s1', 'b1')}\n" + write("u", "s1", "v") + f"o = {READ.format('s1', 'b2')}\n"
        f"w = {READ.format('u', 'b1')}\n x = f32[1,64] add(o, w)\n" + write("y", "u", "x", "b2") + "-> y",
        ROWS,
    ),
    (
        "the table as columns and as a view",
        "flat = f32[$n,8,8] reshape(s1)\n r = f32[1,8,8] dynamic-slice(flat, b1, zero, zero),"
        " dynamic_slice_sizes={1,8,8}\n n = f32[1,64] reshape(r)\n q = f32[1,64] negate(n)\n"
        + write("u", "s1", "q")
        + "-> u",
        ROWS,
    ),
    (
        "the whole table is summed",
        "nil = f32[] constant(0)\n s = f32[64] reduce(s1, nil), dimensions={0}, to_apply=add\n"
        "v = f32[1,64] reshape(s)\n" + write("u", "s1", "v") + "-> u",
        ROWS,
    ),
]


@pytest.mark.parametrize(("body", "leaves"), [c[1:] for c in IN_PLACE], ids=[c[0] for c in IN_PLACE])
def test_reads_come_before_the_write(body, leaves):
    loop = TableLoop("m", leaves, body)
    assert written_whole(planned(loop, 300), 4 * 300) == []
    check(loop.text(9), inputs_of(loop, 9))


COPIED = [
    (
        "an old row at a place that the new table names",
        PLACES
        + f"v = {READ.format('s1', 'b1')}\n"
        + write("u", "s1", "v")
        + "e = f32[1,1] dynamic-slice(u, k0, zero), dynamic_slice_sizes={1,1}\n e0 = f32[] reshape(e)\n"
        f"at = s32[] convert(e0)\n old = {READ.format('s1', 'at')}\n" + write("w", "u", "old", "k0") + "-> w, s2",
        f"{ROWS}; s32[$n]",
    ),
    ("the table before is kept, too", f"v = {READ.format('s1', 'b1')}\n" + write("u", "s1", "v") + "-> u, s1",
     f"{ROWS}; {ROWS}"),
    (
        "two new tables of one",
        f"v = {READ.format('s1', 'b1')}\n" + write("u", "s1", "v") + write("w", "s1", "v", "b2") + "-> u, w",
        f"{ROWS}; {ROWS}",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "leaves"), [c[1:] for c in COPIED], ids=[c[0] for c in COPIED])
def test_what_is_read_after_the_write_is_copied(body, leaves):
    loop = TableLoop("m", leaves, body)
    assert written_whole(planned(loop, 30), 30 * 64 * 4)
    check(loop.text(9), inputs_of(loop, 9))


def test_kernels_that_read_the_old_and_the_new_table_do_not_merge():
    """Rows are large enough for a kernel of several results, and both read the second array."""
    row = "f32[1,1000] dynamic-slice({0}, {1}, zero), dynamic_slice_sizes={{1,1000}}"
    body = f"""c = f32[1,1000] reshape(s2)
  v = {row.format("s1", "b1")}
  u = {LARGE} dynamic-update-slice(s1, v, i, zero)
  old = {row.format("s1", "i")}
  new = {row.format("u", "b2")}
  a = f32[1,1000] multiply(old, c)
  b = f32[1,1000] add(new, c)
  a0 = f32[1000] reshape(a)
  b0 = f32[1000] reshape(b) -> u, a0, b0"""
    loop = TableLoop("m", f"{LARGE}; f32[1000]; f32[1000]", body)
    assert written_whole(planned(loop, 40), 40 * 4000) == []
    check(loop.text(7), inputs_of(loop, 7))


DONATED = (
    TABLE_LOOPS[0]
    .text(64)
    .replace("HloModule row_from_the_row_before", "HloModule m, input_output_alias={ {1}: (0, {}, must-alias) }")
)


def test_a_donated_table_is_never_copied():
    made = plan(parse_module(DONATED))
    check_assignment(made)
    assert written_whole(made, 64 * 4 * 4) == []
    assert not [s for s in made.walk() if isinstance(s, CopyStep) and s.source.size >= 64 * 64 * 4]
    check(DONATED, inputs_of(TABLE_LOOPS[0], 64))


def test_in_the_entry_what_is_given_is_not_ours():
    """A parameter must be copied in any case, so one kernel reads and writes."""
    text = """HloModule m
ENTRY e { a = f32[9,64] parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  b = s32[] constant(-1)
  j = s32[] add(i, b)
  r = f32[1,64] dynamic-slice(a, j, z), dynamic_slice_sizes={1,64}
  v = f32[1,64] tanh(r)
  ROOT u = f32[9,64] dynamic-update-slice(a, v, i, z) }"""
    assert len(plan(parse_module(text)).steps) == 1
    for i in (0, 1, 8, 20):
        check(text, [np.random.default_rng(i).random((9, 64), np.float32), np.int32(i)])


# --- which readers come first ---------------------------------------------------------------------------------------

HEAD = """HloModule m
ENTRY e { x = f32[8] parameter(0)
  i = s32[] parameter(1)
  a = f32[8] negate(x)
  v = f32[1] slice(x), slice={[0:1]}
"""
FIRST = [
    ("a reader below", "u = f32[8] dynamic-update-slice(a, v, i)\n r = f32[8] tanh(a)", "u, r", {"u": {"r"}}),
    ("through a view", "b = f32[8,1] reshape(a)\n u = f32[8] dynamic-update-slice(a, v, i)\n r = f32[8,1] tanh(b)",
     "u, r", {"u": {"r"}}),
    ("one that depends on the write", "u = f32[8] dynamic-update-slice(a, v, i)\n r = f32[8] add(a, u)", "r", {}),
    ("a result", "r = f32[8] tanh(a)\n u = f32[8] dynamic-update-slice(a, v, i)", "u, r, a", {}),
    (
        "a circle of two tables",
        ("b = f32[8] abs(x)\n u = f32[8] dynamic-update-slice(a, v, i)\n w = f32[8] dynamic-update-slice(b, v, i)\n"
         "r = f32[8] add(u, b)\n s = f32[8] add(w, a)"),
        "r, s", {"u": {"s"}},
    ),
    ("two writes to one array", "u = f32[8] dynamic-update-slice(a, v, i)\n w = f32[8] dynamic-update-slice(a, v, i)",
     "u, w", {"w": {"u"}}),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "results", "wanted"), [c[1:] for c in FIRST], ids=[c[0] for c in FIRST])
def test_readers_that_come_first(lines, results, wanted):
    shapes = ", ".join("f32[8,1]" if "b = f32[8,1]" in lines and r == "r" else "f32[8]" for r in results.split(", "))
    module = parse_module(f"{HEAD}  {lines}\n  ROOT t = ({shapes}) tuple({results}) }}\n")
    found = reads_first(module.entry)
    assert {op.name: {r.name for r in readers} for op, readers in found.items()} == wanted


def test_effects_keep_their_order():
    """The old table is sent after the new one, so the write cannot wait for that."""
    module = parse_module(f"""{HEAD}  u = f32[8] dynamic-update-slice(a, v, i)
  t = token[] after-all()
  first = token[] outfeed(u, t), outfeed_shape=f32[8]
  s = token[] after-all()
  second = token[] outfeed(a, s), outfeed_shape=f32[8]
  ROOT r = f32[] constant(0) }}
""")
    assert reads_first(module.entry) == {}
    made = plan(module)
    order = [s.instruction.name for s in made.walk() if s.instruction.name in ("first", "second")]
    assert order == ["first", "second"]


def fused(update: str, read: str) -> tuple[tuple[int, int], ...]:
    """What a fusion updates in place that writes `update` elements at i and reads as many at a place."""
    text = f"""HloModule m
f {{ a = f32[8] parameter(0)
  i = s32[] parameter(1)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  r = f32[{update}] dynamic-slice(a, {read}), dynamic_slice_sizes={{{update}}}
  v = f32[{update}] negate(r)
  ROOT u = f32[8] dynamic-update-slice(a, v, i) }}
ENTRY e {{ a = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT f = f32[8] fusion(a, i), kind=kLoop, calls=f }}"""
    return updated_operands(parse_module(text).entry.root)


def test_a_kernel_reads_before_it_writes():
    """One element is computed before it is written; of several, those that are written later may have been read."""
    assert fused("1", "j") == fused("1", "i") == fused("2", "i") == ((0, 0),)
    assert fused("2", "j") == ()
