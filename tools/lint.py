"""Runs formatting, lint, type, layer and word checks: `.venv/bin/python3 tools/lint.py [--fix]`; see pyproject.toml.

With `--commits REV..` it checks the messages of these commits, and nothing else.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).absolute().parents[1]
SETTINGS = ROOT / "pyproject.toml"


def run(title: str, command: list[str], cwd: Path = ROOT, environ: dict[str, str] | None = None) -> bool:
    print(f"== {title}", flush=True)
    return subprocess.run(command, cwd=cwd, env={**os.environ, **(environ or {})}).returncode == 0


def provide_tools() -> None:
    """Install the dev extra in .venv when it is first used."""
    needed = [name for name in ("ruff", "mypy", "importlinter") if find_spec(name) is None]
    if not needed:
        return
    if Path(sys.prefix) != ROOT / ".venv":
        sys.exit(f"lint: {', '.join(needed)} not installed; run ./testbed setup --dev and use .venv/bin/python3")
    subprocess.run([sys.executable, "-B", ROOT / "tools/python/setup_venv.py", "--dev"], check=True)
    invalidate_caches()


def ruff(fix: bool) -> bool:
    command = [sys.executable, "-m", "ruff"]
    checked = run("ruff check", [*command, "check", "--output-format=concise", *(["--fix"] if fix else []), "."])
    options = [] if fix else ["--check", "--output-format=concise"]
    return run("ruff format", [*command, "format", *options, "."]) and checked


def as_testbed(title: str, command: list[str]) -> bool:
    """Run a tool that locates a package by its folder's name, from a folder where the checkout is named `testbed`."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "testbed").symlink_to(ROOT)
        return run(title, command, Path(folder), {"PYTHONPATH": folder, "MYPYPATH": folder})


def types() -> bool:
    command = [sys.executable, "-m", "mypy", "--config-file", str(SETTINGS), "-p", "testbed"]
    return as_testbed("mypy", [*command, "--cache-dir", str(ROOT / ".mypy_cache")])


def layers() -> bool:
    linter = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return as_testbed("import-linter", [sys.executable, "-c", linter, "--config", str(SETTINGS), "--no-cache"])


def script(name: str, *arguments: str) -> bool:
    return run(name, [sys.executable, str(ROOT / "tools" / f"{name}.py"), *arguments])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="reformat, and apply ruff's fixes")
    parser.add_argument("--only", choices=["ruff", "types", "layers", "words"], help="run one check only")
    parser.add_argument("--commits", metavar="REV..", help="check the messages of these commits, and nothing else")
    options = parser.parse_args(argv)
    if options.commits:
        return 0 if script("commits", options.commits) else 1
    provide_tools()
    checks = {"ruff": lambda: ruff(options.fix), "types": types, "layers": layers, "words": lambda: script("words")}
    good = [check() for name, check in checks.items() if options.only in (None, name)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
