"""`testbed setup`: makes or completes .venv. The launcher handles it before Python starts; this file is for --help."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

SCRIPT = Path(__file__).absolute().parents[1] / "tools/python/setup_venv.py"


@click.command()
@click.option("--xla", is_flag=True, help="Also install JAX, for the stack xla and examples/make.py.")
def command(xla: bool) -> int:
    """Make .venv from the lock, or complete it."""
    if not SCRIPT.exists():
        raise click.UsageError("only a checkout has an environment to set up; an installed testbed has its own")
    return subprocess.run([sys.executable, "-B", SCRIPT, *(["--xla"] if xla else [])]).returncode
