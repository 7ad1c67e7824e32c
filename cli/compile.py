"""`testbed compile MODULE -o PROG.tbx`: compiles a module to a file that `testbed exec` runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from .devices import Wish, partitions_option, replicas_option
from .keys import read_key
from .output import say, wrapped
from .params import FILE, MODULE, emitters_option, host_program_option


@click.command()
@click.argument("module", type=MODULE)
@click.option("-o", "--output", type=FILE, required=True, metavar="PROG.TBX", help="The file to write.")
@emitters_option("legacy, mlir, ledger, or flags: mlir,reduce=legacy.")
@replicas_option
@partitions_option
@click.option("--sign", type=FILE, metavar="KEY", help="Sign the program with the bytes of a file (docs/files.md).")
@host_program_option
def command(
    module: str,
    output: str,
    emitters: str,
    replicas: int | None,
    partitions: int | None,
    sign: str | None,
    host_program: str,
) -> int:
    """Compile MODULE and write it as a program: machine code, constants and the order of its kernels.

    With --cpu it runs on every processor of that kind, else on those that have the features of this one.
    """
    from ..backends.base import CompileOptions
    from ..migration.compile import compile_program
    from ..migration.flags import Flags
    from ..migration.programs import load_program

    key = read_key(sign)
    program = load_program(module)
    devices = Wish(replicas, partitions).devices(program.module)
    options = CompileOptions(replicas=devices.replicas, partitions=devices.partitions, host_program=host_program)
    executable = compile_program(program, Flags.parse(emitters), options)
    executable.save(output, key)
    counts = Counter(emitter for _, emitter in executable.kernels)
    kernels = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
    say(wrapped(f"{output}: {Path(output).stat().st_size:,} bytes; kernels: {kernels}; for {executable.target.triple}"))
    return 0
