"""Large modules by the scopes of JAX's op_names and by kernels, and the page that opens what is clicked."""

import json
import re

import pytest

from ...cli.main import main
from ...display.graph_folds import scope_of
from ...display.graph_model import build_graph
from ...formats.text.parser import parse_module
from ...tools.browser import Browser, chromium

LAYERS = 40


def network(layers=LAYERS):
    """Layers of a product, a sum and a maximum, forward and backward, each in a scope of JAX's."""
    rows, last = [], "p"
    for way in ("jvp", "transpose(jvp"):
        for n in range(layers):
            name = f"jit(step)/{way}(layer_{n}){')' if way != 'jvp' else ''}/mlp"
            for op, kind in (("multiply", "mul"), ("add", "add"), ("maximum", "max")):
                place = f'source_file="net.py" source_line={n + 1}'
                rows.append(
                    f'  {op}.{len(rows)} = f32[64] {op}({last}, p), metadata={{op_name="{name}/{kind}" {place}}}'
                )
                last = f"{op}.{len(rows) - 1}"
    return (
        "HloModule net\n\nENTRY e {\n  p = f32[64] parameter(0)\n"
        + "\n".join(rows)
        + f"\n  ROOT r = f32[64] negate({last})\n}}\n"
    )


@pytest.mark.parametrize("name, scopes", [
    ("jit(f)/layer_0/mul", ("jit(f)", "layer_0")),
    ("jit(f)/transpose(jvp(a/b))/mul", ("jit(f)", "transpose(jvp(a/b))")),
    ("mul", ()),
    ("", ()),
])  # fmt: skip
def test_scopes_end_before_the_primitive(name, scopes):
    assert scope_of(name) == scopes


def titles(found):
    return [node.lines[0] for node in found.nodes()]


def test_a_large_module_is_folded_by_scopes():
    module = parse_module(network())
    found = build_graph(module, limit=1000, fold="scopes", level=2)
    assert len(found.nodes()) == 2 * LAYERS
    assert titles(found)[:2] == ["jit(step)/jvp(layer_0)", "jit(step)/jvp(layer_1)"]
    assert {n.lines[1] for n in found.nodes()[1:-1]} == {"3 instructions folded"}
    assert found.folded == len(module.entry.instructions)
    pairs = [(e.source.lines[0], e.target.lines[0]) for e in found.edges]
    assert ("jit(step)/jvp(layer_0)", "jit(step)/jvp(layer_1)") in pairs


def test_without_a_level_scopes_are_as_deep_as_there_is_room():
    module = parse_module(network(4))
    deep, flat = (titles(build_graph(module, limit=limit)) for limit in (24, 10))
    assert "jit(step)/jvp(layer_0)/mlp" in deep or "jit(step)/jvp(layer_0)" in deep
    assert flat and all("instructions folded" in t for t in flat)  # one scope would remain: runs say more


def test_what_loops_run_is_drawn_beside_scopes():
    text = (
        network()
        .replace(
            "ENTRY",
            "body { v = f32[64] parameter(0)\n  ROOT b = f32[64] tanh(v) }\ncond { v = f32[64] parameter(0)\n"
            "  ROOT c = pred[] constant(false) }\nENTRY",
        )
        .replace("  ROOT r = f32[64] negate(", "  ROOT r = f32[64] while(")
        .replace(")\n}\n", "), condition=cond, body=body\n}\n")
    )
    found = build_graph(parse_module(text), fold="scopes", level=1)
    assert {"while", "tanh"} <= set(titles(found)) and any(e.is_call for e in found.edges)


