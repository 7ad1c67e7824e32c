"""`testbed jax`: kernels by stack, form and time; findings of what fails or differs."""

import json
import sys

import pytest

from ...cli import jax as command
from ...cli.main import main
from ...differential.finding import read_finding
from ...pjrt import report, settings
from .children import needs_jax

TRAIN = """
import jax, jax.numpy as jnp, numpy as np
w = jnp.ones((64, 32), jnp.float32) / 100
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w))
x = np.linspace(-1, 1, 256, dtype=np.float32).reshape(4, 64)
for _ in range(7):
    w = step(w, x)
print(float(w.sum()))
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path, monkeypatch):
    folder = tmp_path / "plugins" / "jax_plugins" / "testbed_of_test"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from testbed.pjrt.discovery import initialize\n")
    paths = [str(tmp_path / "plugins"), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))


def run(tmp_path, *options, code=TRAIN):
    file, out = tmp_path / "program.py", tmp_path / "out.json"
    file.write_text(code)
    status = main(["jax", "--json", str(out), *options, "--", sys.executable, "-P", str(file)])
    return status, json.loads(out.read_text()) if out.exists() else None


def test_names_of_variables_are_the_plugins():
    names = command.REPORT_VARIABLE, command.PROFILE_VARIABLE, command.REPRO_VARIABLE
    assert names == (report.REPORT_VARIABLE, settings.PROFILE_VARIABLE, settings.REPRO_VARIABLE)


@needs_jax
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_kernels_are_listed_with_stack_form_and_time(tmp_path, capfd, stack):
    status, found = run(tmp_path, "--emitters", stack)
    text = capfd.readouterr().out
    assert status == 0
    rows = [row for row in found["kernels"] if row["calls"] == 7]
    assert rows and all(row["stack"] == stack and row["nanoseconds"] > 0 for row in rows)
    assert any(row["form"].startswith("dot/") for row in rows)
    assert any(row["source"].endswith("program.py:4") for row in rows)
    assert f"{stack}: {len(found['kernels'])} kernels" in text and "program.py:4" in text


@needs_jax
def test_shadows_are_counted(tmp_path, capfd):
    status, found = run(tmp_path, "--emitters", "shadow", "--repro", str(tmp_path / "repro"))
    assert status == 0
    assert found["shadows"]["kernels"] >= 7 and found["shadows"]["findings"] == []
    assert "runs of kernels on both stacks" in capfd.readouterr().out


@needs_jax
def test_what_fails_becomes_a_finding(tmp_path, capfd):
    code = (
        "import jax, jax.numpy as jnp\n"
        "f = jax.jit(lambda x: jax.pure_callback(lambda v: 1 / 0, jax.ShapeDtypeStruct((), jnp.float32), x))\n"
        "f(jnp.float32(3)).block_until_ready()\n"
    )
    status, found = run(tmp_path, "--no-times", "--repro", str(tmp_path / "repro"), code=code)
    assert status == 1 and all(row["calls"] is None for row in found["kernels"])
    (folder,) = (tmp_path / "repro").iterdir()
    finding = read_finding(folder)
    assert "ZeroDivisionError" in finding.sentence and [x.tolist() for x in finding.inputs] == [3.0]
    assert f"finding: {folder}" in capfd.readouterr().err


def test_errors_of_the_command(tmp_path, capfd):
    assert main(["jax", "--", str(tmp_path / "none")]) == 2
    assert "No such file" in capfd.readouterr().err
    assert main(["jax", "--emitters", "nonsense", "--", sys.executable, "-c", "pass"]) == 2
    assert main(["jax", "--", sys.executable, "-c", "import sys; sys.exit(7)"]) == 7
    assert "used no JAX" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("source", "wanted"),
    [("/a/b/train.py:3", "train.py:3"), ("jit(f)/jvp()/mul;jit(f)/add", "mul"), ("", "")],
)
def test_sources_are_short(source, wanted):
    assert command.short(source) == wanted
