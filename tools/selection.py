"""Which tests depend on files: for `./testbed test --for FILE…` and `--changed [REV]`.

By imports (dependencies.py) and, for a file of a stack, by forms: a form is a way in which a stack emits a class of
kernels, and a record (record_forms.py) says which test files reached which forms.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from .dependencies import PACKAGE, Checkout

STACKS = ("legacy", "mlir_emitters")
"""Rooms that have a table FORMS in their forms.py; its rows have a name and the functions `fits` and `emit`."""

EVERYTHING = re.compile(r"pyproject\.toml|locks/[\w-]+\.txt")
"""What every test depends on: the settings of pytest, and installed packages."""

EVERY_FORM = "*"
"""In a record: the file started other Python processes, whose kernels nobody saw."""

READS_SOURCES = frozenset({"*.py", "**/*.py", "ls-files"})
"""Strings of a test that looks at all Python files."""

Record = Mapping[str, Sequence[str]]
"""Test file → `stack:form` for each form that it reached, or EVERY_FORM."""


class SelectionError(Exception):
    """What cannot be selected by, and the remedy."""


def select(checkout: Checkout, changed: Iterable[str], record: Record | None = None) -> dict[str, str]:
    """Test file → why it depends on one of the files, sorted. changed: paths relative to the checkout."""
    found: dict[str, str] = {}
    for file in sorted(changed):
        for test, why in _tests_of(checkout, file, record):
            found.setdefault(test, why)
    return dict(sorted(found.items()))


def _tests_of(checkout: Checkout, file: str, record: Record | None) -> Iterable[tuple[str, str]]:
    if EVERYTHING.fullmatch(file):
        return [(test, f"depends on {file}") for test in checkout.tests]
    whole = [test for test in whole_checkout(checkout) if not file.endswith(".py") or _reads_sources(checkout, test)]
    looking = [(test, "looks at the whole checkout") for test in whole]
    if not file.endswith(".py"):
        namers = frozenset(f for f in checkout.files if names(checkout.strings(f), file))
        return [*_needing(checkout, namers), *looking]
    if file not in checkout.files:  # gone: who imported it, imported the packages around it
        around = (f"{folder}/__init__.py" for folder in PurePosixPath(file).parents)
        return [*_needing(checkout, frozenset([*(f for f in around if f in checkout.files)][:1])), *looking]
    stack = file.partition("/")[0]
    if stack in STACKS and record is not None:
        return [*_by_forms(checkout, file, stack, record), *looking]
    return [*_needing(checkout, frozenset([file])), *looking]


def _needing(checkout: Checkout, files: frozenset[str]) -> Iterable[tuple[str, str]]:
    users = checkout.users(sorted(files))
    for test in checkout.tests:
        if test in users:
            yield test, f"needs {users[test]}" if users[test] != test else "is one of them"


def whole_checkout(checkout: Checkout) -> list[str]:
    """The tests that follow their own link to the checkout: tests/BUILD lists them."""
    listed = re.search(r"^WHOLE_CHECKOUT = \[(.*?)\]", (checkout.root / "tests/BUILD").read_text(), re.S | re.M)
    assert listed is not None, "tests/BUILD has no list WHOLE_CHECKOUT"
    return [f"tests/{name}" for name in re.findall(r'"([^"]+)"', listed[1])]


def _reads_sources(checkout: Checkout, test: str) -> bool:
    return bool(READS_SOURCES & checkout.strings(test))


def names(strings: Iterable[str], file: str) -> bool:
    """Whether a string is a file's name, a part of its path, or a pattern (`*.hlo`) of one."""
    parts = PurePosixPath(file).parts
    for text in strings:
        # A Path is made of parts: `ROOT / "tests/corpus" / name`.
        wanted = parts_of(text)
        if not PATTERN.fullmatch(text):
            found = any(parts[i : i + len(wanted)] == wanted for i in range(len(parts)))
        else:
            windows = (parts[i : i + len(wanted)] for i in range(len(parts) - len(wanted) + 1))
            found = any(all(map(fnmatchcase, window, wanted)) for window in windows)
        if wanted and found:
            return True
    return False


