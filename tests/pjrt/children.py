"""Runs Python code in a process in which JAX finds the plugin."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed (./testbed setup --xla)")


def run_with_plugin(
    code: str, folder: Path, timeout: float = 300, check: bool = True, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run code with JAX_PLATFORMS=testbed. folder: a temporary one. variables: of the environment."""
    plugin = folder / "jax_plugins" / "testbed_of_test"
    plugin.mkdir(parents=True, exist_ok=True)
    (plugin / "__init__.py").write_text("from testbed.pjrt.discovery import initialize\n")
    environment = {**os.environ, "JAX_PLATFORMS": "testbed", **variables}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, sys.path)])
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done
