"""Notes which forms of the stacks each test file reaches: `./testbed test --record-forms`. A plugin of pytest.

The forms are those that a stack gives with what it emits (EmittedModule.forms). A file that starts other Python
processes has the mark that it may reach every form. With pytest-xdist each worker writes a part; `join` adds them up.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from .dependencies import PACKAGE, ROOT
from .selection import EVERY_FORM, STACKS, read_record

Reached = Mapping[str, Iterable[str]]
"""Test file → forms, as in selection.Record."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-forms", metavar="FILE", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    recorder = FormsRecorder(ROOT, config.getoption("--record-forms"))
    recorder.install()
    config.pluginmanager.register(recorder)


class FormsRecorder:
    """Writes FILE.PROCESS.part when the session ends. root: of the checkout."""

    def __init__(self, root: Path, file: Path) -> None:
        self.root, self.file = root, file
        self.reached: dict[str, set[str]] = defaultdict(set)
        self._running = ""
        self._plain: Any = None

    def install(self) -> None:
        """Watch the stacks and new processes, which cannot be undone."""
        from ..codegen.options import EmittedModule

        plain, recorder = EmittedModule.__init__, self

        def noting(made: EmittedModule, *arguments: Any, **more: Any) -> None:
            plain(made, *arguments, **more)
            if made.forms:
                recorder.note(made.forms.values(), sys._getframe(1))

        EmittedModule.__init__ = noting  # type: ignore[method-assign, assignment]
        sys.addaudithook(self._watch)

    def note(self, chosen: Iterable[Any], frame: FrameType | None) -> None:
        """The forms of a module that a stack made, which is the first caller that stands in a stack's room."""
        rooms = {f"{PACKAGE}.{stack}": stack for stack in STACKS}
        while frame is not None:
            room = ".".join(str(frame.f_globals.get("__name__")).split(".")[:2])
            if room in rooms:
                self.reached[self._running].update(f"{rooms[room]}:{name}" for c in chosen for name in c.names)
                return
            frame = frame.f_back

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.fork" or (event == "subprocess.Popen" and _is_python(arguments[0], arguments[1])):
            self.reached[self._running].add(EVERY_FORM)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if isinstance(collector, pytest.Module):  # what stands outside of its tests runs as it is imported
            self._begin(collector.path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._begin(item.path)

    def _begin(self, path: Path) -> None:
        if path.is_relative_to(self.root):
            self._running = path.relative_to(self.root).as_posix()
            self.reached[self._running] |= set()

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """An interrupted session writes nothing, because its files reached less than they do."""
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            write(self.file.with_name(f"{self.file.name}.{os.getpid()}.part"), self.reached)


def _is_python(executable: Any, arguments: Any) -> bool:
    words = [executable, *(arguments if isinstance(arguments, list | tuple) else [arguments])]
    paths = [os.fsdecode(word) for word in words if isinstance(word, str | bytes | Path)]
    return any("python" in os.path.basename(path) for path in paths)


def write(file: Path, reached: Reached) -> None:
    """Write a record: forms, sorted, and for each test file the numbers of those that it reached."""
    forms = sorted({form for row in reached.values() for form in row})
    number = {form: n for n, form in enumerate(forms)}
    rows = {test: sorted(number[form] for form in row) for test, row in sorted(reached.items()) if test}
    lines = ",\n".join(f"  {json.dumps(test)}: {json.dumps(row)}" for test, row in rows.items())
    names = ",\n".join(f"  {json.dumps(form)}" for form in forms)
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(f'{{"forms": [\n{names}\n],\n"tests": {{\n{lines}\n}}}}\n', encoding="utf-8")
    os.replace(temporary, file)


def join(file: Path, exist: Iterable[str]) -> int:
    """Put the parts of a session into a record: their rows replace its own. Returns the number of rows of the session.

    exist: all test files; rows of others go.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for part in parts(file):
        for test, row in (read_record(part) or {}).items():
            found[test] |= {*row}
        part.unlink()
    if found:
        kept = {*exist}
        rows = {**(read_record(file) or {}), **found}
        write(file, {test: row for test, row in rows.items() if test in kept})
    return len(found)


def parts(file: Path) -> Iterator[Path]:
    return file.parent.glob(f"{file.name}.*.part")
