"""The plot of the arena: labels stay in their rectangles, and the largest slices are listed."""

import pytest

from ...cli.main import main
from ...display.buffers_plot import LISTED, bytes_text, figure_of, rectangles, shortened
from ...display.graph_theme import DARK, LIGHT
from ...formats.text.parser import parse_module
from ...planning.buffer_report import report_buffers
from ...planning.planner import plan


def program(count):
    """A chain of products that all stay alive until the way back reads them, like layers in training."""
    wide = [8 + 24 * (n % 7) for n in range(count + 1)]
    lines = [f"  layer0 = f32[8,{wide[0]}] parameter(0)"]
    forward, backward = ("lhs_contracting_dims={1}, rhs_contracting_dims={" + d + "}" for d in "01")
    for n in range(1, count + 1):
        name = f"a_product_with_a_long_name_{n}"
        lines += [
            f"  w{n} = f32[{wide[n - 1]},{wide[n]}] parameter({n})",
            f"  {name} = f32[8,{wide[n]}] dot(layer{n - 1}, w{n}), {forward}",
            f"  layer{n} = f32[8,{wide[n]}] tanh({name})",
        ]
    back = f"layer{count}"
    for n in range(count, 0, -1):
        lines += [
            f"  b{n} = f32[8,{wide[n - 1]}] dot({back}, w{n}), {backward}",
            f"  g{n} = f32[8,{wide[n - 1]}] multiply(b{n}, layer{n - 1})",
        ]
        back = f"g{n}"
    lines[-1] = lines[-1].replace("  g1", "  ROOT g1")
    return "HloModule m\n\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("count", [3, 40])
def test_labels_stay_inside_and_the_largest_slices_are_listed(count, theme):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    report = report_buffers(plan(parse_module(program(count))))
    figure = figure_of(report, theme)
    figure.canvas.draw()
    axes = figure.axes[0]
    renderer = figure.canvas.get_renderer()
    boxes = [patch.get_window_extent(renderer) for patch in axes.patches]
    assert len(boxes) == len(rectangles(report)) > count / 2
    for label in axes.texts:
        box = label.get_window_extent(renderer)
        inside = [b for b in boxes if b.x0 <= box.x0 and box.x1 <= b.x1 and b.y0 <= box.y0 and box.y1 <= b.y1]
        assert inside, label.get_text()
    assert axes.texts or count > 3
    legend = axes.get_legend()
    rows = [text.get_text() for text in legend.get_texts()]
    assert rows[0] == f"arena: {bytes_text(report.arena)}" and len(rows) <= LISTED + 3
    assert rows[-1].endswith(" smaller slices") == (count == 40)
    frame = legend.get_window_extent(renderer)
    assert frame.x0 > axes.get_window_extent(renderer).x1 and frame.x1 <= figure.bbox.x1 and frame.y0 >= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_command_draws_both_themes(theme, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    (tmp_path / "m.hlo").write_text(program(3))
    for ending, magic in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        target = tmp_path / f"b.{ending}"
        assert main(["buffers", str(tmp_path / "m.hlo"), "--plot", str(target), "--theme", theme]) == 0
        assert target.read_bytes().startswith(magic)
    text = (tmp_path / "b.svg").read_text()
    assert (LIGHT if theme == "light" else DARK).page in text and "bytes alive" in text


def test_names_are_shortened_in_the_middle():
    assert shortened("abc", 3) == "abc" and shortened("a_long_name.17", 10) == "a_long….17"
    assert [bytes_text(n) for n in (0, 999, 1536, 2.5e9)] == ["0 B", "999 B", "1.54 kB", "2.5 GB"]
