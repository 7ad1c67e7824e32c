"""`testbed setup`: makes or completes .venv. The launcher handles it before Python starts; this file is for --help.

`provide` adds an extra when it is first used.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

import click

ROOT = Path(__file__).absolute().parents[1]
SCRIPT = ROOT / "tools/python/setup_venv.py"


@click.command()
@click.option("--xla", is_flag=True, help="Also install jaxlib and JAX, for the stack xla and examples/make.py.")
@click.option("--dev", is_flag=True, help="Also install the test tools, for tests, lint and types.")
@click.option("--plot", is_flag=True, help="Also install matplotlib and Jinja2, for plots and the board.")
@click.option(
    "--handlers", is_flag=True, help="Also install libraries with FFI handlers and JAX, for tests of custom calls."
)
@click.option("--gpu", is_flag=True, help="Also install an assembler of PTX and a linker, for tests of code for GPUs.")
@click.option("--opencl", is_flag=True, help="Also install Intel's OpenCL runtime (276 MB), for the platform opencl.")
def command(**extras: bool) -> int:
    """Make .venv from the lock, or complete it.

    The test tools and matplotlib are also installed when they are first used.
    """
    if not SCRIPT.exists():
        raise click.UsageError("only a checkout has an environment to set up; an installed testbed has its own")
    return _set_up(*(name for name, chosen in extras.items() if chosen))


def _set_up(*extras: str) -> int:
    return subprocess.run([sys.executable, "-B", SCRIPT, *(f"--{name}" for name in extras)]).returncode


def provide(extra: str, package: str) -> None:
    """Install an extra in the checkout's .venv, unless the package that it is for is there.

    Raises InputError where the environment is not the checkout's own, or where the installation fails.
    """
    from ..hlo.errors import InputError

    if find_spec(package) is not None:
        return
    if not SCRIPT.exists() or Path(sys.prefix) != ROOT / ".venv":
        raise InputError(
            f"this needs {package}", remedy=f"pip install 'xla-testbed[{extra}]', or pip install {package}"
        )
    failed = _set_up(extra)
    invalidate_caches()
    if failed or find_spec(package) is None:
        raise InputError(f"{package} could not be installed", remedy=f"run ./testbed setup --{extra}")
