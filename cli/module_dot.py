"""A module in Graphviz's language, DOT, and pictures that Graphviz's program `dot` draws of it."""

from __future__ import annotations

import shutil
import subprocess

from ..hlo.errors import InputError
from ..hlo.ir import Computation, Instruction, Module
from .module_graph import colour_of, computations_by_call, label_of, tip_of

DRAWN = ("pdf", "png")
"""Formats that need the program."""


def module_to_dot(module: Module) -> str:
    """The whole module, a cluster for each computation; an edge from each operand to its user."""
    lines = [f"digraph {_quoted(module.name)} {{", '  node [shape=box, style="filled,rounded", fontname=monospace];']
    for number, computation in enumerate(computations_by_call(module)):
        entry = "ENTRY " if computation is module.entry else ""
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(entry + computation.name)};"]
        lines += [f"    {line}" for line in _cluster(computation, f"c{number}_")]
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(computation: Computation, prefix: str) -> list[str]:
    ids = {i: f"{prefix}{n}" for n, i in enumerate(computation.instructions)}
    nodes = [_node(i, ids[i], i is computation.root) for i in computation.instructions]
    edges = [f"{ids[o]} -> {ids[i]};" for i in computation.instructions for o in dict.fromkeys(i.operands)]
    return nodes + edges


def _node(i: Instruction, name: str, is_root: bool) -> str:
    bold = ", penwidth=3" if is_root else ""
    label, tip = _quoted("\n".join(label_of(i))), _quoted(tip_of(i))
    return f'{name} [label={label}, tooltip={tip}, fillcolor="{colour_of(i)}"{bold}];'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def draw(dot_text: str, form: str) -> bytes:
    """The picture that Graphviz's `dot` draws of a DOT text. form: one of DRAWN."""
    program = shutil.which("dot")
    if program is None:
        raise InputError(
            f"a {form.upper()} needs Graphviz's program `dot`, which is not on PATH",
            remedy="install graphviz, or write OUT.svg or OUT.dot, which need no program",
        )
    done = subprocess.run([program, f"-T{form}"], input=dot_text.encode(), capture_output=True)
    if done.returncode or not done.stdout:
        complaint = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(
            f"{program} failed with status {done.returncode}: {complaint[-1] if complaint else 'no picture'}"
        )
    return done.stdout
