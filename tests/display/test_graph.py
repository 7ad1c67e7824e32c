"""Pictures of a module's data flow: what is in them, folding, colours, and both ways of drawing them."""

import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from ...cli.main import main
from ...display.graph_model import build_graph
from ...display.graph_theme import DARK, LIGHT, THEMES
from ...display.module_dot import draw, finish_svg, graph_to_dot
from ...display.module_graph import MOST_IN_ROW, _neighbours, _rows, module_to_svg
from ...formats.text.parser import parse_module

TEXT = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

fused {
  p = f32[4,8] parameter(0)
  q = f32[4,8] parameter(1)
  two = f32[] constant(2)
  twos = f32[4,8] broadcast(two), dimensions={}
  m = f32[4,8] multiply(p, twos)
  ROOT s = f32[4,8] subtract(m, q)
}

body {
  v = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(v), index=0
  x = f32[4,8] get-tuple-element(v), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4,8] tanh(x)
  ROOT t = (s32[], f32[4,8]) tuple(j, y)
}

cond {
  v = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(v), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT
}

ENTRY e {
  a = f32[4,8] parameter(0)
  k = f32[3] constant({1, 2.5, -inf})
  f = f32[4,8] fusion(a, a), kind=kLoop, calls=fused, metadata={op_name="jit(f)/x" source_file="f.py" source_line=7}
  z = s32[] constant(0)
  t = (s32[], f32[4,8]) tuple(z, f)
  w = (s32[], f32[4,8]) while(t), condition=cond, body=body
  g = f32[4,8] get-tuple-element(w), index=1
  zero = f32[] constant(0)
  r = f32[4] reduce(g, zero), dimensions={1}, to_apply=sum
  ROOT o = (f32[4], f32[3]) tuple(r, k)
}
"""


def graph(**options):
    return build_graph(parse_module(TEXT), **options)


def titles(found):
    return [node.lines[0] for node in found.nodes()]


def groups(found):
    """Every group with the ones inside it."""
    waiting = list(found.groups)
    for group in waiting:
        waiting += group.groups
    return waiting


def test_groups_hold_fusions_and_computations_where_they_are_called():
    found = graph()
    labels = {g.label.split("\n")[0]: g for g in groups(found)}
    assert list(labels) == ["ENTRY e", "fusion f kLoop", "condition cond", "body body"]
    assert [n.lines[0] for n in labels["fusion f kLoop"].nodes] == ["broadcast", "multiply", "subtract"]
    assert labels["fusion f kLoop"].label.endswith("64 FLOP, 384 B") and labels["fusion f kLoop"].kind == "fusion"
    assert "f.py:7 jit(f)/x" in labels["fusion f kLoop"].tip
    calls = [(e.source.lines[0], e.tip) for e in found.edges if e.is_call]
    assert calls == [("while", "calls condition cond"), ("while", "calls body body")] and found.folded == 0


def test_boxes_say_values_costs_and_the_whole_instruction():
    nodes = {n.tip.split(" = ")[0]: n for n in graph().nodes()}
    assert nodes["r"].lines == ("reduce (add)", "r f32[4]", "operand 1 = 0", "28 FLOP, 148 B")
    assert nodes["k"].lines[0] == "constant {1, 2.5, -inf}" and nodes["k"].kind == "input"
    assert nodes["twos"].lines[2] == "operand 0 = 2"  # and no bytes: inside a fusion it touches no memory
    assert nodes["l"].lines[0] == "compare LT" and nodes["x"].lines[0] == "get-tuple-element 1"
    assert "reduce(g, zero), dimensions={1}, to_apply=sum" in nodes["r"].tip
    assert [n.tip.split(" = ")[0] for n in graph().nodes() if n.is_root] == ["o", "s", "l", "t"]


def test_edges_lead_from_operands_through_fusions():
    found = graph()
    names = {n: n.tip.split(" = ")[0] for n in found.nodes()}
    edges = {(names[e.source], names[e.target]) for e in found.edges if not e.is_call}
    assert {("a", "m"), ("a", "s"), ("twos", "m"), ("m", "s"), ("s", "t"), ("z", "t"), ("w", "g")} <= edges
    assert len([e for e in found.edges if not e.is_call]) == 19 and len(edges) == 18  # two edges are named v to i


@pytest.mark.parametrize(("depth", "boxes", "folded"), [(0, 9, 17), (1, 20, 0), (8, 20, 0)])
def test_depth_folds_what_is_called(depth, boxes, folded):
    found = graph(depth=depth)
    assert (len(found.nodes()), found.folded) == (boxes, folded)
    if not depth:
        lines = {n.lines[0]: n.lines for n in found.nodes()}
        assert "→ 6 folded: fused" in lines["fusion"] and "→ 4 folded: cond" in lines["while"]


def chain(count):
    layers = "".join(
        f"  v{n} = f32[64] tanh({f'v{n - 1}' if n else 'p'}), "
        f'metadata={{op_name="jit(f)/layer_{n // 100}/tanh" source_file="f.py" source_line={n}}}\n'
        for n in range(count)
    )
    return parse_module(
        f"HloModule m\n\nENTRY e {{\n  p = f32[64] parameter(0)\n{layers}  ROOT r = f32[64] negate(v0)\n}}\n"
    )


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("limit", [2, 20, 250])
def test_a_large_computation_is_folded_into_runs_that_count(limit, nested):
    found = build_graph(chain(2000), limit=limit, nested=nested, fold="runs")
    nodes = found.nodes()
    counts = [int(re.fullmatch(r"(\d+) instructions folded", n.lines[0])[1]) for n in nodes]
    assert sum(counts) == found.folded == 2002 and 2 <= len(nodes) <= max(limit, 2)
    assert all(found.edges.index(e) >= 0 and nodes.index(e.source) != nodes.index(e.target) for e in found.edges)
    if limit == 250:
        assert nodes[0].lines[1:] == ("jit(f)/layer_0", "tanh 49, parameter 1", "3.14 k transc., 25.1 kB")
        assert "layer_0 … layer_1" in nodes[2].lines[1] and "… 38 more" in nodes[0].tip


def test_edges_between_runs_go_from_earlier_ones_to_later_ones():
    found = build_graph(chain(300), limit=60, fold="runs")
    order = {node: n for n, node in enumerate(found.nodes())}
    pairs = [(order[e.source], order[e.target]) for e in found.edges]
    assert pairs and all(a < b for a, b in pairs) and len(set(pairs)) == len(pairs)


def test_a_small_body_is_drawn_and_a_large_one_folded():
    found = graph(limit=16)
    assert len(found.nodes()) <= 16 and found.folded > 0 and "ENTRY e" in found.groups[0].label


def test_dot_text_has_every_box_and_edge_and_quotes_what_it_must():
    found = graph()
    text = graph_to_dot(found, "light")
    assert text.startswith('digraph "m" {') and text.count("subgraph cluster_") == len(groups(found))
    assert text.count("fillcolor=") == len(found.nodes()) + len(groups(found))
    assert text.count(" -> ") == len(found.edges) and text.count('class="iscall"') == 2
    assert text.count("penwidth") == 4 and "<B>reduce (add)</B><BR/>" in text
    call = r'''custom-call(), custom_call_target="<&\"\\>"'''
    quoted = graph_to_dot(build_graph(parse_module(f"HloModule m\n\nENTRY e {{\n  ROOT k = f32[] {call}\n}}\n")))
    assert 'custom_call_target=\\"<&' in quoted and '<B>custom-call &lt;&amp;"' in quoted
    without_labels = re.sub(r"label=<.*?>, tooltip", "", quoted)
    for line in without_labels.splitlines():
        assert len(re.sub(r"\\.", "", line).split('"')) % 2  # every quote is closed


@pytest.fixture
def module(tmp_path):
    (tmp_path / "m.hlo").write_text(TEXT)
    return str(tmp_path / "m.hlo")


def svg_of(data):
    root = ElementTree.fromstring(data)
    tips = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    return root, tips


def test_without_graphviz_an_svg_is_drawn_with_every_instruction(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["show", module, "--graph", str(tmp_path / "g.svg")]) == 0
    assert "without Graphviz's program `dot` on PATH" in " ".join(capsys.readouterr().err.split())
    root, tips = svg_of((tmp_path / "g.svg").read_bytes())
    for i in parse_module(TEXT).entry.instructions:
        assert i.name in ("zero",) or any(tip.startswith(f"{i.name} = ") for tip in tips)
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "ENTRY e" in texts and "→ fused" in texts and "prefers-color-scheme" in (tmp_path / "g.svg").read_text()


@pytest.mark.parametrize("theme", THEMES)
def test_colours_of_an_svg(theme):
    text = module_to_svg(parse_module(TEXT), theme)
    assert ("prefers-color-scheme:dark" in text) == (theme == "auto")
    page = DARK.page if theme == "dark" else LIGHT.page
    assert f'class="page" width="100%" height="100%" fill="{page}"' in text
    assert (DARK.boxes["fold"] in text) == (theme != "light") and (LIGHT.boxes["fold"] in text) == (theme != "dark")


def test_both_themes_colour_everything_and_are_readable():
    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for theme in (LIGHT, DARK):
        assert theme.boxes.keys() == LIGHT.boxes.keys() and theme.groups.keys() == LIGHT.groups.keys()
        for fill in (theme.page, *theme.boxes.values(), *theme.groups.values()):
            dark, light = sorted((luminance(fill), luminance(theme.text)))
            assert (light + 0.05) / (dark + 0.05) >= 7  # WCAG 2.1, level AAA


def program(folder, script):
    (folder / "dot").write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    (folder / "dot").chmod(0o755)
    return str(folder)


def test_other_pictures_are_drawn_by_graphviz(module, tmp_path, monkeypatch):
    drawing = "sys.stdout.buffer.write(sys.argv[1].encode() + b' of ' + sys.stdin.buffer.read()[:11])"
    monkeypatch.setenv("PATH", program(tmp_path, drawing))
    assert main(["show", module, "--graph", str(tmp_path / "g.PNG")]) == 0
    assert (tmp_path / "g.PNG").read_bytes() == b'-Tpng of digraph "m"'


@pytest.mark.parametrize(
    ("name", "script", "words"),
    [
        ("g.pdf", None, "needs Graphviz's program `dot`, which is not on PATH (install graphviz"),
        ("g.png", "sys.exit('syntax error in line 1')", "failed with status 1: syntax error in line 1"),
        ("g.png", "pass", "failed with status 0: no picture"),
        ("g.jpg", None, "ends in none of .svg, .png, .pdf, .dot"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_one_line(module, tmp_path, monkeypatch, capsys, name, script, words):
    monkeypatch.setenv("PATH", program(tmp_path, script) if script else str(tmp_path))
    assert main(["show", module, "--graph", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / name).exists()


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz (apt-get install graphviz)")
def test_graphviz_takes_the_text_and_its_svg_has_tooltips_and_colours(module, tmp_path):
    for ending, magic in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")):
        assert main(["show", module, "--graph", str(tmp_path / f"g.{ending}")]) == 0
        assert (tmp_path / f"g.{ending}").read_bytes().startswith(magic)
    _, tips = svg_of((tmp_path / "g.svg").read_bytes())
    assert sum(tip.startswith(("r = ", "k = ", "fusion", "f = ")) for tip in tips) == 3
    svg = draw(graph_to_dot(graph(), "dark"), "svg")
    assert b"prefers-color-scheme" in finish_svg(svg, "auto") and b"prefers" not in finish_svg(svg, "dark")
    assert DARK.boxes["fold"].encode() in svg and LIGHT.boxes["fold"].encode() not in svg
    finished = finish_svg(svg, "dark").decode()
    assert 'class="node k-fold"' in finished and 'class="cluster g-fusion"' in finished


def test_our_own_layout_puts_users_below_operands():
    found = graph(nested=False)
    assert [g.label for g in found.groups] == ["ENTRY e", "fused", "cond", "body"]
    for group in found.groups:
        operands, users = _neighbours(group, found)
        level = {node: n for n, row in enumerate(_rows(group, operands, users)) for node in row}
        assert level.keys() == set(group.nodes)
        assert all(level[o] < level[node] for node in group.nodes for o in operands[node])


def test_a_wide_layer_is_broken_and_odd_names_are_escaped():
    lines = "".join(f"  c{n} = f32[2] constant({{{n}, 0}})\n" for n in range(3 * MOST_IN_ROW))
    lines += '  k = f32[2] custom-call(c0), custom_call_target="<&\\">"\n'
    svg = module_to_svg(parse_module(f"HloModule m\n\nENTRY e {{\n{lines}  ROOT r = f32[2] add(c1, k)\n}}\n"))
    width = float(ElementTree.fromstring(svg).get("width"))
    assert width < (MOST_IN_ROW + 1) * 280


FRAMES = """HloModule m

FileNames
1 "f.py"

FileLocations
1 {file_name_id=1 line=12}

StackFrames
1 {file_location_id=1}

ENTRY e {
  x = f32[] parameter(0)
  ROOT a = f32[] negate(x), metadata={op_name="jit(f)/neg" stack_frame_id=1}
}
"""


def test_a_stack_frame_says_where_an_instruction_is_from():
    (tip,) = [node.tip for node in build_graph(parse_module(FRAMES)).nodes() if "negate" in node.lines[0]]
    assert "f.py:12 jit(f)/neg" in tip.splitlines()
