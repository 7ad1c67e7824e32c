"""The public API: lazy to import, text or module in, arrays out."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import testbed

TEXT = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT t = f32[4] negate(p)
}
"""
X = np.arange(4, dtype=np.float32)
ROOT = Path(__file__).parents[2]

SCRIPT = """
import pathlib, sys
root = pathlib.Path(sys.argv[1])
import importlib.util
spec = importlib.util.spec_from_file_location("testbed", root / "__init__.py", submodule_search_locations=[str(root)])
module = sys.modules["testbed"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(" ".join({name.partition(".")[0] for name in sys.modules}))
"""


def test_importing_the_package_loads_nothing_heavy():
    result = subprocess.run([sys.executable, "-c", SCRIPT, str(ROOT)], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    loaded = set(result.stdout.split())
    assert "testbed" in loaded and not loaded & {"numpy", "llvmlite", "mlir", "ml_dtypes", "jax", "click", "hypothesis"}


@pytest.mark.parametrize("name", [n for n in dir(testbed) if not n.startswith("__")])
def test_every_public_name_loads(name):
    assert callable(getattr(testbed, name)) or name in ("ffi", "ops")


def test_evaluate_takes_text_or_a_module():
    for source in (TEXT, testbed.parse(TEXT)):
        (y,) = testbed.evaluate(source, [X])
        np.testing.assert_array_equal(y, -X)
    with pytest.raises(testbed.InputError, match="no module can be read from int"):
        testbed.evaluate(3)


def test_parse_names_the_file():
    with pytest.raises(testbed.ParseError, match=r"^my\.hlo:\d+:\d+: "):
        testbed.parse("HloModule m\nENTRY e { p = }", "my.hlo")


@pytest.mark.parametrize(
    "emitters, stack",
    [("legacy", "legacy"), ("mlir", "mlir"), ("mlir,negate=legacy", "legacy"), (testbed.Flags.parse("mlir"), "mlir")],
)
def test_compile_and_run_on_either_stack(emitters, stack):
    executable = testbed.compile(TEXT, emitters)
    np.testing.assert_array_equal(executable.execute([X])[0], -X)
    np.testing.assert_array_equal(testbed.run(TEXT, [X], emitters)[0], -X)
    assert [s for _, s in executable.kernels] == [stack]
    assert list(executable.timings) == ["verify", "plan", "emit", "optimize", "codegen", "load"]


def test_unknown_flags_are_refused():
    with pytest.raises(testbed.TestbedError, match="did you mean 'mlir'"):
        testbed.compile(TEXT, "mlri")


def test_an_lhlo_program_is_a_source_and_keeps_its_plan(tmp_path):
    from ...lhlo import from_plan

    made = testbed.compile(TEXT)
    text = from_plan(made.plan).to_text()
    path = tmp_path / "m.lhlo.mlir"
    path.write_text(text)
    for source in (path, text, text.encode()):
        again = testbed.compile(source, "mlir")
        assert [k for k, _ in again.kernels] == [k for k, _ in made.kernels]
        np.testing.assert_array_equal(again(X), -X)
        np.testing.assert_array_equal(testbed.evaluate(source, [X])[0], -X)
