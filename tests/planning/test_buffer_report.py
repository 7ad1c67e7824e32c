"""`testbed buffers` and benchmarks/plans: the report lists the plan's buffers, the plot is drawn, counts are right."""

import json

import numpy as np
import pytest

from ...benchmarks.plans import (
    PlanFigures,
    as_json,
    chain_text,
    count_steps,
    count_xla_kernels,
    geomean,
    growth,
    measure,
    pass_table,
    table,
)
from ...cli.main import main
from ...display.buffers_plot import rectangles
from ...formats.text.parser import parse_module
from ...passes.pipeline import PipelineOptions
from ...planning.buffer_report import report_buffers, report_to_text
from ...planning.plan import AllocationKind
from ...planning.planner import PlanOptions, plan
from ..support.hlo_corpus import each

TEXT = """HloModule m
ENTRY e {
  x = f32[16,16] parameter(0)
  a = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[16,16] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[] reduce(c, z), dimensions={0,1}, to_apply=add
}
"""
TEXT = TEXT.replace("  a =", "  z = f32[] constant(0)\n  a =").replace(
    "ENTRY", "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\nENTRY"
)


def test_the_report_lists_slices_with_live_ranges_and_sums():
    text = report_to_text(report_buffers(plan(parse_module(TEXT))))
    assert "allocation 0: parameter 0 f32[16,16]" in text
    assert "alive at 1-3: a\n" in text and "alive at 2-3: b\n" in text and "alive at 3-4: c\n" in text
    assert "results: 1, 4 bytes" in text
    assert "arena: 3072 bytes; lower bound (most bytes alive at once): 3072 bytes; optimal" in text


@each("jax_programs", 3, biggest=60_000, seed=3)
def test_reported_ranges_are_those_of_the_plan_and_never_overlap(case):
    made = plan(case.module())
    report = report_buffers(made)
    (arena,) = [a for a in made.assignment.allocations if a.kind is AllocationKind.TEMPORARY]
    assert report.arena == arena.size
    ranges = report.ranges_of(arena.index)
    assert {r.slice for r in ranges} >= {
        s for s in made.assignment.slices.values() if s.allocation == arena.index and s.size
    }
    clash = [
        (a, b)
        for n, a in enumerate(ranges)
        for b in ranges[:n]
        if a.slice.overlaps(b.slice) and any(max(s, u) < min(t, v) for s, t in a.segments for u, v in b.segments)
    ]
    assert not clash
    assert len(rectangles(report)) == sum(len(r.segments) for r in ranges)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_command_prints_and_draws(tmp_path, capsys, kind):
    pytest.importorskip("matplotlib")
    (tmp_path / "m.hlo").write_text(TEXT)
    picture = tmp_path / f"out.{kind}"
    assert main(["buffers", str(tmp_path / "m.hlo"), "--plot", str(picture)]) == 0
    out, err = capsys.readouterr()
    assert "optimal" in out and str(picture) in err
    head = picture.read_bytes()[:300]
    assert (b"<svg" in head or b"<?xml" in head) if kind == "svg" else head.startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["m.hlo", picture.name])


def test_a_picture_of_another_kind_or_without_a_folder_is_one_line(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    (tmp_path / "m.hlo").write_text(TEXT)
    assert main(["buffers", str(tmp_path / "m.hlo"), "--plot", "a.gif"]) == 2
    assert ".svg or .png" in capsys.readouterr().err
    assert main(["buffers", str(tmp_path / "m.hlo"), "--plot", str(tmp_path / "no/a.svg")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_kernels_are_counted_where_they_run_and_not_inside_fusions():
    text = """HloModule m
f { p = f32[4] parameter(0)
    n = f32[4] negate(p)
    ROOT s = f32[4] sine(n) }
c { p = (f32[4], s32[]) parameter(0)
    i = s32[] get-tuple-element(p), index=1
    k = s32[] constant(3)
    ROOT l = pred[] compare(i, k), direction=LT }
b { p = (f32[4], s32[]) parameter(0)
    x = f32[4] get-tuple-element(p), index=0
    i = s32[] get-tuple-element(p), index=1
    o = s32[] constant(1)
    y = f32[4] fusion(x), kind=kLoop, calls=f
    j = s32[] add(i, o)
    ROOT t = (f32[4], s32[]) tuple(y, j) }
ENTRY e { x = f32[4] parameter(0)
    z = s32[] constant(0)
    q = s32[] copy(z)
    t = (f32[4], s32[]) tuple(x, q)
    w = (f32[4], s32[]) while(t), condition=c, body=b
    ROOT r = f32[4] get-tuple-element(w), index=0 }
"""
    assert count_xla_kernels(parse_module(text)) == 4  # compare, fusion, add, copy
    passes = ("flatten", "untuple", "dce", "layouts")
    kernels, copies = count_steps(plan(parse_module(text), PlanOptions(PipelineOptions(passes))))
    assert (kernels, copies) == (3, 2)


def test_the_table_shows_the_figures():
    rows = [
        PlanFigures("one", 10, 0.001, 4, 0, 2, 256, 256, 128),
        PlanFigures("two", 10, 0.002, 1, 0, 2, 640, 512, None),
    ]
    text = table(rows)
    assert "geomean 1.000, worst 2.00" in text and "above 1.5: one 2.00" in text
    assert "geomean 2.000 of 1 programs" in text and ": 1 of 2" in text and "at most 0.200 ms" in text
    assert geomean([1, 4]) == pytest.approx(2)
    assert growth([(10, 1.0), (1000, 100.0)]) == pytest.approx(1)


def test_times_of_passes_and_json():
    rows = [PlanFigures("one", 10, 0.002, 4, 0, 2, 256, 256, 128, {"fuse": 0.001, "rest": 0.001})]
    assert [line.split() for line in pass_table(rows).splitlines()] == [
        ["pass", "ms", "share", "worst", "ms/instr", "of"],
        ["fuse", "1.0", "50.0%", "0.100", "one"],
        ["rest", "1.0", "50.0%", "0.100", "one"],
    ]
    read = json.loads(as_json(rows, [(10, 1.0), (100, 10.0)]))
    assert read["figures"]["kernels_and_copies_geomean"] == 2.0 and read["figures"]["growth"] == pytest.approx(1)
    assert read["programs"][0]["passes"] == {"fuse": 0.001, "rest": 0.001} and read["programs"][0]["memory"] == 2.0


def test_the_made_up_program_is_valid_and_of_its_size():
    module = parse_module(chain_text(200))
    assert len(module.entry.instructions) == 200 and np.prod(module.result_shape.dims) == 64


@each("jax_programs", 1, biggest=20_000, seed=1)
def test_a_program_is_measured(case):
    row = measure(case.path.parent, with_xla=False)
    assert row.name == case.name and row.kernels > 0 and row.xla_kernels > 0 and row.seconds > 0
    assert sum(row.passes.values()) == pytest.approx(row.seconds)
    assert row.memory is None and row.arena >= row.bound
