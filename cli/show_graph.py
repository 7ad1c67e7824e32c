"""`testbed show MODULE --graph OUT`: the data flow as a picture, or as a page with its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .output import say, wrapped

if TYPE_CHECKING:
    from ..formats.program import Program
    from ..planning.plan import Plan
    from ..profiling.report import Report

STACKS = ("legacy", "mlir")


@dataclass(frozen=True)
class Picture:
    """How a module is drawn: options of the command."""

    theme: str
    depth: int
    limit: int
    fold: str
    level: int | None


def write_graph(program: Program, path: Path, picture: Picture, profile: str | None) -> None:
    """Write the file; on standard error, what it leaves out. Raises InputError."""
    from ..formats.whole_files import write_whole

    form = path.suffix.lower().removeprefix(".")
    data, notes = (_page(program, profile), []) if form == "html" else _picture(program, form, picture)
    write_whole(path, lambda file: file.write(data))
    if notes:
        say(wrapped(f"{path}: {'; '.join(notes)}"), err=True)


def _picture(program: Program, form: str, picture: Picture) -> tuple[bytes, list[str]]:
    from ..display.graph_model import build_graph
    from ..display.module_dot import draw, find_dot, finish_svg, graph_to_dot
    from ..display.module_graph import graph_to_svg

    is_own = form == "svg" and find_dot() is None
    module = _plan(program).module if picture.fold == "kernels" else program.module
    graph = build_graph(
        module,
        depth=picture.depth,
        limit=picture.limit,
        nested=not is_own,
        fold=picture.fold,
        level=picture.level,
    )
    if is_own:
        data = graph_to_svg(graph, picture.theme).encode("utf-8")
    elif form == "dot":
        data = graph_to_dot(graph, picture.theme).encode("utf-8")
    else:
        data = draw(graph_to_dot(graph, picture.theme), form)
        data = finish_svg(data, picture.theme) if form == "svg" else data
    more = "--limit, --depth and --level draw more; OUT.html opens what is clicked"
    notes = [f"{graph.folded} instructions are folded ({more})"] if graph.folded else []
    notes += ["without Graphviz's program `dot` on PATH, each computation is drawn by itself"] if is_own else []
    return data, notes


def _page(program: Program, profile: str | None) -> bytes:
    from ..display.graph_page import graph_page

    plan = _plan(program)
    return graph_page(plan, _forms(program, plan), _report(profile) if profile else None).encode("utf-8")


def _plan(program: Program) -> Plan:
    from ..backends.base import CompileOptions
    from ..backends.host.compiler import HostCompiler
    from ..hlo.verify.verifier import verify
    from ..migration.programs import plan_of

    plan = plan_of(program)
    if plan is None:
        verify(program.module)
        plan = HostCompiler().run_hlo_passes(program.module, CompileOptions())
    return plan


def _forms(program: Program, plan: Plan) -> dict[str, dict[str, str]]:
    """The forms of each kernel on each stack that says them."""
    from ..backends.base import CompileOptions
    from ..hlo.errors import UnsupportedError
    from ..migration import Flags
    from ..migration.compile import emitters_of

    options, found = CompileOptions(), dict[str, dict[str, str]]()
    for stack in STACKS:
        emitter_for = emitters_of(program, Flags.parse(stack), options)
        for request in plan.emitted:
            emitter = emitter_for(request)
            try:
                forms = emitter.emit([request], options.emit).forms.get(request.name)
            except UnsupportedError:
                continue
            if forms is not None:
                found.setdefault(request.name, {})[emitter.name] = ", ".join(dict.fromkeys(p.form for p in forms.parts))
    return found


def _report(file: str) -> Report:
    """The first profile of a file. Raises InputError."""
    from ..formats.program import read_text
    from ..profiling.report import from_json

    return from_json(read_text(Path(file)), file)[0]
