"""A sample of JAX's own tests on the plugin (tools/jax_tests.py), from the folder that TESTBED_JAX_TESTS names."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ...tools import jax_tests
from ...tools.jax_tests import Run

FOLDER = Path(os.environ.get("TESTBED_JAX_TESTS") or jax_tests.ROOT.parent / "shared" / "jax_tests")
SAMPLE = {
    "fft_test.py": "",
    "ffi_test.py": "FfiTest",
    "python_callback_test.py": "test_callback_with",
    "linalg_test.py": "testSlogdet",
}
"""File → what the names of its tests have in them."""

pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="no tests of JAX: TESTBED_JAX_TESTS names the folder"),
    pytest.mark.skipif(find_spec("absl") is None, reason="JAX's tests need absl-py: pip install absl-py"),
]


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("file", SAMPLE)
def test_sample(file, stack, tmp_path, monkeypatch):
    plugin = tmp_path / "jax_plugins" / "testbed_of_test"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text("from testbed.pjrt.discovery import initialize\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    run = Run(FOLDER, tmp_path / "state", "testbed", stack, 1, 120.0, sys.executable)
    results = jax_tests.run_file(run, file, SAMPLE[file])
    known = jax_tests.known_failures(jax_tests.jax_version(sys.executable)).get(file, {})
    assert not list(jax_tests.surprises(file, results, known, {}))
    assert sum(r.outcome == jax_tests.PASSED for r in results) >= 2
