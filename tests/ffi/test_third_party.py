"""Libraries that others wrote for JAX, unmodified: their programs give on our runtime what they give in JAX."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

LIBRARIES = {"klujax": 6, "jax_finufft": 9, "celerite2": 7}
"""Library → programs of it."""

ALONE = 0.0
"""The largest difference of a program that is a custom call and moves of data: none."""

MIXED = 1e-11
"""The largest difference, relative to the largest magnitude, of one that XLA and we compute the rest of."""


def reports(library: str) -> dict[str, dict[str, Any]]:
    """Program → what a child process found: JAX's configuration and the registry of this process stay as they are."""
    if find_spec("jax") is None or find_spec(library) is None:
        pytest.skip(f"{library} is not installed (./testbed setup --handlers)")
    command = [sys.executable, "-m", "testbed.tests.support.third_party", library]
    # FINUFFT shares a sum among OpenMP's threads: on a busy machine, last bits differed between two runs.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_programs_give_jaxs_results(library: str):
    found = reports(library)
    assert len(found) == LIBRARIES[library]
    for name, report in found.items():
        assert report["targets"], f"{name} calls no handler"
        for stack in ("legacy", "mlir"):
            most = ALONE if report["alone"] else MIXED
            assert report["differences"][stack] <= most, f"{name} on {stack}"
        assert report["differences"]["evaluator"] <= MIXED, f"{name} in the evaluator"
