"""`testbed ffi build HANDLERS -o DIR`: writes handlers whose bodies are kernels as C, objects and a shared library."""

from __future__ import annotations

import runpy
from pathlib import Path

import click

from ..formats.whole_files import write_folder
from ..hlo.errors import InputError, TestbedError
from .output import say, wrapped


@click.group()
def command() -> None:
    """Work with handlers of XLA's FFI."""


@command.command()
@click.argument("handlers", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-o", "--output", required=True, metavar="DIR", help="Folder to write. It must not exist or be empty.")
@click.option("--name", metavar="NAME", help="Name of the library. [default: the file's]")
@click.option("--no-link", is_flag=True, help="Write C, objects and a Makefile only.")
def build(handlers: Path, output: str, name: str | None, no_link: bool) -> int:
    """Build the handlers of a Python file that are made with bind()….to_kernel(…), for programs without Python.

    Each is a C function with the name of its variable. The library is built where a C compiler is installed.
    """
    from ..ffi.binding.native import built, link

    files = built(name or handlers.stem, _found(handlers))

    def fill(work: Path) -> list[str]:
        for file, data in files.items():
            (work / file).write_bytes(data)
        library = None if no_link else link(work, name or handlers.stem)
        return [*files, *([library.name] if library else [])]

    made = write_folder(Path(output), fill)
    rest = "" if no_link or made[-1].endswith(".so") else "; no C compiler here: run make where there is one"
    say(wrapped(f"{output}: {', '.join(made)}{rest}"))
    return 0


def _found(path: Path) -> dict:
    """The handlers of a file by the names of their variables. Raises InputError that names what cannot be built."""
    from ..ffi.binding.handler import Handler
    from ..ffi.binding.native import KernelHandler

    try:
        values = runpy.run_path(str(path), run_name=path.stem)
    except TestbedError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}: {type(error).__name__}: {error}", remedy="the file must run by itself") from None
    handlers = {n: v for n, v in values.items() if isinstance(v, Handler)}
    for name, one in handlers.items():
        if not isinstance(one, KernelHandler):
            what = f"{path}: the body of {name} is Python"
            raise InputError(what, remedy="make it with ffi.bind()….to_kernel(a numba function or ffi.Kernel)")
    if not handlers:
        raise InputError(f"{path}: defines no handlers", remedy="name = ffi.bind().arg(…).ret(…).to_kernel(…)")
    return handlers
