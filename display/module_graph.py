"""A graph as SVG, laid out here, for machines without Graphviz: one frame a computation, no edges between frames.

Boxes are layered by longest path. Within a layer they are ordered by the mean position of their neighbours, in a few
sweeps. The time is linear in the number of boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ..hlo.ir import Module
from .graph_model import Graph, Group, Node, build_graph
from .graph_theme import DEPTH, LIMIT, Theme, dark_css, theme_of

WIDTH, GAP_X, GAP_Y, MARGIN = 250, 16, 34, 24
TITLE, LINE = 18, 13
"""Heights of the first line of a box and of each other."""
SWEEPS = 4
MOST_IN_ROW = 24
"""Boxes per row. A longer layer continues in the next row."""

Neighbours = Mapping[Node, Sequence[Node]]


def module_to_svg(module: Module, theme: str = "auto", *, depth: int = DEPTH, limit: int = LIMIT) -> str:
    """The module: the entry computation first, then the others in the order of their depth."""
    return graph_to_svg(build_graph(module, depth=depth, limit=limit, nested=False), theme)


def graph_to_svg(graph: Graph, theme_name: str) -> str:
    """The SVG of a graph whose groups hold no groups."""
    theme = theme_of(theme_name)
    parts, top, width = [], MARGIN, 0.0
    for group in graph.groups:
        body, wide, tall = _draw(group, graph, theme)
        parts.append(f'<g transform="translate({MARGIN},{top})">{body}</g>')
        top, width = top + int(tall) + MARGIN, max(width, wide)
    size = f'width="{width + 2 * MARGIN:.0f}" height="{top}"'
    css = (
        f"text{{font:11px sans-serif;fill:{theme.text}}}.t{{font-weight:bold}}.h{{font-size:13px}}"
        f"rect{{stroke:{theme.line}}}.edge path{{fill:none;stroke:{theme.line}}}.edge polygon{{fill:{theme.line}}}"
    )
    dark = dark_css().replace(".graph>polygon,", "") if theme_name == "auto" else ""
    arrow = (
        '<defs><marker id="a" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<g class="edge"><polygon points="0,0 6,3 0,6"/></g></marker></defs>'
    )
    page = f'<rect class="page" width="100%" height="100%" fill="{theme.page}" style="stroke:none"/>'
    head = f"<title>{escape(graph.name)}</title><style>{css}{dark}</style>{arrow}{page}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{head}{"".join(parts)}</svg>\n'


# -- layout -----------------------------------------------------------------------------------------------------------
def _neighbours(group: Group, graph: Graph) -> tuple[dict[Node, list[Node]], dict[Node, list[Node]]]:
    """Operands and users of each box, within the group."""
    operands: dict[Node, list[Node]] = {node: [] for node in group.nodes}
    users: dict[Node, list[Node]] = {node: [] for node in group.nodes}
    for edge in graph.edges:
        if edge.source in users and edge.target in operands:
            operands[edge.target].append(edge.source)
            users[edge.source].append(edge.target)
    return operands, users


def _rows(group: Group, operands: Neighbours, users: Neighbours) -> list[list[Node]]:
    """Boxes by layer. Those without operands are directly above their first user."""
    level: dict[Node, int] = {}
    for node in group.nodes:
        level[node] = max((level[o] + 1 for o in operands[node] if o in level), default=0)
    for node in reversed(group.nodes):
        if not operands[node] and users[node]:
            level[node] = max(0, min(level[u] for u in users[node]) - 1)
    rows: list[list[Node]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for node in group.nodes:
        rows[level[node]].append(node)
    for sweep in range(SWEEPS):
        _sweep(rows, operands if sweep % 2 == 0 else users, downwards=sweep % 2 == 0)
    return [row[n : n + MOST_IN_ROW] for row in rows for n in range(0, len(row), MOST_IN_ROW)]


def _sweep(rows: list[list[Node]], near: Neighbours, downwards: bool) -> None:
    """Order each row by the mean position of the neighbours in the rows already visited."""
    place: dict[Node, float] = {}
    for row in rows if downwards else reversed(rows):
        here = {node: (n + 0.5) / len(row) for n, node in enumerate(row)}
        for node in row:
            known = [place[n] for n in near[node] if n in place]
            if known:
                here[node] = sum(known) / len(known)
        row.sort(key=here.__getitem__)
        place |= {node: (n + 0.5) / len(row) for n, node in enumerate(row)}


# -- drawing ----------------------------------------------------------------------------------------------------------
def _height(node: Node) -> int:
    return TITLE + LINE * (len(node.lines) - 1) + 8


def _draw(group: Group, graph: Graph, theme: Theme) -> tuple[str, float, float]:
    """The SVG of one group with its origin at the top left, its width and its height."""
    operands, users = _neighbours(group, graph)
    rows = _rows(group, operands, users)
    width = max((len(r) for r in rows), default=1) * (WIDTH + GAP_X) + GAP_X
    place: dict[Node, tuple[float, float]] = {}
    top = GAP_Y
    for row in rows:
        left = (width - len(row) * (WIDTH + GAP_X) + GAP_X) / 2
        for n, node in enumerate(row):
            place[node] = (left + n * (WIDTH + GAP_X), top)
        top += max(map(_height, row)) + GAP_Y
    frame = (
        f'<g class="g-{group.kind}"><title>{escape(group.tip)}</title><rect width="{width}" height="{top}" rx="6" '
        f'fill="{theme.groups[group.kind]}"/><text class="h" x="8" y="18">{escape(group.label)}</text></g>'
    )
    edges = "".join(
        _edge(place[o], _height(o), place[node], f"{o.lines[0]} to {node.lines[0]}")
        for node in group.nodes
        for o in operands[node]
    )
    nodes = (_node(node, place[node], theme) for node in group.nodes)
    return frame + f'<g class="edge">{edges}</g>' + "".join(nodes), width, top


def _edge(start: tuple[float, float], height: int, end: tuple[float, float], tip: str) -> str:
    x1, y1, x2, y2 = start[0] + WIDTH / 2, start[1] + height, end[0] + WIDTH / 2, end[1]
    bend = max(abs(y2 - y1) / 2, GAP_Y / 2)
    curve = f"M{x1:.0f},{y1:.0f}C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"
    return f'<path d="{curve}" marker-end="url(#a)"><title>{escape(tip)}</title></path>'


def _node(node: Node, place: tuple[float, float], theme: Theme) -> str:
    x, y = place
    weight = 3 if node.is_root else 1
    middle = WIDTH / 2
    text = "".join(
        f'<text class="{"l" if n else "t"}" text-anchor="middle" x="{middle:.0f}" '
        f'y="{15 + (TITLE - LINE if n else 0) + LINE * n}">{escape(line)}</text>'
        for n, line in enumerate(node.lines)
    )
    fill = theme.boxes[node.kind]
    box = f'<rect width="{WIDTH}" height="{_height(node)}" rx="6" fill="{fill}" stroke-width="{weight}"/>'
    head = f'<g class="node k-{node.kind}" transform="translate({x:.0f},{y:.0f})"><title>{escape(node.tip)}</title>'
    return f"{head}{box}{text}</g>"
