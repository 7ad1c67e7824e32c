"""Mutated calls give errors, never a crash: configs, attributes, counts, types, ranks, sizes of structures, stages.

They run in child processes. `python -m testbed.tests.generators.mutated_ffi_calls` is the deep run, of 100,000.
"""

from __future__ import annotations

import subprocess
import sys

from ..generators.mutated_ffi_calls import SOURCE
from ..support.cpp import compile_cpp


def test_mutated_calls_end_in_errors_only():
    path = compile_cpp(SOURCE)
    command = [
        sys.executable,
        "-m",
        "testbed.tests.generators.mutated_ffi_calls",
        "--library",
        str(path),
        "--count",
        "800",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    good, errors, total = (int(word) for word in done.stdout.split()[:3])
    assert total == 800 and good + errors == total and min(good, errors) > 100