def test_kernels_are_boxes(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(network(8))
    assert main(["show", str(tmp_path / "m.hlo"), "--graph", str(tmp_path / "k.dot"), "--fold", "kernels"]) == 0
    text = (tmp_path / "k.dot").read_text()
    assert "fusion" in text and text.count(" [label=") < 10 and "multiply.3" not in re.sub('tooltip="[^"]*"', "", text)


@pytest.fixture
def page(tmp_path, capsys):
    module, profile, page = (str(tmp_path / name) for name in ("m.hlo", "p.json", "m.html"))
    (tmp_path / "m.hlo").write_text(network(8).replace("jit(step)", "jit(<b>)"))
    assert main(["profile", module, "--seed", "1", "--iterations", "2", "--json", profile]) == 0
    assert main(["show", module, "--graph", page, "--profile", profile]) == 0
    return tmp_path / "m.html"


def test_the_page_has_kernels_with_forms_and_times(page):
    text = page.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    (fusion,) = [u for u in data["units"] if u["kernel"]]
    assert fusion["path"][0] == "jit(<b>)" and "<b>" not in text.replace(json.dumps("<b>"), "")
    assert set(fusion["forms"]) == {"legacy", "mlir"} and fusion["us"] > 0 and 0 < fusion["share"] <= 1
    assert f'id="k-{fusion["kernel"]}"' in text and len(fusion["inner"]) == 8 * 6 + 1
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert data["edges"] and all(a < b for a, b in data["edges"])


def test_a_profile_needs_a_page(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(network(2))
    assert main(["show", str(tmp_path / "m.hlo"), "--profile", str(tmp_path / "p.json")]) == 2
    assert "--profile is for --graph OUT.html" in capsys.readouterr().err


@pytest.mark.skipif(chromium() is None, reason="needs chromium (Debian: apt-get install chromium)")
def test_clicks_and_search_in_a_browser(tmp_path):
    module, page = tmp_path / "m.hlo", tmp_path / "m.html"
    module.write_text(sorts(30))
    assert main(["show", str(module), "--graph", str(page)]) == 0
    with Browser() as browser:
        browser.open(page)
        boxes = "[...document.querySelectorAll('.box')].map((b) => b.dataset.name)"
        browser.value(
            "(() => { const l = document.getElementById('level'); l.value = 1;l.dispatchEvent(new Event('input')); })()"
        )
        before = browser.value(boxes)
        assert "jit(f)/layer_7" in before and len(before) <= 60
        browser.value(
            "document.querySelector('.box[data-name=\"jit(f)/layer_7\"]').dispatchEvent(new MouseEvent('click'))"
        )
        opened = browser.value(boxes)
        assert "jit(f)/layer_7" not in opened and len(opened) > len(before) - 1
        browser.value(
            "(() => { const t = document.getElementById('text'); t.value = 'net.py:12';"
            "t.dispatchEvent(new Event('input')); })()"
        )
        assert browser.value("document.querySelectorAll('#found button').length") >= 1
        browser.value("document.querySelector('#found button').click()")
        assert "net.py:12" in browser.value("document.getElementById('details').textContent")
        link = browser.value("document.querySelector('#details a').getAttribute('href')")
        assert browser.value(f"document.getElementById({json.dumps(link[1:])}) !== null")
        browser.value("document.getElementById('fold').click()")
        assert browser.value("document.querySelectorAll('.box').length") == 1
        assert browser.problems == [] and browser.requests == [page.resolve().as_uri()]


def sorts(layers):
    """Each layer is a kernel of its own: sorts are fused with nothing."""
    head = "HloModule s\nless { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    head += " ROOT c = pred[] compare(a, b), direction=LT }\n"
    rows = [
        f"  s.{n} = f32[64] sort({f's.{n - 1}' if n else 'p'}), dimensions={{0}}, to_apply=less, "
        f'metadata={{op_name="jit(f)/layer_{n}/sort" source_file="net.py" source_line={n}}}\n'
        f"  n.{n} = f32[64] negate(s.{n})"
        for n in range(layers)
    ]
    rows = [row.replace(f"s.{n - 1})", f"n.{n - 1})") for n, row in enumerate(rows)]
    return (
        head
        + "ENTRY e {\n  p = f32[64] parameter(0)\n"
        + "\n".join(rows)
        + f"\n  ROOT r = f32[64] negate(n.{layers - 1})\n}}\n"
    )
