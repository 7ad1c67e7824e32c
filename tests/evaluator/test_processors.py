"""The oracle gives the same bits whichever SIMD loops NumPy chooses for the processor."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from testbed.evaluator.reference import rounding

from ..cases.elementwise_cases import cases

CASES = list(cases())

SCRIPT = """
import hashlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("testbed", sys.argv[1], submodule_search_locations=[sys.argv[2]])
module = sys.modules["testbed"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import numpy as np
from testbed.evaluator.evaluator import evaluate
from testbed.formats.text.parser import parse_module
from testbed.tests.cases.elementwise_cases import cases, random_values, special_values

COUNT = 2048
for case in cases():
    rng = np.random.default_rng(7)
    pairs = np.meshgrid(*[special_values(d) for d in case.operands[:2]])
    lists = [*(p.reshape(-1) for p in pairs), *(special_values(d) for d in case.operands[2:])]
    inputs = [np.resize(np.concatenate([v[:COUNT // 2], random_values(rng, d, COUNT)]), COUNT)
              for v, d in zip(lists, case.operands)]
    digest = hashlib.sha256()
    for x in evaluate(parse_module(case.text(COUNT)), inputs):
        nan = x != x  # the bits of a NaN mean nothing
        digest.update(np.where(nan, np.zeros_like(x), x).tobytes() + nan.tobytes())
    print(case.id, digest.hexdigest())
"""


def bits(disabled: str) -> dict[str, str]:
    """Case → digest of its results, from a process in which NumPy does not use these extensions."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SCRIPT, str(root / "__init__.py"), str(root)]
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": disabled}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


def extensions() -> list[str]:
    """The instruction-set extensions that NumPy has loops for and that this processor has, the widest last."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]


def test_results_do_not_depend_on_numpys_loops():
    found = extensions()
    if not found:
        pytest.skip("NumPy has no loops for extensions of this processor")
    usual = bits("")
    assert usual.keys() == {case.id for case in CASES}
    for n in range(len(found)):
        without = bits(" ".join(found[n:]))
        assert "".join(f"{case} " for case in usual if usual[case] != without[case]) == "", found[n:]


def test_a_large_array_is_computed_in_blocks_with_the_same_bits():
    x = np.random.default_rng(5).standard_normal((3, rounding.BLOCK), np.float32)
    y = x[:, :1]
    whole = rounding.rounded(np.arctan2, x, y)
    parts = [rounding.rounded(np.arctan2, x[:, n : n + 1000], y) for n in range(0, rounding.BLOCK, 1000)]
    assert whole.shape == x.shape and whole.dtype == x.dtype
    assert np.array_equal(whole.view(np.uint32), np.concatenate(parts, 1).view(np.uint32))
