"""A graph in Graphviz's language, DOT, and pictures that Graphviz's program `dot` draws of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from html import escape

from ..hlo.errors import InputError
from .graph_model import Graph, Group, Node
from .graph_theme import Theme, dark_css, theme_of

DRAWN = ("pdf", "png")
"""Formats that need the program."""

LIMIT = 120.0
"""Time limit of the program in seconds."""


def graph_to_dot(graph: Graph, theme_name: str = "light") -> str:
    """The DOT text of a graph: a cluster for each group; an edge from each operand to its user."""
    theme = theme_of(theme_name)
    lines = [
        f"digraph {_quoted(graph.name)} {{",
        (
            f'  graph [bgcolor="{theme.page}", fontname=Helvetica, fontsize=12, fontcolor="{theme.text}", '
            f'color="{theme.line}", labeljust=l, style="rounded,filled", nodesep=0.2, ranksep=0.35];'
        ),
        (
            f'  node [shape=box, style="filled,rounded", fontname=Helvetica, fontsize=10, fontcolor="{theme.text}", '
            f'color="{theme.line}", margin="0.1,0.05", height=0.3];'
        ),
        f'  edge [color="{theme.line}", arrowsize=0.6];',
    ]
    for group in graph.groups:
        lines += _cluster(group, theme, "  ")
    for edge in graph.edges:
        call = f', style=dashed, color="{theme.call}", class="iscall", constraint=true' if edge.is_call else ""
        lines.append(f"  {edge.source.id} -> {edge.target.id} [tooltip={_quoted(edge.tip)}{call}];")
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(group: Group, theme: Theme, indent: str) -> list[str]:
    inside = indent + "  "
    lines = [
        f"{indent}subgraph cluster_{group.id} {{",
        (
            f'{inside}label={_left_lines(group.label)}; tooltip={_quoted(group.tip)}; class="g-{group.kind}"; '
            f'fillcolor="{theme.groups[group.kind]}"; {_label_style(group)}'
        ),
    ]
    lines += [inside + _node(node, theme) for node in group.nodes]
    for inner in group.groups:
        lines += _cluster(inner, theme, inside)
    return [*lines, f"{indent}}}"]


def _label_style(group: Group) -> str:
    """A fusion's label is small and at the bottom, where one edge leaves, not where all operands come in."""
    return "fontsize=9; labelloc=b;" if group.kind == "fusion" else "fontsize=12; labelloc=t;"


def _node(node: Node, theme: Theme) -> str:
    bold = ", penwidth=2.5" if node.is_root else ""
    title, *rest = [escape(line, quote=False) for line in node.lines]
    small = "".join(f'<BR/><FONT POINT-SIZE="8">{line}</FONT>' for line in rest)
    return (
        f"{node.id} [label=<<B>{title}</B>{small}>, tooltip={_quoted(node.tip)}, "
        f'fillcolor="{theme.boxes[node.kind]}", class="k-{node.kind}"{bold}];'
    )


def _left_lines(text: str) -> str:
    r"""A quoted label of left-aligned lines: `\l` ends each."""
    return _quoted(text).replace("\\n", "\\l")[:-1] + ('\\l"' if "\n" in text else '"')


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def find_dot() -> str | None:
    """Where Graphviz's program `dot` is, or None."""
    return shutil.which("dot")


def draw(dot_text: str, form: str) -> bytes:
    """The picture that Graphviz's `dot` draws of a DOT text. form: svg, or one of DRAWN."""
    program = find_dot()
    if program is None:
        raise InputError(
            f"a {form.upper()} needs Graphviz's program `dot`, which is not on PATH",
            remedy="install graphviz, or write OUT.svg or OUT.dot, which need no program",
        )
    try:
        done = subprocess.run([program, f"-T{form}"], input=dot_text.encode(), capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{program} needs more than {LIMIT:g} s for this graph",
            remedy="fold more of it: a smaller --limit or --depth",
        ) from None
    if done.returncode or not done.stdout:
        complaint = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(
            f"{program} failed with status {done.returncode}: {complaint[-1] if complaint else 'no picture'}"
        )
    return done.stdout


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


def finish_svg(svg: bytes, theme_name: str) -> bytes:
    """Graphviz's SVG with tooltips that every reader shows, and dark colours where the reader prefers them."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(svg)
    for element in list(root.iter(f"{{{SVG}}}g")):
        _unwrap_tooltip(element)
    if theme_name == "auto":
        style = ElementTree.Element(f"{{{SVG}}}style")
        style.text = dark_css()
        root.insert(0, style)
    text = ElementTree.tostring(root, encoding="unicode")
    return (re.sub(r"\n\s*\n", "\n", text) + "\n").encode("utf-8")


def _unwrap_tooltip(group: ElementTree.Element) -> None:
    """Replace `<title>id</title><g><a title="tip">…` by `<title>tip</title>…`: the tip is then the element's own."""
    title = group.find(f"{{{SVG}}}title")
    for holder in group.findall(f"{{{SVG}}}g"):
        link = holder.find(f"{{{SVG}}}a")
        if link is None or not str(holder.get("id", "")).startswith("a_") or title is None:
            continue
        title.text = (link.get(f"{{{XLINK}}}title") or "").replace("\\n", "\n") or title.text
        at = list(group).index(holder)
        group.remove(holder)
        for child in reversed(list(link)):
            group.insert(at, child)
