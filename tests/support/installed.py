"""What is installed: the files of the wheel, listed from pyproject.toml, and a virtual environment that holds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from ...tools.python.packages import found as found_packages

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHECKOUT_ONLY = {"testbed/conftest.py", "testbed/setup.py"}


def contents() -> dict[str, Path]:
    """Name in the wheel → file of the checkout."""
    setuptools = PROJECT["tool"]["setuptools"]
    found: dict[str, Path] = {}
    for package in found_packages(ROOT):
        folder = ROOT.joinpath(*package.split(".")[1:])
        for pattern in ["*.py", *setuptools["package-data"].get(package, ())]:
            found |= {f"{package.replace('.', '/')}/{path.name}": path for path in folder.glob(pattern)}
    return {name: path for name, path in sorted(found.items()) if name not in CHECKOUT_ONLY}


def environment(folder: Path) -> Path:
    """A new virtual environment with the files of the wheel, and this one's packages for its dependencies.

    Returns its interpreter. Nothing is downloaded, and the checkout is not on its path.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    python = folder / "bin/python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip())
    for name, path in contents().items():
        target = packages / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    # Its own packages come first: `testbed` is the copy, although the other folders link the checkout.
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *_found_on_path()}
    (packages / "others.pth").write_text("".join(f"{path}\n" for path in sorted(others)), encoding="utf-8")
    return python


def _found_on_path() -> set[str]:
    """Folders of packages that only PYTHONPATH names, as under Bazel."""
    return {path for path in sys.path if os.path.isdir(os.path.join(path, "numpy"))}


def environ() -> dict[str, str]:
    """The environment variables without those that would find the checkout."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TESTBED_", "MYPY"))}
