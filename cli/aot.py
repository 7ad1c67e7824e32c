"""`testbed aot MODULE -o DIR`: compiles a module ahead of time to an object file, a C header and an example."""

from __future__ import annotations

from pathlib import Path

import click

from .output import say, wrapped
from .params import MODULE, emitters_option

RELOCATIONS = ("static", "pic", "pie")


@click.command()
@click.argument("module", type=MODULE)
@click.option("-o", "--output", required=True, metavar="DIR", help="Folder to write. It must not exist or be empty.")
@click.option(
    "--target", metavar="ARCH", help="x86_64, aarch64, riscv64, or a triple of Linux. [default: this machine's]"
)
@click.option(
    "--cpu", metavar="CPU", help="Processor: x86-64-v3, a name of LLVM, or host. [default: the least of ARCH]"
)
@click.option("--features", metavar="LIST", help="More of LLVM's features, as +avx2,-sse4a.")
@click.option("--entry-point", metavar="NAME", help="The C function. [default: the module's name]")
@click.option(
    "--relocation-model", type=click.Choice(RELOCATIONS), default="pic", show_default=True, help="How it is linked."
)
@emitters_option("legacy, mlir, ledger, flags: mlir,reduce=legacy; or c: C99 instead of an object file.")
def command(
    module: str,
    output: str,
    target: str | None,
    cpu: str | None,
    features: str | None,
    entry_point: str | None,
    relocation_model: str,
    emitters: str,
) -> int:
    """Compile MODULE ahead of time: NAME.o (or NAME.c), NAME.h, and an example main.c with its Makefile.

    It needs nothing but libm. Its function runs on one thread and gives the bits of testbed run with the same
    CPU.
    """
    from ..backends.host.ahead import AheadOptions
    from ..codegen.options import EmitOptions, Target
    from ..codegen.targets import target_of
    from ..formats.whole_files import write_folder
    from ..migration.compile import compile_program_ahead
    from ..migration.flags import Flags
    from ..migration.programs import load_program

    chosen = target_of(target or Target.machine().architecture, cpu, features)
    options = AheadOptions(EmitOptions(chosen), entry_point, relocation_model)
    program, flags, folder = load_program(module), Flags.parse(emitters), Path(output)

    def fill(work: Path) -> dict[str, int]:
        files = compile_program_ahead(program, flags, options)
        return {name: (work / name).write_bytes(data) for name, data in files.items()}

    sizes = write_folder(folder, fill)
    files = ", ".join(f"{name} ({size:,} bytes)" for name, size in sizes.items())
    say(wrapped(f"{folder}: {files}; for {chosen.triple}, {chosen.cpu}"))
    return 0
