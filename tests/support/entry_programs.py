"""Programs for tests of the native entry from Python, and calls of them in a process of their own."""

import functools
import subprocess
import sys

import numpy as np
import pytest

import testbed

from ...backends.host.entry import probe
from ...backends.host.executable import HostExecutable

NEEDS_ENTRY = pytest.mark.skipif(probe(HostExecutable, "_native") is None, reason="needs a Python that the entry knows")


@functools.cache
def end_first_run():
    """Run a program: the first run of a process does not prepare the native entry (backends/host/executable.py)."""
    testbed.compile(ADD, "legacy")(A, B)


def made(text, emitters="legacy"):
    """An executable that has run once: from then on the native functions serve it."""
    end_first_run()
    program = testbed.compile(text, emitters)
    program(*(np.zeros(leaf.dims, leaf.dtype) for leaf in program.inputs))
    return program


def served(program):
    return program._contexts.program.calls


ADD = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT z = f32[8] add(x, y)
}"""
PAIR = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  d = f32[8] add(x, x)
  ROOT t = (f32[8], f32[8]) tuple(n, d)
}"""
A, B = np.arange(8, dtype=np.float32), np.full(8, 2, np.float32)
SCALE = """HloModule m
ENTRY e {{
  x = {0}[] parameter(0)
  y = {0}[] parameter(1)
  ROOT r = {0}[] {1}(x, y)
}}"""

CHILD = """
import os, sys, threading
import numpy as np
import testbed
f = testbed.compile('''HloModule m
ENTRY e { x = f32[8] parameter(0)
 ROOT y = f32[8] add(x, x) }''')
x = np.arange(8, dtype=np.float32)
kept = [f(x) for _ in range(100)]
"""


def child(code):
    return subprocess.run([sys.executable, "-c", CHILD + code], capture_output=True, text=True, timeout=300)
