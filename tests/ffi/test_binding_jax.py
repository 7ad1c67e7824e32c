"""Handlers in Python called by JAX, in a process of its own: what it computes, and that it ends without a sound.

The cases are those of tests/support/ffi_in_jax.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support/ffi_in_jax.py"

CASES = [
    "eager_and_jit",
    "vmap",
    "loops",
    "gradient",
    "sharded",
    "on_threads",
    "errors",
    "dtypes",
    "layouts",
    "state",
    "attribute_values",
    "context",
    "futures",
]

pytestmark = [
    pytest.mark.xla,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs ./testbed setup --xla"),
]


@pytest.fixture(scope="module")
def done():
    environ = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, str(SCRIPT)], env=environ, capture_output=True, text=True, timeout=280)


@pytest.mark.parametrize("case", CASES)
def test_jax_calls_handlers(done, case):
    answers = {row["case"]: row["answer"] for row in map(json.loads, done.stdout.splitlines())}
    assert answers.get(case, done.stderr[-3000:]) == "ok"
    assert answers.keys() - {"version"} == set(CASES)


def test_the_process_ends_with_states_alive_and_without_a_sound(done):
    assert (done.returncode, done.stderr) == (0, "")
    assert '"version"' in done.stdout.splitlines()[-1]
