"""Formatting, lint, types and layers in one go: `.venv/bin/python tools/lint.py [--fix]`. Settings: pyproject.toml."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).absolute().parents[1]


def run(title: str, command: list[str], cwd: Path = ROOT, environ: dict[str, str] | None = None) -> bool:
    print(f"== {title}", flush=True)
    return subprocess.run(command, cwd=cwd, env={**os.environ, **(environ or {})}).returncode == 0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="reformat, and repair what ruff can repair")
    fix = parser.parse_args(argv).fix
    ruff = [sys.executable, "-m", "ruff"]
    good = [
        run("ruff check", [*ruff, "check", *(["--fix"] if fix else []), "."]),
        run("ruff format", [*ruff, "format", *([] if fix else ["--check"]), "."]),
    ]
    # mypy and import-linter find a package by its folder's name: give the checkout the right one.
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "testbed").symlink_to(ROOT)
        settings = str(ROOT / "pyproject.toml")
        here = {"PYTHONPATH": folder, "MYPYPATH": folder}
        cache = str(ROOT / ".mypy_cache")
        mypy = [sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", cache, "-p", "testbed"]
        good.append(run("mypy", mypy, Path(folder), here))
        linter = "from importlinter.cli import lint_imports_command; lint_imports_command()"
        layers = [sys.executable, "-c", linter, "--config", settings, "--no-cache"]
        good.append(run("import-linter", layers, Path(folder), here))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
