"""Rehearses the removal of old emitters: a copy of the checkout without them, and what still works there.

legacy:elemental is the first step of the plan: the files that only the elemental graph needs, with an empty table in
their place; the unnested emitters stay. legacy is the last one: the whole room.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from .output import say, wrapped

ROOT = Path(__file__).resolve().parents[1]
TABLE = "numerics/elementwise.py"
EMPTY = '"""The elemental emitters are removed."""\n\nEMIT: dict = {}\n'
"""What is left of the elemental emitters' table."""

USUAL_TESTS = ("tests/conformance", "tests/lhlo", "tests/mlir_emitters")
NEEDS_OLD = {"legacy": re.compile(r"\blegacy\b"), "legacy:elemental": re.compile(r"\blegacy\b|\bcheck\b")}
"""Tests with such a word run the old stack: by its name, or through `check`, which runs all stacks that there are."""

ALONE = """
from testbed.differential.row_programs import workloads_of
from testbed.formats.text.parser import parse_module
from testbed.hlo.errors import UnsupportedError
from testbed.migration import Flags, compile_module
from testbed.migration.units import CLASSES, UNITS
for unit in UNITS:
    missing = set()
    for text in [text for name in CLASSES for text in workloads_of(unit, name)]:
        try:
            compile_module(parse_module(text), Flags.parse("legacy"))
        except UnsupportedError as error:
            missing.add(error.what.split("(")[0])
    print(f"{unit}: {'needs ' + ', '.join(sorted(missing)) if missing else 'needs nothing of them'}")
"""
"""Prints for each unit what the old emitters lack for its programs."""


def rehearse(what: str, tests: Sequence[str]) -> int:
    """Print what depends on the emitters, and what becomes of tests and conformance without them. 1 if any fails."""
    root = ROOT
    if not (root / ".git").exists():
        raise click.UsageError("only a checkout with its history can be rehearsed on; this testbed is installed")
    for path in tests:
        if not (root / path).exists():
            raise click.UsageError(f"--tests {path}: no such file in {root}")
    with TemporaryDirectory(prefix="testbed-removal-") as folder:
        copy = Path(folder) / "checkout"
        _copy(root, copy)
        gone = remove(copy, what)
        say(wrapped(f"removed {len(gone)} files: {', '.join(gone)}"))
        for line in [*dependents(copy, gone), *_left(root / "legacy", gone)]:
            say(wrapped(line))
        if what != "legacy":
            for line in _python(copy, ["-c", ALONE]).stdout.splitlines():
                say(wrapped(f"legacy without them: {line}"))
        return _try_all(copy, what, tests or USUAL_TESTS)


def _copy(root: Path, copy: Path) -> None:
    """The files that git tracks or would add, as they are now."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in names:
        if name and (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, copy / name)


def remove(root: Path, what: str) -> list[str]:
    """Remove emitters from a checkout; returns the names of the files. The elemental table stays, empty."""
    room = root / "legacy"
    if what == "legacy":
        gone = sorted(path.relative_to(root).as_posix() for path in room.rglob("*.py"))
        shutil.rmtree(room)
        return gone
    only = elemental_only(room)
    for name in only:
        (room / name).unlink()
    (room / TABLE).write_text(EMPTY)
    return [f"legacy/{name}" for name in only]


def elemental_only(room: Path) -> list[str]:
    """Files of legacy/ that nothing but the elemental table needs, and the table itself."""
    files = _files(room)
    importers: dict[str, set[str]] = {name: set() for name in files}
    for importer, path in files.items():
        for name in _siblings(room, path):
            importers[name].add(importer)
    gone = {TABLE}
    while more := {name for name, by in importers.items() if by and by <= gone and name not in gone}:
        gone |= more
    return sorted(gone)


def _files(room: Path) -> dict[str, Path]:
    """The Python files of a room by their path in it."""
    return {path.relative_to(room).as_posix(): path for path in sorted(room.rglob("*.py"))}


def _siblings(room: Path, path: Path) -> Iterator[str]:
    """Files of its room that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        for module in (folder, *(folder / alias.name for alias in node.names)):
            file = module.parent / f"{module.name}.py"
            if file.is_relative_to(room) and file.is_file():
                yield file.relative_to(room).as_posix()


def dependents(root: Path, gone: Sequence[str]) -> list[str]:
    """Files of a checkout that import a file that is gone, each with what it imports."""
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in gone}
    modules -= {m for m in modules if (root / f"{m.replace('.', '/')}.py").exists()}  # the empty table
    found = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        hits = sorted(modules & set(_imported(path, name)))
        if hits:
            found.append(f"{name} still depends on them (imports {', '.join(hits)})")
    return found


def _imported(path: Path, name: str) -> Iterator[str]:
    """Modules of the checkout that a file imports, as legacy.dot, and names in them."""
    package = name.split("/")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def _left(room: Path, gone: Sequence[str]) -> list[str]:
    """Files that the elemental table imports and that stay, with the files that need them, too."""
    if f"legacy/{TABLE}" not in gone or "legacy/__init__.py" in gone:
        return []
    found = []
    stay = {name: path for name, path in _files(room).items() if f"legacy/{name}" not in gone}
    for name in sorted({*_siblings(room, room / TABLE)} & stay.keys()):
        users = [user for user, path in stay.items() if name in _siblings(room, path)]
        found.append(f"legacy/{name} stays: {', '.join(users)} need{'s' if len(users) == 1 else ''} it")
    return found


def _try_all(copy: Path, what: str, tests: Sequence[str]) -> int:
    runs, left_out = _tests(copy, what, tests)
    if left_out:
        say(wrapped(f"left out, because they run the old stack: {', '.join(left_out)}"))
    conform = ["-m", "testbed", "conform", "tests/corpus", "--stacks", "evaluator,mlir", "--jobs", "2"]
    failed = _report("conformance", _python(copy, conform))
    return int(_report("tests", _python(copy, ["-m", "pytest", "-q", *runs])) or failed) if runs else int(failed)


def _report(title: str, done: subprocess.CompletedProcess[str]) -> bool:
    """Print what became of a run; returns whether it failed."""
    failed = done.returncode != 0
    say(f"{title}: {'FAILED' if failed else 'passed'}")
    lines = [*done.stdout.splitlines(), *(done.stderr.splitlines() if failed else [])]
    for line in [line for line in lines if line.strip()][-20 if failed else -1 :]:
        say(wrapped(f"  {line}", 4))
    return failed


def _tests(copy: Path, what: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """(test files to run, those that run the old stack)."""
    files = {f for path in paths for f in ([copy / path] if path.endswith(".py") else (copy / path).rglob("test_*.py"))}
    names = [(f.relative_to(copy).as_posix(), bool(NEEDS_OLD[what].search(f.read_text()))) for f in sorted(files)]
    return [name for name, old in names if not old], [name for name, old in names if old]


def _python(copy: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy as the package `testbed`, on its own cache."""
    from ..tools.python.link_package import link_package

    packages = copy.parent / "packages"
    packages.mkdir(exist_ok=True)
    link_package(packages, copy)
    environ = {**os.environ, "PYTHONPATH": str(packages)}
    return subprocess.run([sys.executable, *arguments], cwd=copy, env=environ, capture_output=True, text=True)
