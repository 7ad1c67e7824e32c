"""JAX on the plugin, in a process of its own: checks.py, on each stack."""

import json

import pytest

from . import checks
from .children import needs_jax, run_with_plugin

pytestmark = needs_jax


@pytest.fixture(scope="module", params=["legacy", "mlir"])
def results(request, tmp_path_factory):
    done = run_with_plugin(
        "from testbed.tests.pjrt import checks; checks.run_all()",
        tmp_path_factory.mktemp("plugin"),
        TESTBED_EMITTERS=request.param,
    )
    return json.loads(done.stdout.rpartition("RESULTS")[2])


@pytest.mark.parametrize("name", [check.__name__ for check in checks.CHECKS])
def test_check(results, name):
    assert not results[name], results[name]


def test_a_program_that_does_not_name_the_platform_does_not_start_it(tmp_path):
    code = "import jax, sys; print(jax.devices()[0].platform, 'testbed.pjrt.native' in sys.modules)"
    assert run_with_plugin(code, tmp_path, JAX_PLATFORMS="").stdout.split() == ["cpu", "False"]


def test_processes_end_cleanly(tmp_path):
    """Threads of the framework still destroy what they hold while the interpreter ends."""
    code = (
        "import jax, jax.numpy as jnp\n"
        "f = jax.jit(lambda x: x + 1)\n"
        "kept = [f(jnp.arange(n + 1.0)) for n in range(3)]\n"
        "compiled = f.lower(1.0).compile()\n"
    )
    for _ in range(3):
        done = run_with_plugin(code, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_emitters_are_chosen_by_the_environment(tmp_path):
    code = (
        "import jax, jax.numpy as jnp\n"
        "from testbed.pjrt import plugin\n"
        "print(jax.jit(jnp.sin)(1.0))\n"
        "print({s for loaded in plugin.table().executables.held() for _, s in loaded.compiled.executable.kernels})\n"
    )
    assert "{'legacy'}" in run_with_plugin(code, tmp_path, TESTBED_EMITTERS="legacy").stdout
    assert "{'mlir'}" in run_with_plugin(code, tmp_path, TESTBED_EMITTERS="mlir").stdout
    done = run_with_plugin(code, tmp_path, check=False, TESTBED_EMITTERS="nonsense")
    assert done.returncode and "nonsense" in done.stderr


def test_devices_are_counted_by_the_environment(tmp_path):
    code = (
        "import jax, numpy as np\n"
        "x = jax.device_put(np.ones(3, np.float32), jax.devices()[2])\n"
        "y = jax.jit(lambda x: x + 1)(x)\n"
        "print(len(jax.devices()), y.devices() == {jax.devices()[2]}, y.tolist())\n"
    )
    assert run_with_plugin(code, tmp_path, TESTBED_DEVICES="3").stdout.split("\n")[0] == "3 True [2.0, 2.0, 2.0]"
    done = run_with_plugin(code, tmp_path, check=False, TESTBED_DEVICES="many")
    assert done.returncode and "'many' is no number of devices" in done.stderr
