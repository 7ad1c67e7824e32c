"""`testbed forms MODULE`: the form of each kernel on each stack, its parameters, and why earlier forms declined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from .json_output import json_option, print_document
from .output import say, table, wrapped
from .params import MODULE

if TYPE_CHECKING:
    from ..codegen.forms import ChosenForms, FormInfo, Part
    from ..formats.program import Program
    from ..planning.plan import KernelRequest

Row = tuple[str, "KernelRequest", "ChosenForms | None"]
"""(Stack, kernel, its forms; None where the stack does not say)."""


@click.command()
@click.argument("module", type=MODULE, required=False)
@click.option("--kernel", "names", multiple=True, metavar="NAME", help="Only this kernel. Repeatable.")
@click.option(
    "--emitters", multiple=True, metavar="FLAGS", help="Emitters of a run. Repeatable. [default: legacy, mlir]"
)
@click.option("--table", "is_table", is_flag=True, help="Print each stack's table of forms; without a MODULE.")
@click.option("--brief", is_flag=True, help="A line for each kernel, without parameters and reasons.")
@json_option("the forms")
def command(
    module: str | None, names: tuple[str, ...], emitters: tuple[str, ...], is_table: bool, brief: bool, as_json: bool
) -> int:
    """Print, for each kernel of MODULE and each stack, the form that the stack chose: the way in which it emits this
    class of shapes. Below it stand its parameters, and each earlier form of the stack's table with the reason why it
    declined.
    """
    from ..hlo.errors import InputError

    if is_table == (module is not None):
        raise InputError("give a MODULE, or --table", remedy="testbed forms MODULE prints forms of kernels")
    if module is None:
        return _print_tables(as_json)
    from ..codegen.form_text import form_lines
    from ..migration.programs import load_program

    program = load_program(module)
    rows = list(_rows(program, emitters or ("legacy", "mlir"), names))
    if as_json:
        return print_document("forms", 0, {"module": module, "kernels": [_body(*row) for row in rows]})
    for stack, request, forms in rows:
        for line in form_lines(request.name, stack, forms, brief):
            inner = len(line) - len(line.lstrip())
            say(wrapped(line, inner + 2 if inner else 0))
    return 0


def _rows(program: Program, runs: Sequence[str], names: Sequence[str]) -> Iterator[Row]:
    from ..backends.base import CompileOptions
    from ..backends.host.compiler import HostCompiler
    from ..hlo.errors import InputError
    from ..hlo.verify.verifier import verify
    from ..migration import Flags
    from ..migration.compile import emitters_of
    from ..migration.programs import plan_of

    options = CompileOptions()
    plan = plan_of(program)
    if plan is None:
        verify(program.module)
        plan = HostCompiler().run_hlo_passes(program.module, options)
    known = {k.name: k for k in plan.emitted}
    for name in names:
        if name not in known:
            raise InputError(f"no kernel '{name}'", remedy=f"choose from {', '.join(known) or 'none'}")
    chosen = [emitters_of(program, Flags.parse(run), options) for run in runs]
    for name in names or known:
        for emitter in {e.name: e for e in (emitter_for(known[name]) for emitter_for in chosen)}.values():
            made = emitter.emit([known[name]], options.emit)
            yield emitter.name, known[name], made.forms.get(name)


def _body(stack: str, request: KernelRequest, forms: ChosenForms | None) -> dict[str, Any]:
    body: dict[str, Any] = {"kernel": request.name, "instruction": request.instruction.name, "stack": stack}
    if forms is None:
        return {**body, "parts": None, "ranged": None, "passes": None}
    return {**body, "parts": [_part(p) for p in forms.parts], "ranged": forms.ranged, "passes": forms.passes}


def _part(part: Part) -> dict[str, Any]:
    return {
        "form": part.form,
        "results": list(part.results),
        "parameters": dict(part.parameters),
        "declined": [{"form": d.form, "reason": d.reason} for d in part.declined],
    }


def _print_tables(as_json: bool) -> int:
    from ..benchmarks.tables import left
    from ..migration.forms import form_tables

    found = form_tables()
    if as_json:
        stacks = {stack: [_info(row) for row in rows] for stack, rows in found.items()}
        return print_document("forms", 0, {"stacks": stacks})
    for stack, rows in found.items():
        say(f"{stack}: {len(rows)} forms, in the order in which they are asked")
        lines = [(row.name, "; ".join(f"{x.measure} {x.value}" for x in row.limits), row.why) for row in rows]
        say(table((left("form"), left("limits"), left("why")), lines))
    return 0


def _info(row: FormInfo) -> dict[str, Any]:
    limits = [{"name": x.name, "measure": x.measure, "value": x.value} for x in row.limits]
    return {"form": row.name, "why": row.why, "limits": limits}
