"""`testbed show`, the costs behind it (against XLA's), and the picture."""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from ...cli.main import main
from ...cli.module_dot import module_to_dot
from ...cli.module_graph import MOST_IN_ROW, module_to_svg
from ...formats.text.parser import parse_module
from ...hlo.analysis.cost_analysis import analyse
from ..support.corpus import sample

LOOP = """HloModule loop

body {
  p = (s32[], f32[4,8]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4,8]{1,0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4,8]{1,0} tanh(x)
  ROOT t = (s32[], f32[4,8]{1,0}) tuple(j, y)
}

cond {
  p = (s32[], f32[4,8]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  a = f32[4,16]{1,0} parameter(0)
  b = f32[16,8]{1,0} parameter(1)
  d = f32[4,8]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = s32[] constant(0)
  t = (s32[], f32[4,8]{1,0}) tuple(z, d)
  w = (s32[], f32[4,8]{1,0}) while(t), condition=cond, body=body
  ROOT r = f32[4,8]{1,0} get-tuple-element(w), index=1
}
"""


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.hlo"
    path.write_text(LOOP)
    return path


def test_show_prints_counts_costs_and_buffers(loop, capsys):
    assert main(["show", str(loop)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("loop: 18 instructions in 3 computations, 7 in the entry e\n")
    opcodes = next(line for line in out.splitlines() if line.startswith("opcodes ")).removeprefix("opcodes").strip()
    assert {"get-tuple-element 4", "parameter 4", "constant 3", "tuple 2", "dot 1"} <= set(opcodes.split(", "))
    assert "cost        1.03 k flops, 32 transcendentals, " in out
    first = out.split("instructions by flops\n")[1].splitlines()[1]
    assert first.split()[:2] == ["1.02", "k"] and "d = f32[4,8]{1,0} dot in e  (line 23)" in first
    assert "512  b = f32[16,8]{1,0} parameter in e" in out.split("largest buffers")[1]


def test_show_orders_by_what_is_asked(loop, capsys):
    assert main(["show", str(loop), "--by", "transcendentals", "--top", "1"]) == 0
    rows = capsys.readouterr().out.split("instructions by transcendentals\n")[1].split("\n\n")[0].splitlines()
    assert len(rows) == 2 and "tanh in body" in rows[1]


def test_show_writes_json_of_every_instruction(loop, tmp_path):
    assert main(["show", str(loop), "--json", str(tmp_path / "s.json")]) == 0
    report = json.loads((tmp_path / "s.json").read_text())
    assert len(report["instructions"]) == 18 and report["opcodes"]["dot"] == 1
    dot = next(r for r in report["instructions"] if r["opcode"] == "dot")
    assert (dot["flops"], dot["bytes"]) == (2 * 4 * 8 * 16, 4 * (4 * 16 + 16 * 8 + 4 * 8))


@pytest.mark.parametrize(("option", "name"), [("--json", "file"), ("--graph", "f.svg"), ("--graph", "f.dot")])
def test_an_unwritable_file_is_one_line(loop, tmp_path, capsys, option, name):
    assert main(["show", str(loop), option, str(tmp_path / "no/such" / name)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_graph_is_svg_with_every_instruction(loop, tmp_path):
    assert main(["show", str(loop), "--graph", str(tmp_path / "g.svg")]) == 0
    text = (tmp_path / "g.svg").read_text()
    root = ElementTree.fromstring(text)
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert root.tag.endswith("svg") and len(titles) == 1 + 18
    assert any("dot(a, b)" in t for t in titles) and "ENTRY e" in text


def test_dot_has_every_computation_node_and_edge(loop, tmp_path):
    assert main(["show", str(loop), "--graph", str(tmp_path / "g.DOT")]) == 0
    text = (tmp_path / "g.DOT").read_text()
    assert text.startswith('digraph "loop" {') and text.count("subgraph cluster_") == 3
    assert 'label="ENTRY e"' in text and text.count("fillcolor=") == 18 and text.count("penwidth=3") == 3
    assert 'label="dot\\nd f32[4,8]"' in text and text.count(" -> ") == 16
    call = r'''custom-call(), custom_call_target="<&\"\\>"'''
    quoted = module_to_dot(parse_module(f"HloModule m\n\nENTRY e {{\n  ROOT k = f32[] {call}\n}}\n"))
    assert 'custom_call_target=\\"<&' in quoted
    for line in quoted.splitlines():
        assert len(re.sub(r"\\.", "", line).split('"')) % 2  # every quote is closed


def program(folder, script):
    (folder / "dot").write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    (folder / "dot").chmod(0o755)
    return str(folder)


def test_other_pictures_are_drawn_by_graphviz(loop, tmp_path, monkeypatch):
    draw = "sys.stdout.buffer.write(sys.argv[1].encode() + b' of ' + sys.stdin.buffer.read()[:14])"
    monkeypatch.setenv("PATH", program(tmp_path, draw))
    assert main(["show", str(loop), "--graph", str(tmp_path / "g.png")]) == 0
    assert (tmp_path / "g.png").read_bytes() == b'-Tpng of digraph "loop"'


@pytest.mark.parametrize(
    ("name", "script", "words"),
    [
        ("g.pdf", None, "needs Graphviz's program `dot`, which is not on PATH (install graphviz"),
        ("g.png", "sys.exit('syntax error in line 1')", "failed with status 1: syntax error in line 1"),
        ("g.png", "pass", "failed with status 0: no picture"),
        ("g.jpg", None, "ends in none of .svg, .dot, .pdf, .png"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_one_line(loop, tmp_path, monkeypatch, capsys, name, script, words):
    monkeypatch.setenv("PATH", program(tmp_path, script) if script else str(tmp_path))
    assert main(["show", str(loop), "--graph", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / name).exists()


def test_the_graph_puts_users_below_operands_and_nothing_on_top_of_another():
    module = parse_module(LOOP)
    from ...cli.module_graph import _rows

    for computation in module.computations:
        level = {i: n for n, row in enumerate(_rows(computation)) for i in row}
        assert all(level[o] < level[i] for i in computation.instructions for o in i.operands)


def test_a_wide_layer_is_broken_and_odd_names_are_escaped():
    lines = "".join(f"  c{n} = f32[] constant({n})\n" for n in range(3 * MOST_IN_ROW))
    lines += '  k = f32[] custom-call(c0), custom_call_target="<&\\">"\n'
    svg = module_to_svg(parse_module(f"HloModule m\n\nENTRY e {{\n{lines}  ROOT r = f32[] add(c1, k)\n}}\n"))
    width = float(ElementTree.fromstring(svg).get("width"))
    assert width < (MOST_IN_ROW + 1) * 220


def test_costs_follow_the_callee():
    costs = analyse(parse_module(LOOP))
    by_name = {i.name: c for i, c in costs.costs.items()}
    assert by_name["w"].transcendentals == 32 and by_name["w"].flops == 2  # the counter's add, the compare
    assert by_name["a"].bytes == 0


@pytest.mark.parametrize(
    ("pattern", "count"), [("op_cases/*.hlo", 60), ("xla_modules/*.hlo", 60), ("jax_programs/*/xla_optimized.hlo", 6)]
)
def test_costs_are_those_that_xla_counts(pattern, count):
    jax = pytest.importorskip("jax", reason="needs jax (./testbed setup --xla)")
    from jaxlib import _hlo, _jax

    client = jax.devices("cpu")[0].client
    for path in sample(pattern, count, seed=3):
        text = path.read_text()
        if any(word in text for word in ("custom-call", " scan(", "opt-barrier(", "set-dimension-size(", "-start(")):
            continue  # XLA counts -1, or the value depends on the back end
        module = _hlo.hlo_module_from_text(text)
        want = _jax.hlo_module_cost_analysis(client, module)
        ours = parse_module(module.to_string())
        cost = analyse(ours).of_computation(ours.entry)
        found = (cost.flops, cost.transcendentals, cost.bytes)
        keys = ("flops", "transcendentals", "bytes accessed")
        assert found == pytest.approx([want.get(k, 0.0) for k in keys], rel=1e-5), path
