"""`testbed show MODULE`: what a module contains (opcodes, types, costs, largest buffers), as text, JSON or SVG."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..hlo.analysis.cost_analysis import CostAnalysis
    from ..hlo.ir import Computation, Instruction, Module

KEYS = ("flops", "transcendentals", "bytes")

PICTURES = (".svg", ".dot", ".pdf", ".png")
"""Endings of a picture's name."""


def _check_graph(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and Path(value).suffix.lower() not in PICTURES:
        raise click.BadParameter(f"{value!r} ends in none of {', '.join(PICTURES)}")
    return value


@click.command()
@click.argument("module")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, metavar="N", help="Rows per list.")
@click.option("--by", type=click.Choice(KEYS), default="flops", show_default=True, help="Order of the instructions.")
@click.option("--json", "json_file", metavar="F", help="Write everything, including all instructions, as JSON.")
@click.option(
    "--graph",
    metavar="OUT.SVG",
    callback=_check_graph,
    help="Draw the data flow; OUT.dot for Graphviz, OUT.pdf or OUT.png drawn by Graphviz.",
)
def command(module: str, top: int, by: str, json_file: str | None, graph: str | None) -> int:
    """Print counts, costs by XLA's rules (one iteration per while loop) and the largest buffers of MODULE."""
    from ..formats.program import load_program
    from ..formats.whole_files import write_text
    from ..hlo.analysis.cost_analysis import analyse

    loaded = load_program(module).module
    analysis = analyse(loaded)
    _print_counts(loaded, analysis)
    own = _own_instructions(loaded)
    _print_costs(own, analysis, by, top)
    _print_buffers(own, top)
    if json_file is not None:
        write_text(Path(json_file), json.dumps(_report(loaded, analysis), indent=1) + "\n")
    if graph is not None:
        _write_graph(loaded, Path(graph))
    return 0


def _write_graph(module: Module, path: Path) -> None:
    from ..formats.whole_files import write_text, write_whole
    from .module_dot import draw, module_to_dot
    from .module_graph import module_to_svg

    form = path.suffix.lower().removeprefix(".")
    if form == "svg":
        write_text(path, module_to_svg(module))
    elif form == "dot":
        write_text(path, module_to_dot(module))
    else:
        picture = draw(module_to_dot(module), form)
        write_whole(path, lambda file: file.write(picture))


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
    click.echo(
        f"{module.name}: {len(instructions)} instructions in {len(module.computations)} computations, "
        f"{len(module.entry.instructions)} in the entry {module.entry.name}"
    )
    parameters = ", ".join(map(str, module.parameter_shapes)) or "none"
    click.echo(f"parameters  {_cut(parameters)}")
    click.echo(f"result      {_cut(str(module.result_shape))}")
    click.echo(f"opcodes     {_counts(i.opcode.value for i in instructions)}")
    click.echo(f"types       {_counts(leaf.dtype.value for i in instructions for _, leaf in i.shape.leaves())}")
    click.echo(
        f"cost        {_si(total.flops)} flops, {_si(total.transcendentals)} transcendentals, "
        f"{_si(total.bytes)} bytes accessed"
    )


def _print_costs(rows: list[Any], analysis: CostAnalysis, by: str, top: int) -> None:
    from ..benchmarks.tables import left, right, text_table
    from ..hlo.opcodes import Op

    inside = (Op.CALL, Op.WHILE, Op.CONDITIONAL)  # the instructions inside these are in the list themselves
    costs = [(analysis.of(i), c, i) for c, i in rows if i.opcode not in inside]
    costs = sorted((r for r in costs if getattr(r[0], by)), key=lambda r: -getattr(r[0], by))[:top]
    if not costs:
        return
    cells = [(*(_si(getattr(cost, key)) for key in KEYS), _line(c, i)) for cost, c, i in costs]
    columns = [right("flops"), right("transc."), right("bytes"), left("instruction")]
    click.echo(f"\ninstructions by {by}\n{text_table(columns, cells)}")


def _print_buffers(rows: list[Any], top: int) -> None:
    from ..benchmarks.tables import left, right, text_table

    buffers = sorted(((i.shape.bytes, c, i) for c, i in rows if i.shape.bytes), key=lambda r: -r[0])[:top]
    if not buffers:
        return
    cells = [(_si(size), _line(computation, i)) for size, computation, i in buffers]
    click.echo(f"\nlargest buffers\n{text_table([right('bytes'), left('instruction')], cells)}")


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
        "module": module.name,
        "computations": len(module.computations),
        "opcodes": dict(Counter(i.opcode.value for i in module.instructions())),
        "cost": {key: getattr(total, key) for key in KEYS},
        "instructions": rows,
    }
