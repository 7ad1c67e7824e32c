"""Flame views of a report: an SVG that needs nothing else, with tooltips; and folded stacks for other tools.

A box is as wide as its time a run: the call; in it the entry, the steps and what is between them; in those the steps
inside of loops and branches; in a fusion its instructions, by their estimated shares (hatched).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from .groups import BETWEEN, ENTRY
from .report import Report, Step

WIDTH, ROW, MARGIN, HEAD = 1200, 20, 10, 44
"""Pixels: of the picture, of a row of boxes, around all of them, above them."""

CHARACTER = 6.6
"""Pixels that a character of a label takes at most."""

NARROWEST = 0.3
"""Pixels of the narrowest box that is drawn."""


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a run. time: nanoseconds. what: the kind of box, for its colour and tooltip."""

    name: str
    time: float
    what: str
    tip: str
    children: tuple[Box, ...] = ()


def boxes_of(report: Report) -> Box:
    """The call, with all that is in it."""
    steps, _ = _boxes(report.steps, 0, 0)
    inside = (
        Box(ENTRY, report.entry, "rest", "arguments and results of a call"),
        *steps,
        Box(BETWEEN, report.between, "rest", "the host program"),
    )
    whole = sum(box.time for box in inside)
    tip = f"{report.emitters}, {report.host_program} host program, {report.runs} runs"
    return Box(report.program, whole, "call", tip, inside)


def _boxes(steps: tuple[Step, ...], begin: int, depth: int) -> tuple[tuple[Box, ...], int]:
    """(the boxes of the steps at a depth from `begin` on, the number of the step behind them)."""
    found: list[Box] = []
    at = begin
    while at < len(steps) and steps[at].depth >= depth:
        step = steps[at]
        inner, at = _boxes(steps, at + 1, depth + 1)
        parts = tuple(_part(step, n) for n in range(len(step.parts)))
        found.append(Box(step.name, step.total, step.kind, tip_of(step), inner + parts))
    return tuple(found), at


def _part(step: Step, n: int) -> Box:
    part = step.parts[n]
    facts = part.facts
    share = f"about {part.share:.1%} of {step.name} by its cost, an estimate"
    words = (facts.opcode, share, facts.op_name, facts.source)
    return Box(facts.name, step.own * part.share, "part", "; ".join(filter(None, words)))


def tip_of(step: Step) -> str:
    """What is known of a step, in one line."""
    calls = f"{step.calls:g} calls, {step.mean / 1e3:.3f} us each"
    if step.iterations and step.calls:
        calls += f", {step.iterations / step.calls:g} iterations of {step.total / step.iterations / 1e3:.3f} us"
    stack = f"by {step.stack}" if step.stack else step.kind
    work = f"{step.bytes:g} bytes, {step.flops:g} FLOPs" if step.kind == "kernel" else ""
    return "; ".join(filter(None, (step.opcode, step.shape, calls, stack, work, step.op_name, step.source)))


# -- folded stacks ----------------------------------------------------------------------------------------------------
def folded(report: Report) -> str:
    """A line for each path of boxes with its own nanoseconds, as flamegraph.pl, inferno and speedscope read it."""
    return "".join(f"{path} {round(own)}\n" for path, own in _paths(boxes_of(report), "") if round(own) > 0)


def _paths(box: Box, before: str) -> Iterator[tuple[str, float]]:
    name = box.name.replace(";", ",").replace("\n", " ") + (" [estimate]" if box.what == "part" else "")
    path = f"{before};{name}" if before else name
    yield path, box.time - sum(child.time for child in box.children)
    for child in box.children:
        yield from _paths(child, path)


# -- SVG --------------------------------------------------------------------------------------------------------------
HUES: Mapping[str, tuple[int, int]] = {
    "call": (215, 15),
    "kernel": (28, 75),
    "copy": (190, 55),
    "while": (265, 45),
    "conditional": (320, 45),
    "rest": (215, 8),
    "part": (48, 70),
}
"""Kind of box → hue in degrees and saturation in percent."""


@dataclass(frozen=True, slots=True)
class _Placed:
    box: Box
    x: float
    width: float
    row: int


