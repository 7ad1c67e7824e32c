"""Modules that XlaBuilder builds, and arrays to run them on."""

from __future__ import annotations

import numpy as np

import testbed
from testbed import XlaBuilder, ops

from ...hlo.equality import difference
from ...migration.api import to_text

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4), dtype=np.float32)
Y = RNG.standard_normal((3, 4), dtype=np.float32)
V = RNG.standard_normal(4, dtype=np.float32)


def built(make, *arrays):
    """The module of `make(builder, parameter…)`, which is also read back from its text."""
    b = XlaBuilder("case")
    values = [ops.parameter(b, n, array, f"x{n}") for n, array in enumerate(arrays)]
    module = b.build(make(b, *values))
    assert difference(module, testbed.parse(to_text(module))) is None
    return module


def evaluated(make, *arrays):
    return testbed.evaluate(built(make, *arrays), arrays)


def add(a, b):
    return a + b
