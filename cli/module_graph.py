"""The data flow of a module as SVG, one box per computation. The layout is computed here, without Graphviz.

Nodes are layered by longest path. Within a layer they are ordered by the mean position of their neighbours, in a few
sweeps. The time is linear in the number of instructions.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ..formats.text.printer import print_instruction
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.shapes import shape_to_text

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 38, 16, 34, 24
SWEEPS = 4
MOST_IN_ROW = 24
"""Nodes per row. A longer layer continues in the next row."""

COLOURS = {
    **dict.fromkeys((Op.PARAMETER, Op.CONSTANT, Op.IOTA), "#fff4d6"),
    **dict.fromkeys((Op.DOT, Op.CONVOLUTION, Op.FFT, Op.CHOLESKY, Op.TRIANGULAR_SOLVE), "#d6e6ff"),
    **dict.fromkeys((Op.REDUCE, Op.REDUCE_WINDOW, Op.SORT, Op.SCATTER, Op.SELECT_AND_SCATTER), "#e2d9f7"),
    **dict.fromkeys((Op.WHILE, Op.CONDITIONAL, Op.CALL, Op.FUSION, Op.CUSTOM_CALL), "#d9f2dd"),
}
PLAIN = "#f4f4f4"


def module_to_svg(module: Module) -> str:
    """The whole module: the entry computation first, then the others in the order of their first calls."""
    parts, top, width = [], MARGIN, 0.0
    for computation in computations_by_call(module):
        body, wide, tall = _draw(computation, computation is module.entry)
        parts.append(f'<g transform="translate({MARGIN},{top})">{body}</g>')
        top, width = top + int(tall) + MARGIN, max(width, wide)
    size = f'width="{width + 2 * MARGIN:.0f}" height="{top}"'
    style = (
        "<style>text{font:11px monospace}.h{font:bold 13px sans-serif}rect{stroke:#888}path{fill:none;stroke:#999}"
        "</style>"
    )
    arrow = (
        '<defs><marker id="a" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0,0L6,3L0,6z" style="fill:#999;stroke:none"/></marker></defs>'
    )
    title = f"<title>{escape(module.name)}</title>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{title}{style}{arrow}{"".join(parts)}</svg>\n'


def computations_by_call(module: Module) -> Iterable[Computation]:
    """The entry first, then each computation in the order of its first call."""
    order: dict[Computation, None] = {}
    stack = [module.entry]
    while stack:
        computation = stack.pop()
        if computation not in order:
            order[computation] = None
            stack += [c for i in reversed(computation.instructions) for c in reversed(i.called())]
    return [*order, *(c for c in module.computations if c not in order)]


# -- layout -----------------------------------------------------------------------------------------------------------
def _rows(computation: Computation) -> list[list[Instruction]]:
    """Instructions by layer. Parameters and constants are directly above their first user."""
    level: dict[Instruction, int] = {}
    for i in computation.instructions:
        level[i] = max((level[o] + 1 for o in i.operands), default=0)
    for i in reversed(computation.instructions):
        users = computation.users[i]
        if not i.operands and users:
            level[i] = max(0, min(level[u] for u in users) - 1)
    rows: list[list[Instruction]] = [[] for _ in range(max(level.values()) + 1)]
    for i in computation.instructions:
        rows[level[i]].append(i)
    for sweep in range(SWEEPS):
        _sweep(rows, computation, downwards=sweep % 2 == 0)
    return [row[n : n + MOST_IN_ROW] for row in rows for n in range(0, len(row), MOST_IN_ROW)]


def _sweep(rows: list[list[Instruction]], computation: Computation, downwards: bool) -> None:
    """Order each row by the mean position of the neighbours in the rows already visited."""
    place: dict[Instruction, float] = {}
    for row in rows if downwards else reversed(rows):
        here = {i: (n + 0.5) / len(row) for n, i in enumerate(row)}
        for i in row:
            near = i.operands if downwards else computation.users[i]
            known = [place[n] for n in near if n in place]
            if known:
                here[i] = sum(known) / len(known)
        row.sort(key=here.__getitem__)
        place |= {i: (n + 0.5) / len(row) for n, i in enumerate(row)}


# -- drawing ----------------------------------------------------------------------------------------------------------
def _draw(computation: Computation, is_entry: bool) -> tuple[str, float, float]:
    """The SVG of one computation with its origin at the top left, its width and its height."""
    rows = _rows(computation)
    width = max(len(r) for r in rows) * (WIDTH + GAP_X) + GAP_X
    height = len(rows) * (HEIGHT + GAP_Y) + GAP_Y
    place: dict[Instruction, tuple[float, float]] = {}
    for r, row in enumerate(rows):
        left = (width - len(row) * (WIDTH + GAP_X) + GAP_X) / 2
        for n, i in enumerate(row):
            place[i] = (left + n * (WIDTH + GAP_X), GAP_Y + r * (HEIGHT + GAP_Y))
    name = ("ENTRY " if is_entry else "") + computation.name
    frame = f'<rect width="{width}" height="{height}" style="fill:none"/>'
    heading = f'<text class="h" x="8" y="18">{escape(name)}</text>'
    edges = (_edge(place[o], place[i]) for i in computation.instructions for o in dict.fromkeys(i.operands))
    nodes = (_node(i, place[i], i is computation.root) for i in computation.instructions)
    return frame + heading + "".join(edges) + "".join(nodes), width, height


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1, x2, y2 = start[0] + WIDTH / 2, start[1] + HEIGHT, end[0] + WIDTH / 2, end[1]
    bend = max(abs(y2 - y1) / 2, GAP_Y / 2)
    curve = f"M{x1:.0f},{y1:.0f}C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"
    return f'<path d="{curve}" marker-end="url(#a)"/>'


def _node(i: Instruction, place: tuple[float, float], is_root: bool) -> str:
    x, y = place
    weight = 3 if is_root else 1
    text = "".join(f'<text x="6" y="{15 + 15 * n}">{escape(line)}</text>' for n, line in enumerate(label_of(i)))
    box = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{colour_of(i)}" stroke-width="{weight}"/>'
    return f'<g transform="translate({x:.0f},{y:.0f})"><title>{escape(tip_of(i))}</title>{box}{text}</g>'


# -- what a node says, in any format ----------------------------------------------------------------------------------
def label_of(i: Instruction) -> tuple[str, str]:
    """The two lines in the box."""
    calls = "".join(f" → {c.name}" for c in i.called())
    return _cut(f"{i.opcode.value}{calls}", 28), _cut(f"{i.name} {shape_to_text(i.shape, layouts=False)}", 28)


def tip_of(i: Instruction) -> str:
    """The instruction as text, without the elements of a large constant."""
    is_large = i.opcode is Op.CONSTANT and i.shape.size > 20
    return _cut(f"{i.name} = {i.shape} constant({{...}})" if is_large else print_instruction(i), 600)


def colour_of(i: Instruction) -> str:
    return COLOURS.get(i.opcode, PLAIN)


def _cut(text: str, most: int) -> str:
    """The text without unprintable characters, which XML forbids, truncated to `most` characters."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= most else clean[: most - 1] + "…"