def svg(report: Report, theme: str = "auto") -> str:
    """The picture. theme: light, dark, auto for what the reader prefers, or page for an element of class flame in a
    page, which sets `color-scheme`.
    """
    root = boxes_of(report)
    placed = list(_placed(root, 0, MARGIN, WIDTH - 2 * MARGIN))
    rows = max(p.row for p in placed) + 1
    height = HEAD + rows * ROW + MARGIN
    title = f"{report.program}, {report.emitters}: {root.time / 1e3:.2f} us a call"
    body = "\n".join(_drawn(p, root.time) for p in placed)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label={quoteattr(_printable(title))} font-family="ui-monospace, monospace" font-size="11">\n'
        f"<style>{_style(theme)}</style>\n{_HATCH}\n"
        f'<rect class="page" width="{WIDTH}" height="{height}"/>\n'
        f'<text class="ink" x="{MARGIN}" y="20" font-size="14">{_plain(title)}</text>\n'
        f'<text class="ink" x="{MARGIN}" y="36">Width is time. Hatched boxes are estimates: shares of a fusion by its '
        f"instructions' cost. Point at a box for details.</text>\n{body}\n</svg>\n"
    )


_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6" stroke-width="1.5"/></pattern></defs>'
)


def _placed(box: Box, row: int, x: float, width: float) -> Iterator[_Placed]:
    if width < NARROWEST:
        return
    yield _Placed(box, x, width, row)
    inner = sum(child.time for child in box.children)
    scale = width / max(box.time, inner) if max(box.time, inner) > 0 else 0.0
    for child in box.children:
        yield from _placed(child, row + 1, x, child.time * scale)
        x += child.time * scale


def _drawn(p: _Placed, whole: float) -> str:
    share = p.box.time / whole if whole else 0.0
    tip = _plain(f"{p.box.name}: {p.box.time / 1e3:.3f} us a run, {share:.1%}") + "\n" + _plain(p.box.tip)
    y = HEAD + p.row * ROW
    shade = zlib.crc32(p.box.name.encode()) % 3  # neighbours differ, and equal names are equal in every picture
    place = f'x="{p.x:.2f}" y="{y}" width="{max(p.width - 0.5, NARROWEST):.2f}" height="{ROW - 1}" rx="2"'
    lines = [f"<g><title>{tip}</title>", f'<rect class="{p.box.what} s{shade}" {place}/>']
    if p.box.what == "part":
        lines.append(f'<rect fill="url(#hatch)" {place}/>')
    room = int((p.width - 6) / CHARACTER)
    if room >= 3:
        label = p.box.name if len(p.box.name) <= room else p.box.name[: room - 1] + "…"
        lines.append(f'<text class="ink" x="{p.x + 4:.2f}" y="{y + 14}">{_plain(label)}</text>')
    return "".join([*lines, "</g>"])


def _plain(text: str) -> str:
    return escape(_printable(text))


def _printable(text: str) -> str:
    """The text without unprintable characters, which XML forbids."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _style(theme: str) -> str:
    if theme == "page":
        return "".join(f".flame {what}{{{name}:light-dark({a},{b})}}" for what, name, a, b in _colours()) + _NO_POINTER
    light = "".join(f"{what}{{{name}:{colour}}}" for what, name, colour, _ in _colours()) + _NO_POINTER
    dark = "".join(f"{what}{{{name}:{colour}}}" for what, name, _, colour in _colours())
    if theme == "auto":
        return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return dark + _NO_POINTER if theme == "dark" else light


_NO_POINTER = ".ink{pointer-events:none}"


def _colours() -> Iterator[tuple[str, str, str, str]]:
    """(selector, property, light, dark)."""
    yield ".page", "fill", "#ffffff", "#14181d"
    yield ".ink", "fill", "#1b1f24", "#e6edf3"
    yield ".hatch", "stroke", "#ffffffa0", "#ffffff1c"
    for what, (hue, saturation) in HUES.items():
        for shade in range(3):
            light, dark = 76 + 4 * shade, 28 + 4 * shade
            yield f".{what}.s{shade}", "fill", f"hsl({hue},{saturation}%,{light}%)", f"hsl({hue},{saturation}%,{dark}%)"
