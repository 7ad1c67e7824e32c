"""`testbed inspect PROG.tbx`: what a compiled program holds, checked but not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..hlo.errors import InputError
from .json_output import json_option, print_document
from .keys import read_key
from .output import say, table, wrapped
from .params import FILE

if TYPE_CHECKING:
    from ..planning.plan import Allocation
    from ..thunks.wire.container import Container
    from ..thunks.wire.program import ProgramFile


@click.command()
@click.argument("program", metavar="PROG.TBX", type=FILE)
@click.option("--verify", type=FILE, metavar="KEY", help="Refuse a program that is not signed with this key.")
@click.option("--host", is_flag=True, help="Print the compiled host program, in MLIR, and nothing else.")
@json_option("all of it")
def command(program: str, verify: str | None, host: bool, as_json: bool) -> int:
    """Print the header, target, signature, sections, buffers and thunks of a program that `testbed compile` wrote."""
    from ..backends.host.loader import inspect_file
    from ..thunks.text import to_text

    file, container = inspect_file(program, read_key(verify))
    if host and not as_json:
        click.echo(_host(program, file), nl=False)
        return 0
    body = _body(program, file, container)
    if host:
        body["host"] = _host(program, file)
    if as_json:
        return print_document("inspect", 0, {**body, "thunks": to_text(file.image.thunks)})
    _print(body)
    click.echo(to_text(file.image.thunks), nl=False)
    return 0


def _host(name: str, file: ProgramFile) -> str:
    """The host program's MLIR. Raises InputError without one, or for bytecode that MLIR does not read."""
    from ..codegen.mlir import MlirError, text_of

    if not file.host:
        raise InputError(
            f"{name}: no MLIR of a host program is in it",
            remedy="compile the module again with --host-program compiled",
        )
    try:
        return text_of(file.host)
    except MlirError as error:
        raise InputError(f"{name}: {error.message}", remedy="compile the module again") from None


def _body(name: str, file: ProgramFile, container: Container) -> dict[str, Any]:
    from ..codegen.features import lacking

    needs, image = file.needs, file.image
    return {
        "program": name,
        "name": file.entry.name,
        "format": container.format,
        "least_reader": container.reader,
        "producer": f"{needs.producer} {needs.version}",
        "signed": container.signed,
        "target": {
            "triple": needs.triple,
            "features": list(needs.features),
            "symbols": list(needs.symbols),
            "refused_here": lacking(needs.triple, needs.features) or None,
        },
        "platform": file.device.platform if file.device is not None else "host",
        "device": file.device.identity if file.device is not None else None,
        "replicas": image.devices.replicas,
        "partitions": image.devices.partitions,
        "parameters": [{"name": p.name, "shape": str(p.shape)} for p in file.entry.parameters],
        "result": str(file.entry.result),
        "sections": [{"name": s.name, "offset": s.offset, "bytes": len(s.data)} for s in container.sections],
        "allocations": [
            {"kind": a.kind.value, "bytes": a.size, "alignment": a.alignment, "holds": _holds(a, image.largest)}
            for a in image.allocations
        ],
        "kernels": [{"name": k.symbol, "emitter": k.emitter, "arguments": len(k.arguments)} for k in image.kernels],
    }


def _holds(a: Allocation, largest: Any) -> str:
    if a.shape is not None and a.number >= 0:
        shared = f", becomes result {a.result}" if a.result >= 0 else ""
        return f"{a.kind.value} {a.number}, {a.shape}{shared}"
    return str(a.shape) if a.shape is not None else largest.get(a.index, ("", None))[0]


def _print(body: dict[str, Any]) -> None:
    from rich.table import Column

    target = body["target"]
    say(wrapped(f"{body['program']}: format {body['format']} (readers from {body['least_reader']} on), "
                f"by {body['producer']}, {'signed' if body['signed'] else 'not signed'}"))  # fmt: skip
    say(wrapped(f"target: {target['triple']} with {', '.join(target['features']) or 'no features'}"))
    if target["refused_here"]:
        say(wrapped(f"cannot run here: {target['refused_here']}"))
    say(wrapped(f"symbols of libraries: {', '.join(target['symbols']) or 'none'}"))
    if body["device"]:
        say(wrapped(f"device: {body['device']}, on the platform {body['platform']}"))
    if body["replicas"] * body["partitions"] > 1:
        say(wrapped(f"devices: {body['replicas']} replicas × {body['partitions']} partitions"))
    parameters = ", ".join(f"{p['name']}: {p['shape']}" for p in body["parameters"])
    say(wrapped(f"entry: {body['name']}({parameters}) -> {body['result']}"))
    right = [Column("offset", justify="right"), Column("bytes", justify="right")]
    rows = [(s["name"], f"{s['offset']:,}", f"{s['bytes']:,}") for s in body["sections"]]
    say("\n" + table([Column("section"), *right], rows))
    columns = [Column("allocation"), Column("kind"), Column("bytes", justify="right"), Column("align"), Column("holds")]
    held = enumerate(body["allocations"])
    lines = [(str(n), a["kind"], f"{a['bytes']:,}", str(a["alignment"]), a["holds"]) for n, a in held]
    say("\n" + table(columns, lines))
    kernels = [(k["name"], k["emitter"], str(k["arguments"])) for k in body["kernels"]]
    say("\n" + table([Column("kernel"), Column("emitter"), Column("arguments")], kernels) + "\n")
