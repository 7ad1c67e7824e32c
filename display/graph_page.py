"""A page with the graph of a compiled module: search, folding by click, kernels with forms and times; no server.

Its units are the instructions of the module as it is planned, where a fusion is one; scopes of JAX's op_name fold them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from ..hlo.analysis.cost_analysis import analyse
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.metadata import Sources
from ..hlo.opcodes import Op
from ..hlo.shapes import shape_to_text
from ..planning.plan import KernelStep, Plan
from ..profiling.report import Report
from .graph_folds import OPEN, scopes_of
from .graph_model import KINDS
from .graph_text import clean, cost_text, is_inlined, reducer_word, tip_of

HERE = Path(__file__).parent

Forms = Mapping[str, Mapping[str, str]]
"""Kernel → stack → the form in which the stack emits it."""


@dataclass(frozen=True)
class _Page:
    units: list[dict[str, Any]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    number_of: dict[Instruction, int] = field(default_factory=dict)


def graph_page(plan: Plan, forms: Forms, profile: Report | None = None) -> str:
    """The page of a plan. profile: of the same module, for the times of its steps."""
    page, kernels = _Page(), {s.instruction: s.kernel.name for s in plan.walk() if isinstance(s, KernelStep)}
    times = {s.name: s for s in profile.steps} if profile is not None else {}
    costs, sources = analyse(plan.module), Sources(plan.module.attributes)
    for computation in _drawn(plan.module):
        scopes = scopes_of(computation)
        for i in computation.instructions:
            if is_inlined(i, computation):
                continue
            step, name = times.get(i.name), kernels.get(i, "")
            inside = [b for c in i.called() for b in c.instructions] if i.opcode is Op.FUSION else []
            page.number_of[i] = len(page.units)
            page.units.append(
                {
                    "name": clean(i.name),
                    "op": f"{i.opcode.value} {reducer_word(i)}".strip(),
                    "shape": shape_to_text(i.shape, layouts=False),
                    "kind": _kind(i, inside),
                    "cost": cost_text(costs.of(i)),
                    "path": [clean(s) for s in scopes[i]],
                    "source": clean(sources.place_of(i)),
                    "text": tip_of(i),
                    "kernel": name,
                    "forms": dict(forms.get(name, {})),
                    "inner": [tip_of(b) for b in inside if b.opcode is not Op.PARAMETER],
                    "us": step.own / 1e3 if step is not None else 0,
                    "share": step.own / (profile.entry + profile.run)
                    if step is not None and profile is not None
                    else 0,
                }
            )
            number = page.number_of[i]
            page.edges.extend((page.number_of[o], number) for o in i.operands if o in page.number_of)
    for i, number in page.number_of.items():
        if i.opcode in OPEN:
            roots = (c.root for c in i.called())
            page.edges.extend((number, page.number_of[r]) for r in roots if r in page.number_of)
    return _filled(plan, page, profile)


def _drawn(module: Module) -> Iterator[Computation]:
    """The entry, and what loops, branches and calls in drawn computations run."""
    waiting, seen = [module.entry], {module.entry}
    while waiting:
        computation = waiting.pop(0)
        yield computation
        for i in computation.instructions:
            if i.opcode in OPEN:
                found = [c for c in dict.fromkeys(i.called()) if c not in seen]
                seen.update(found)
                waiting += found


def _kind(i: Instruction, inside: list[Instruction]) -> str:
    """The colour of a box; of a fusion that of the most telling instruction in it."""
    kinds = {KINDS.get(b.opcode, "plain") for b in inside} or {KINDS.get(i.opcode, "plain")}
    found = next((k for k in ("product", "fold") if k in kinds), KINDS.get(i.opcode, "plain"))
    return "sum" if found == "fold" else found


def _filled(plan: Plan, page: _Page, profile: Report | None) -> str:
    rows = [(n, u) for n, u in enumerate(page.units) if u["kernel"]]
    if profile is not None:
        rows.sort(key=lambda row: -row[1]["us"])
    stacks = sorted({stack for _, u in rows for stack in u["forms"]})
    heads = ["instruction", "kernel", *(f"form, {s}" for s in stacks), "source", *(["us", "share"] if profile else [])]
    numbers, seen = {"us", "share"}, set[str]()
    title = f"{clean(plan.module.name)}: data flow"
    summary = f"{len(page.units)} instructions after the passes, {len(plan.kernels)} kernels"
    if profile is not None:
        summary += f"; {profile.wall / 1e3:.1f} us a call ({profile.emitters})"
    data = {"name": clean(plan.module.name), "units": page.units, "edges": page.edges}
    content = {
        "TITLE": escape(title),
        "SUMMARY": escape(summary),
        "CAPTION": escape("Kernels in the order of their time" if profile else "Kernels in the order of the program"),
        "HEADS": "".join(f"<th{' class=number' * (h in numbers)}>{escape(h)}</th>" for h in heads),
        "ROWS": "\n".join(_row(n, u, stacks, profile is not None, seen) for n, u in rows),
        "CSS": (HERE / "graph_page.css").read_text(encoding="utf-8"),
        "JS": (HERE / "graph_page.js").read_text(encoding="utf-8"),
        "DATA": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    parts = (HERE / "graph_page.html").read_text(encoding="utf-8").split("@")
    return "".join(content.get(part, part) if n % 2 else part for n, part in enumerate(parts))


def _row(number: int, unit: Mapping[str, Any], stacks: list[str], is_timed: bool, seen: set[str]) -> str:
    """A row of the table. The first of several steps of a kernel is where links to the kernel lead."""
    name = unit["kernel"]
    anchor = f' id="k-{escape(name)}"' if name not in seen else ""
    seen.add(name)
    link = f'<a href="#graph" data-unit="{number}">{escape(unit["name"])}</a>'
    cells = [link, escape(name), *(escape(unit["forms"].get(s, "")) for s in stacks), escape(unit["source"])]
    times = f"<td class=number>{unit['us']:.3f}</td><td class=number>{unit['share']:.1%}</td>" if is_timed else ""
    return f"<tr{anchor}>{''.join(f'<td>{c}</td>' for c in cells)}{times}</tr>"
