"""Writes tests/rooms_of.bzl: which test files Bazel runs in one process, and the rooms and files that these need.

    .venv/bin/python3 -m testbed.tools.rooms_of [--check]

Files of a group stand in one folder and need the same rooms: so an edit of a room runs no others again, and few
processes start.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .dependencies import ROOT, Checkout
from .selection import PATTERN, names, parts_of, whole_checkout

FILE = "tests/rooms_of.bzl"
COMMAND = ".venv/bin/python3 -m testbed.tools.rooms_of"
GROUP_FILES = 6
"""Most files of a group: a failure names its test, but all of them run again."""

DATA = {
    "corpus": "tests/corpus",
    "golden": "tests/golden",
    "thunks_golden": "tests/thunks/golden",
    "examples": "examples",
}
"""Target → the folder whose files that are not Python it holds. A test needs the target if it, or what it needs of
tests/, names one of the files or a folder above it, or if it needs a Python file of the folder.
"""

SMALL = frozenset({"tools/__init__.py", "tools/python/__init__.py", "tools/python/pytest_names.py"})
"""What each test has besides //tools."""

HEAD = f'''"""The groups of test files that Bazel runs in one process, and what they need. Generated: {COMMAND}"""

'''


class Group(NamedTuple):
    """name: of the target. files: of the tests, below tests/. support: other files below tests/ that they need."""

    name: str
    files: tuple[str, ...]
    rooms: tuple[str, ...]
    support: tuple[str, ...]
    data: tuple[str, ...]


def groups_of(checkout: Checkout, alone: Iterable[str]) -> list[Group]:
    """alone: test files that are a group each, below tests/. Those that look at the whole checkout need all rooms."""
    rooms, kept = room_names(checkout), frozenset(alone)
    whole = frozenset(whole_checkout(checkout))
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for test in checkout.tests:
        file = test.removeprefix("tests/")
        folder = file if file in kept else str(Path(file).parent)
        needed = rooms if test in whole else {f.split("/")[0] for f in checkout.closure(test)} & rooms
        alike[folder, tuple(sorted(needed))].append(file)
    return sorted(_group(checkout, part, need) for (_, need), files in alike.items() for part in _parts(files))


def _parts(files: Sequence[str]) -> list[Sequence[str]]:
    """Nearly equal parts, in the order of names."""
    count = -(-len(files) // GROUP_FILES)
    return [files[i::count] for i in range(count)]


def _group(checkout: Checkout, files: Sequence[str], rooms: tuple[str, ...]) -> Group:
    needed = frozenset[str]().union(*(checkout.closure(f"tests/{file}") for file in files))
    inside = {f for f in needed if f.startswith("tests/")}
    support = {f.removeprefix("tests/") for f in inside} - {*files}
    strings = {text for f in inside for text in checkout.strings(f)}
    data = tuple(
        name
        for name, folder in DATA.items()
        if any(f.startswith(folder + "/") for f in needed) or _names_one(strings, files_in(checkout.root / folder))
    )
    if any(f.startswith("tools/") for f in needed - SMALL):
        data += ("tools",)
    target = files[0].removesuffix(".py").replace("/", "_")
    name = target if len(files) == 1 else f"{target}_and_{len(files) - 1}"
    return Group(name, tuple(files), rooms, tuple(sorted(support)), data)


@cache
def files_in(folder: Path) -> tuple[frozenset[tuple[str, ...]], tuple[str, ...]]:
    """The ways to name a file of a folder that is not Python, as parts; the files' paths, below the folder."""
    above = folder.name if folder.parent.name != "thunks" else f"thunks/{folder.name}"
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in (".py", ".pyc"))
    files = tuple(f"{above}/{path.relative_to(folder).as_posix()}" for path in found if path.name != "BUILD")
    parts = [tuple(file.split("/")) for file in files]
    return frozenset(p[i:j] for p in parts for i in range(len(p)) for j in range(i + 1, len(p) + 1)), files


def _names_one(strings: Iterable[str], folder: tuple[frozenset[tuple[str, ...]], tuple[str, ...]]) -> bool:
    plain, files = folder
    patterns = [text for text in strings if PATTERN.fullmatch(text)]
    return any(parts_of(text) in plain for text in strings) or any(names(patterns, file) for file in files)


def room_names(checkout: Checkout) -> frozenset[str]:
    text = (checkout.root / "tools/rooms.bzl").read_text(encoding="utf-8")
    listed = re.search(r"^FLOORS = (\[.*?^\])", text, re.S | re.M)
    assert listed is not None, "tools/rooms.bzl has no list FLOORS"
    return frozenset(room for floor in ast.literal_eval(listed[1]) for room in floor)


def sharded(checkout: Checkout) -> list[str]:
    text = (checkout.root / "tests/BUILD").read_text(encoding="utf-8")
    listed = re.search(r"^SHARDS = (\{.*?^\})", text, re.S | re.M)
    assert listed is not None, "tests/BUILD has no table SHARDS"
    return [*ast.literal_eval(listed[1])]


def text_of(checkout: Checkout) -> str:
    """What the file should hold. Equal lists stand once."""
    alone = [*sharded(checkout), *(f.removeprefix("tests/") for f in whole_checkout(checkout))]
    groups = groups_of(checkout, alone)
    sets = {kind: sorted({getattr(g, kind) for g in groups}) for kind in ("rooms", "support")}
    lines = [
        f"{kind.upper()} = [\n{''.join(f'    {_list(x)},' + chr(10) for x in rows)}]\n" for kind, rows in sets.items()
    ]
    rows = "".join(
        f"    ({_quoted(g.name)}, {_list(g.files)}, {sets['rooms'].index(g.rooms)}, "
        f"{sets['support'].index(g.support)}, {_list(g.data)}),\n"
        for g in groups
    )
    head = "# (Name, files of tests, number of ROOMS, number of SUPPORT, other targets)\n"
    return HEAD + "\n".join([*lines, f"{head}GROUPS = [\n{rows}]\n"])


def _quoted(text: str) -> str:
    return f'"{text}"'


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, words))}]"


def read_groups(root: Path) -> dict[str, list[str]]:
    """Target → its test files, below tests/, as the file has them."""
    listed = re.search(r"^GROUPS = (\[.*?^\])", (root / FILE).read_text(encoding="utf-8"), re.S | re.M)
    assert listed is not None, f"{FILE} has no list GROUPS: {COMMAND}"
    return {name: files for name, files, *_ in ast.literal_eval(listed[1])}


def main(argv: Sequence[str]) -> int:
    checkout = Checkout(ROOT)
    text, file = text_of(checkout), ROOT / FILE
    if "--check" in argv:
        same = file.is_file() and file.read_text(encoding="utf-8") == text
        print(f"{FILE} is up to date" if same else f"{FILE} is not up to date: {COMMAND}")
        return 0 if same else 1
    file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
