"""The examples are complete, small, free of source locations, and equal to the output of examples/make.py."""

import importlib.metadata
import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ...backends.opencl.library import devices

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "examples").glob("*/module.hlo"))
SCRIPTS = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "make", "programs"))
HAS_JAX = importlib.util.find_spec("jax") is not None
WRITER = HAS_JAX and importlib.metadata.version("jaxlib").startswith("0.10.")
NOT_EMITTED = {"fft", "custom-call", "map", "rng"}


def test_each_program_has_its_folder():
    programs = re.findall(r"^def (\w+)\(\) -> Program:", (ROOT / "examples/programs.py").read_text(), re.M)
    assert [folder.name for folder in FOLDERS] == sorted(programs) != []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_is_complete_small_and_clean(folder):
    assert {file.name for file in folder.iterdir()} == {"module.hlo", "module.stablehlo.mlir", "io.npz"}
    assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000
    hlo, mlir = (folder / "module.hlo").read_text(), (folder / "module.stablehlo.mlir").read_text()
    assert "metadata=" not in hlo and "FileNames" not in hlo and "loc(" not in mlir
    assert not NOT_EMITTED & set(re.findall(r" ([a-z-]+)\(", hlo))
    keys = np.load(folder / "io.npz").files
    inputs = [key for key in keys if key.startswith("in")]
    outputs = [key for key in keys if key.startswith("out")]
    assert keys == [f"in{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))] and outputs


@pytest.mark.xla
@pytest.mark.skipif(not HAS_JAX, reason="needs ./testbed setup --xla")
@pytest.mark.skipif(not WRITER, reason="needs the jaxlib that wrote the examples, 0.10, which Python 3.11 has")
def test_making_them_again_changes_nothing():
    done = subprocess.run(
        [sys.executable, ROOT / "examples/make.py", "--check"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def marks_of(script: Path) -> list:
    """What an example needs."""
    text, marks = script.read_text(encoding="utf-8"), []
    if "import jax" in text or "jaxlib" in text:
        marks += [pytest.mark.xla, pytest.mark.skipif(not HAS_JAX, reason="needs ./testbed setup --xla")]
    if 'platform="opencl"' in text:
        found, why = devices()
        marks.append(pytest.mark.skipif(not found, reason=f"platform opencl: {why}"))
    return marks


@pytest.mark.parametrize("script", [pytest.param(path, id=path.stem, marks=marks_of(path)) for path in SCRIPTS])
def test_a_program_of_the_examples_runs_and_checks_itself(script, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out and "assert" in script.read_text(encoding="utf-8")
