"""Pictures and pages of values, as notebooks ask for them. The pictures of modules need no Graphviz."""

import base64
import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

import testbed

from ...display.graph_theme import LIMIT
from ...planning.buffer_report import report_buffers

TEXT = """HloModule m
add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[4,8] parameter(0), metadata={op_name="<b>&"}
  z = f32[] constant(0)
  r = f32[4] reduce(x, z), dimensions={1}, to_apply=add
  s = f32[4] sort(r), dimensions={0}, to_apply={ p = f32[] parameter(0)\n q = f32[] parameter(1)
    ROOT c = pred[] compare(p, q), direction=LT }
  b = f32[4,8] broadcast(s), dimensions={0}
  ROOT y = f32[4,8] divide(x, b)
}
"""
MODULE = testbed.load(TEXT)
EXECUTABLE = testbed.compile(MODULE)
VALUES = {
    "module": MODULE,
    "computation": MODULE.entry,
    "plan": EXECUTABLE.plan,
    "buffers": report_buffers(EXECUTABLE.plan),
    "executable": EXECUTABLE,
}


class Tags(HTMLParser):
    """Checks that tags nest, and collects the names and the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.words = [], set(), ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture(autouse=True)
def no_programs(monkeypatch):
    monkeypatch.setenv("PATH", "")


@pytest.mark.parametrize("name", ["module", "computation"])
def test_the_picture_of_a_module_is_svg_without_graphviz(name):
    picture = VALUES[name]._repr_svg_()
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg") and {"reduce (add)", "sort (compare LT)"} <= set(
        re.findall(r">(\w+ \([^)<]+\))<", picture)
    )
    assert picture == testbed.to_svg(VALUES[name])


@pytest.mark.parametrize("name", ["plan", "buffers", "executable"])
def test_the_picture_of_buffers_is_the_arena_over_time(name):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    root = ElementTree.fromstring(VALUES[name]._repr_svg_())
    assert root.tag.endswith("svg")


PAGES = {
    "module": ["module m: 12 instructions in 3 computations", "reduce", 'op_name="<b>&"', "ROOT y = f32[4,8]"],
    "computation": ["computation e: 6 instructions", "x", "128", "ROOT y"],
    "plan": ["plan of m: ", " kernels", "sort", "arena of ", "HloModule m"],
    "buffers": ["buffers of m", "parameter", "live", "lower bound"],
    "executable": ["m(x: f32[4,8]) -> f32[4,8]", "stack", "mlir", "codegen", "Arguments:"],
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_tables_the_picture_and_the_text(name):
    page = VALUES[name]._repr_html_()
    tags = Tags(page)
    assert page == testbed.to_html(VALUES[name]) and {"table", "details"} <= tags.seen
    for words in PAGES[name]:
        assert words in tags.words
    for picture in re.findall(r"base64,([^\"]+)", page):
        assert ElementTree.fromstring(base64.b64decode(picture)).tag.endswith("svg")
    assert ("img" in tags.seen) == (name != "executable") or "matplotlib" in tags.words
    assert "<style" not in page and "<script" not in page


def test_a_large_module_is_folded():
    rows = "".join(f"  n{k} = f32[4] negate({f'n{k - 1}' if k else 'x'})\n" for k in range(2 * LIMIT))
    module = testbed.parse(f"HloModule large\nENTRY e {{\n  x = f32[4] parameter(0)\n{rows}}}")
    counts = re.findall(r">(\d+) instructions folded<", module._repr_svg_())
    assert sum(map(int, counts)) == 2 * LIMIT + 1 and len(counts) <= LIMIT
    assert "img" in Tags(module._repr_html_()).seen


def test_without_matplotlib_the_page_says_so(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert EXECUTABLE.plan._repr_svg_() is None
    assert "No picture: the picture of buffers needs matplotlib" in Tags(EXECUTABLE.plan._repr_html_()).words


def test_other_values_have_no_picture():
    with pytest.raises(testbed.InputError, match=r"int has no picture .give one of Module, Computation, Plan"):
        testbed.to_svg(3)
