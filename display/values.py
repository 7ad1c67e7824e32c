"""Values as SVG pictures and as HTML pages: modules, computations, plans, buffers, executables. Notebooks show them.

A module's picture is the one of `testbed show --graph` without Graphviz, a plan's the one of `testbed buffers --plot`.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from ..backends.host.executable import HostExecutable
from ..differential.kernel_module import module_of
from ..formats.text.printer import print_computation, print_module
from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Computation, Module
from ..hlo.remedies import adding
from ..hlo.shapes import Shape
from ..planning.buffer_report import BufferReport, report_buffers, report_to_text
from ..planning.plan import Plan

MOST_ROWS, MOST_TEXT = 40, 100_000
"""Rows of a table, and characters of a text."""


def to_svg(value: Any) -> str:
    """An SVG picture: the data flow of a Module or Computation, the arena over time of a Plan, BufferReport or
    executable. A large module is folded.

    Raises InputError for another type, and where matplotlib, which draws the arena, is not installed.
    """
    return _row(value)[0](value)


def to_html(value: Any) -> str:
    """A page, without <html> and <body>: tables, the picture if there can be one, and the text. Raises InputError."""
    return _row(value)[1](value)


def _row(value: Any) -> tuple[Callable[[Any], str], Callable[[Any], str]]:
    for kind, row in SHOWN.items():
        if isinstance(value, kind):
            return row
    known = ", ".join(kind.__name__ for kind in SHOWN)
    raise InputError(f"{type(value).__name__} has no picture", remedy=f"give one of {known}")


# -- pictures ---------------------------------------------------------------------------------------------------------
def _draw_module(module: Module) -> str:
    from .module_graph import module_to_svg

    return module_to_svg(module)


def _draw_computation(computation: Computation) -> str:
    return _draw_module(module_of(computation))


def _draw_buffers(report: BufferReport) -> str:
    from .buffers_plot import figure_of
    from .graph_theme import theme_of
    from .plots import draw_to

    file = io.BytesIO()
    try:
        draw_to(lambda: figure_of(report, theme_of("light")), file, "svg")
    except ImportError:
        raise InputError("the picture of buffers needs matplotlib", remedy=adding("plot")) from None
    return file.getvalue().decode()


# -- pages ------------------------------------------------------------------------------------------------------------
def _page(title: str, *parts: str) -> str:
    return f'<div class="testbed"><b>{escape(title)}</b>{"".join(parts)}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table. Rows beyond MOST_ROWS are counted in the last one."""
    rows = list(rows)
    left = len(rows) - MOST_ROWS
    shown = [*rows[:MOST_ROWS], [f"… {left} more"]] if left > 0 else rows
    lines = [f"<tr>{''.join(f'<th>{escape(h)}</th>' for h in head)}</tr>"]
    for row in shown:
        lines.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _text(summary: str, text: str) -> str:
    """A text that opens by a click."""
    cut = text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n… {len(text) - MOST_TEXT} more characters"
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(cut)}</pre></details>"


def _picture(value: Any) -> str:
    """The picture as an image, whose styles do not reach the page; or why there is none."""
    try:
        data = base64.b64encode(to_svg(value).encode()).decode()
    except TestbedError as error:
        return f"<p>No picture: {escape(str(error))}</p>"
    image = f'<img alt="picture" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
    return f"<details open><summary>picture</summary>{image}</details>"


def _shapes(shapes: Iterable[tuple[str, Shape]]) -> list[list[str]]:
    return [[name, str(shape), f"{sum(leaf.bytes for _, leaf in shape.leaves())}"] for name, shape in shapes]


def _counts(computations: Iterable[Computation]) -> list[list[str]]:
    counts = Counter(i.opcode.value for c in computations for i in c.instructions)
    return [[name, str(count)] for name, count in counts.most_common()]


def _module_page(module: Module) -> str:
    rows = [(p.name, p.shape) for p in module.entry.parameters]
    count = sum(len(c.instructions) for c in module.computations)
    return _page(
        f"module {module.name}: {count} instructions in {len(module.computations)} computations",
        _table(["parameter", "shape", "bytes"], [*_shapes(rows), *_shapes([("result", module.result_shape)])]),
        _table(["opcode", "count"], _counts(module.computations)),
        _picture(module),
        _text("HLO text", print_module(module)),
    )


def _computation_page(computation: Computation) -> str:
    rows = [*((p.name, p.shape) for p in computation.parameters), ("result", computation.root.shape)]
    return _page(
        f"computation {computation.name}: {len(computation.instructions)} instructions",
        _table(["parameter", "shape", "bytes"], _shapes(rows)),
        _picture(computation),
        _text("HLO text", print_computation(computation)),
    )


def _plan_page(plan: Plan) -> str:
    kernels = [[k.name, k.instruction.opcode.value, ", ".join(map(str, k.result_shapes))] for k in plan.kernels]
    report = report_buffers(plan)
    return _page(
        f"plan of {plan.module.name}: {sum(1 for _ in plan.walk())} steps, {len(plan.kernels)} kernels",
        _table(["kernel", "opcode", "results"], kernels),
        _buffers(report),
        _text("optimised HLO", print_module(plan.module)),
    )


def _buffers_page(report: BufferReport) -> str:
    return _page(f"buffers of {report.plan.module.name}", _buffers(report))


def _buffers(report: BufferReport) -> str:
    rows = [
        [str(a.index), a.kind.value, str(a.size), str(a.shape) if a.shape is not None else ""]
        for a in report.plan.assignment.allocations
    ]
    total = f"arena of {report.arena} bytes, lower bound {report.bound}, excess {report.excess:.1%}"
    return "".join(
        [
            f"<p>{escape(total)}</p>",
            _table(["allocation", "kind", "bytes", "shape"], rows),
            _picture(report),
            _text("slices and live ranges", report_to_text(report)),
        ]
    )


def _executable_page(executable: HostExecutable) -> str:
    times = [[stage, f"{seconds * 1e3:.1f}"] for stage, seconds in executable.timings.items()]
    return _page(
        executable.calling.text(),
        _table(["kernel", "stack"], executable.kernels),
        _table(["stage", "ms"], times),
        _text("arguments", executable.calling.document()),
    )


SHOWN: dict[type, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    Module: (_draw_module, _module_page),
    Computation: (_draw_computation, _computation_page),
    Plan: (lambda plan: _draw_buffers(report_buffers(plan)), _plan_page),
    BufferReport: (_draw_buffers, _buffers_page),
    HostExecutable: (lambda executable: _draw_buffers(report_buffers(executable.plan)), _executable_page),
}
"""Type of value → how it is drawn, and its page."""