PATTERN = re.compile(r"(?=.*\*)([\w.-]+/|\*{1,2}/)*(\*\.\w[\w.]*|\*|[\w.-]+)")
"""Paths with wildcards: `*.hlo`, `modules/*/io.npz`, `**/*.md`."""


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of a path or pattern; of one with `**`, those behind it. None where each is a wildcard."""
    parts = tuple(part for part in text.rpartition("**")[2].split("/") if part not in ("", ".", ".."))
    return parts if any(part.strip("*") for part in parts) else ()


# -- by forms ---------------------------------------------------------------------------------------------------------
def _by_forms(checkout: Checkout, file: str, stack: str, record: Record) -> Iterable[tuple[str, str]]:
    """The tests that import a file of a stack directly, have no row in the record, or reached a form whose code it has.

    Where no form has it, because it serves all of them or chooses, all tests that need it.
    """
    forms = forms_with(checkout, file, homes_of(checkout, stack))
    if not forms:
        yield from _needing(checkout, frozenset([file]))
        return
    marked = {f"{stack}:{form}" for form in forms}
    for test in checkout.tests:
        closure = checkout.closure(test)
        if file not in closure:
            continue
        direct = [f for f in closure if not f.startswith(stack + "/") and file in checkout.named(f)]
        if direct:
            yield test, f"{min(direct)} imports {file}"
        elif test not in record:
            yield test, "has no row in the record of forms"
        elif EVERY_FORM in record[test]:
            yield test, "runs kernels in processes of its own"
        elif reached := sorted(marked & set(record[test])):
            yield test, f"reaches the form {reached[0]}"


def homes_of(checkout: Checkout, stack: str) -> dict[str, set[str]]:
    """Form → the files of its `fits` and `emit`; empty where the stack has no table that loads."""
    if f"{stack}/forms.py" not in checkout.files:
        return {}
    try:
        table = import_module(f"{PACKAGE}.{stack}.forms").FORMS
    except Exception as error:  # as it is edited, it may be anything
        print(f"testbed test: {stack}/forms.py does not load ({error}): selecting by imports only", file=sys.stderr)
        return {}
    return homes(table, checkout)


def homes(table: Iterable[Any], checkout: Checkout) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for form in table:
        modules = [_module_of(function) for function in (form.fits, form.emit)]
        files = (checkout.module(tuple(module.split("."))[1:]) for module in modules)
        found.setdefault(form.name, set()).update(f for f in files if f is not None)
    return found


def _module_of(function: Callable[..., Any]) -> str:
    while True:
        inner = getattr(function, "__wrapped__", None)
        inner = function.func if isinstance(function, functools.partial) else inner
        if inner is None:
            return function.__module__
        function = inner


def forms_with(checkout: Checkout, file: str, homes: Mapping[str, set[str]]) -> set[str]:
    """The forms to whose code a file belongs: their own files, and what these need of the stack.

    A file that more than half of them need is common to all: then none.
    """
    stack = file.partition("/")[0]
    found = {form for form, files in homes.items() if any(file in _within(checkout, home, stack) for home in files)}
    return found if 2 * len(found) <= len(homes) else set()


def _within(checkout: Checkout, file: str, stack: str) -> set[str]:
    """The files of a stack that one of them needs, by ways within the stack; not by way of packages."""
    found, left = {file}, [file]
    for reached in left:
        for other in checkout.named(reached):
            if other.startswith(stack + "/") and not other.endswith("/__init__.py") and other not in found:
                found.add(other)
                left.append(other)
    return found


def read_record(path: Path) -> Record | None:
    """A record of forms; None if there is none. Raises SelectionError for a file that is no record."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        document = json.loads(text)
        forms, rows = document["forms"], document["tests"]
        return {test: [forms[number] for number in numbers] for test, numbers in rows.items()}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise SelectionError(f"{path} is no record of forms ({error}): remove it, or write it anew") from None


# -- what changed -----------------------------------------------------------------------------------------------------
def changed_since(root: Path, revision: str) -> list[str]:
    """Files that differ from a revision, or from where this branch left it; and new ones. Raises SelectionError."""
    differing = _git(root, "diff", "--name-only", "--no-renames", "-z", "--merge-base", revision, "--")
    return sorted({*differing, *_git(root, "ls-files", "--others", "--exclude-standard", "-z")})


def _git(root: Path, *arguments: str) -> list[str]:
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    except OSError as error:
        raise SelectionError(f"--changed needs git: {error}; or name the files with --for") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["git failed"])[0]
        raise SelectionError(f"--changed: {reason}; give a revision of git, or name the files with --for")
    return [name for name in done.stdout.split("\0") if name]


def relative(root: Path, paths: Iterable[str]) -> list[str]:
    """Paths of --for, relative to the checkout; a folder stands for its files. Raises SelectionError."""
    found: list[str] = []
    for path in paths:
        whole = Path(path).absolute()
        if not whole.resolve().is_relative_to(root.resolve()):
            raise SelectionError(f"--for {path}: not in this checkout ({root})")
        if not whole.exists():
            raise SelectionError(f"--for {path}: no such file; --changed finds those that are removed")
        files = sorted(whole.resolve().rglob("*")) if whole.is_dir() else [whole.resolve()]
        found += (file.relative_to(root.resolve()).as_posix() for file in files if file.is_file())
    return [name for name in found if "__pycache__" not in name]
