"""A command that needs more memory than there is ends with one line that names the array."""

import subprocess
import sys

import pytest

from testbed.cli.memory_limit import available_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is set on Linux only")

CHILD = """
import sys
from testbed.cli import memory_limit
memory_limit.available_bytes = lambda: 1 << 30
sys.argv = ["testbed", *sys.argv[1:]]
from testbed.cli.start import start
sys.exit(start())
"""

MODULE = """HloModule large
ENTRY e {
  x = f32[SIZE]{0} parameter(0)
  y = f32[SIZE]{0} tanh(x)
  ROOT z = f32[SIZE]{0} multiply(y, x)
}
"""


def command(tmp_path, size, *arguments):
    module = tmp_path / "large.hlo"
    module.write_text(MODULE.replace("SIZE", str(size)))
    line = [sys.executable, "-c", CHILD, *arguments, str(module)]
    return subprocess.run(line, capture_output=True, text=True)


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "--emitters", "mlir"], ["diff", "--stacks", "evaluator,legacy"]]
)
def test_what_does_not_fit_is_named(tmp_path, arguments):
    done = command(tmp_path, 1 << 29, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "out of memory: " in done.stderr and "f32[536870912]" in done.stderr and "Traceback" not in done.stderr


def test_what_fits_runs(tmp_path):
    done = command(tmp_path, 1 << 20, "diff", "--stacks", "evaluator,legacy")
    assert done.returncode == 0, done.stderr


def test_the_machine_says_what_is_available():
    available = available_bytes()
    assert available is not None and 0 < available < 1 << 60
