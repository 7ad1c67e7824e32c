"""`testbed show MODULE`: what a module holds (opcodes, types, costs, largest buffers), as text, JSON or a picture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display.graph_theme import DEPTH, FOLDS, LIMIT, THEMES
from .json_output import json_option, print_document
from .output import say, table, wrapped
from .params import FILE, MODULE

if TYPE_CHECKING:
    from ..hlo.analysis.cost_analysis import CostAnalysis
    from ..hlo.ir import Computation, Instruction, Module

KEYS = ("flops", "transcendentals", "bytes")

PICTURES = (".svg", ".png", ".pdf", ".dot", ".html")
"""Endings of a picture's name."""


def _check_graph(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and Path(value).suffix.lower() not in PICTURES:
        raise click.BadParameter(f"{value!r} ends in none of {', '.join(PICTURES)}")
    return value


@click.command()
@click.argument("module", type=MODULE)
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, metavar="N", help="Rows per list.")
@click.option("--by", type=click.Choice(KEYS), default="flops", show_default=True, help="Order of the instructions.")
@json_option("everything, including all instructions,")
@click.option(
    "--graph",
    metavar="OUT.SVG",
    type=FILE,
    callback=_check_graph,
    help="Draw the data flow as .svg, .png, .pdf or .dot, with Graphviz; without it, a plainer .svg, or .dot. "
    "As .html: a page with search, folding by click, and the kernels with their forms.",
)
@click.option(
    "--fold",
    type=click.Choice(FOLDS),
    default="auto",
    show_default=True,
    help="What --graph folds: scopes of JAX's op_names, the kernels after the passes, or runs of instructions.",
)
@click.option(
    "--level", type=click.IntRange(1), metavar="N", help="How many names of a scope --fold scopes keeps apart."
)
@click.option("--profile", type=FILE, metavar="P.json", help="Times for --graph OUT.html: what profile --json wrote.")
@click.option(
    "--theme",
    type=click.Choice(THEMES),
    default="auto",
    show_default=True,
    help="Colours of --graph. auto: an .svg follows its reader's preference, others are light.",
)
@click.option(
    "--depth",
    type=click.IntRange(0),
    default=DEPTH,
    show_default=True,
    metavar="N",
    help="How deep --graph draws fusions, loops and calls; 0: not at all.",
)
@click.option(
    "--limit",
    type=click.IntRange(2),
    default=LIMIT,
    show_default=True,
    metavar="N",
    help="Boxes in --graph; beyond it, computations and runs of instructions are folded to one box each.",
)
def command(
    module: str,
    top: int,
    by: str,
    as_json: bool,
    graph: str | None,
    fold: str,
    level: int | None,
    profile: str | None,
    theme: str,
    depth: int,
    limit: int,
) -> int:
    """Print counts, costs by XLA's rules (one iteration per while loop) and the largest buffers of MODULE."""
    from ..hlo.analysis.cost_analysis import analyse
    from ..migration.programs import load_program

    program = load_program(module)
    loaded = program.module
    analysis = analyse(loaded)
    if profile is not None and not (graph or "").lower().endswith(".html"):
        raise click.UsageError("--profile is for --graph OUT.html")
    if graph is not None:
        from .show_graph import Picture, write_graph

        write_graph(program, Path(graph), Picture(theme, depth, limit, fold, level), profile)
    if as_json:
        return print_document("show", 0, {"module": module, **_report(loaded, analysis)})
    _print_counts(loaded, analysis)
    own = _own_instructions(loaded)
    _print_costs(own, analysis, by, top)
    _print_buffers(own, top)
    return 0


def _own_instructions(module: Module) -> list[tuple[Computation, Instruction]]:
    """Instructions that run by themselves. Those inside fusions and reducers count as part of their caller."""
    from ..hlo.opcodes import Op

    steps = {module.entry}
    for computation in reversed(module.computations):
        if computation in steps:
            for i in computation.instructions:
                if i.opcode in (Op.CALL, Op.WHILE, Op.CONDITIONAL, Op.ASYNC_START):
                    steps.update(i.called())
    return [(c, i) for c in module.computations if c in steps for i in c.instructions]


def _print_counts(module: Module, analysis: CostAnalysis) -> None:
    instructions = list(module.instructions())
    total = analysis.of_computation(module.entry)
    head = (
        f"{module.name}: {len(instructions)} instructions in {len(module.computations)} computations, "
        f"{len(module.entry.instructions)} in the entry {module.entry.name}"
    )
    say(wrapped(head))
    parameters = ", ".join(map(str, module.parameter_shapes)) or "none"
    rows = {
        "parameters": _cut(parameters),
        "result": _cut(str(module.result_shape)),
        "opcodes": _counts(i.opcode.value for i in instructions),
        "types": _counts(leaf.dtype.value for i in instructions for _, leaf in i.shape.leaves()),
        "cost": f"{_si(total.flops)} flops, {_si(total.transcendentals)} transcendentals, {_si(total.bytes)} bytes "
        "accessed",
    }
    for name, text in rows.items():
        say(wrapped(f"{name:<11} {text}", 12))


def _print_costs(rows: list[Any], analysis: CostAnalysis, by: str, top: int) -> None:
    from ..benchmarks.tables import left, right
    from ..hlo.opcodes import Op

    inside = (Op.CALL, Op.WHILE, Op.CONDITIONAL)  # the instructions inside these are in the list themselves
    costs = [(analysis.of(i), c, i) for c, i in rows if i.opcode not in inside]
    costs = sorted((r for r in costs if getattr(r[0], by)), key=lambda r: -getattr(r[0], by))[:top]
    if not costs:
        return
    cells = [(*(_si(getattr(cost, key)) for key in KEYS), _line(c, i)) for cost, c, i in costs]
    columns = [right("flops"), right("transc."), right("bytes"), left("instruction")]
    say(f"\ninstructions by {by}\n{table(columns, cells)}")


def _print_buffers(rows: list[Any], top: int) -> None:
    from ..benchmarks.tables import left, right

    buffers = sorted(((i.shape.bytes, c, i) for c, i in rows if i.shape.bytes), key=lambda r: -r[0])[:top]
    if not buffers:
        return
    cells = [(_si(size), _line(computation, i)) for size, computation, i in buffers]
    say(f"\nlargest buffers\n{table([right('bytes'), left('instruction')], cells)}")


def _line(computation: Computation, i: Instruction) -> str:
    place = f"  (line {i.location.line})" if i.location else ""
    return f"{i.name} = {_cut(f'{i.shape} {i.opcode.value}', 60)} in {computation.name}{place}"


def _counts(values: Any) -> str:
    return ", ".join(f"{value} {count}" for value, count in Counter(values).most_common())


def _si(number: float) -> str:
    """A number with an SI prefix: 1234567 → 1.23 M."""
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number:g}"


def _cut(text: str, most: int = 108) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _report(module: Module, analysis: CostAnalysis) -> dict[str, Any]:
    total = analysis.of_computation(module.entry)
    rows = []
    for computation in module.computations:
        for i in computation.instructions:
            cost = analysis.of(i)
            row = {"computation": computation.name, "name": i.name, "opcode": i.opcode.value, "shape": str(i.shape)}
            rows.append(row | {key: getattr(cost, key) for key in KEYS})
    return {
        "name": module.name,
        "computations": len(module.computations),
        "opcodes": dict(Counter(i.opcode.value for i in module.instructions())),
        "cost": {key: getattr(total, key) for key in KEYS},
        "instructions": rows,
    }
