"""Findings on disk, as the board shows them: the verdict, the module and both stacks' IR side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...differential.campaign.state import STATE_FILE
from ...differential.finding import CASE_FILE, Finding, read_finding, rerun_of
from ...formats.documents import json_of
from ...formats.program import read_text
from ...hlo.errors import InputError

MOST_LINES = 300
"""Lines of a text that a page holds."""

STAGES = {
    "forms.txt": "Forms",
    "lhlo.mlir": "LHLO",
    "mlir": "MLIR",
    "llvm.mlir": "LLVM dialect",
    "ll": "LLVM IR",
    "optimized.ll": "LLVM IR, optimised",
    "s": "Assembly",
    "thunks.txt": "Thunks",
    "host.mlir": "Host program, MLIR",
    "host.ll": "Host program, LLVM IR",
    "host.optimized.ll": "Host program, LLVM IR, optimised",
    "before.mlir": "XLA's MLIR before its passes",
    "after.mlir": "XLA's MLIR after its passes",
    "lowered.mlir": "XLA's MLIR, LLVM dialect",
    "error.txt": "Error",
}
"""Kind of a stage's file → its title, in the order of the page."""


@dataclass(frozen=True)
class Text:
    """A text of a finding. left_out: lines that are in the folder only. stack: "" for a text of no stack."""

    title: str
    stack: str
    text: str
    left_out: int


BISECTED = "bisect.json"
"""In a finding's folder: what is guilty of it, as `testbed bisect FOLDER --json` prints it."""


@dataclass(frozen=True)
class Bisection:
    """runs: what was changed, whether the fault still showed, the verdict."""

    culprit: str
    sentence: str
    runs: tuple[tuple[str, bool, str], ...]


@dataclass(frozen=True)
class FindingView:
    """name: of the folder. page: its file. side_by_side: the module, then each stack's IR. stages: rows by kind."""

    name: str
    page: str
    sentence: str
    kind: str
    blamed: str
    stacks: str
    flaky: bool
    instructions: int
    opcodes: str
    rerun: str
    verdict: str
    bisection: Bisection | None
    test: Text | None
    side_by_side: tuple[Text, ...]
    stages: tuple[tuple[str, tuple[Text, ...]], ...]


def findings_in(folders: Iterable[Path]) -> list[FindingView]:
    """All findings in folders: each is one, or has some below it. Of one with a smaller one in its folder, the smaller.

    Raises InputError for a folder that has none; the folder of a campaign without findings is no error.
    """
    found: dict[Path, None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder", remedy="give a folder of testbed fuzz or reduce")
        cases = sorted(path.parent for path in folder.rglob(CASE_FILE))
        cases = [case for case in cases if not any(case in other.parents for other in cases)]
        if not cases and not (folder / STATE_FILE).is_file():
            raise InputError(f"{folder}: holds no finding", remedy="give a folder of testbed fuzz or reduce")
        found |= dict.fromkeys(cases)
    pages: set[str] = set()
    return [_view(folder, read_finding(folder), pages) for folder in found]


def page_name(name: str, taken: set[str]) -> str:
    """The name of a page for something of this name, different from those in `taken`, to which it is added."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "unnamed"
    number, page = 1, f"{plain}.html"
    while page in taken:
        number += 1
        page = f"{plain}-{number}.html"
    taken.add(page)
    return page


def _view(folder: Path, finding: Finding, pages: set[str]) -> FindingView:
    texts = list(_stage_texts(folder))
    opcodes = [i.opcode.value for c in finding.module.computations for i in c.instructions]
    shown = [t for kind in ("ll", "error.txt") for t in texts if t[0] == kind]
    kinds = list(dict.fromkeys(kind for kind in [*STAGES, *(kind for kind, _ in texts)]))
    by_kind = ((kind, tuple(text for k, text in texts if k == kind and kind != "ll")) for kind in kinds)
    test, verdict = folder / "test_case.py", folder / "verdict.txt"
    name = folder.parent.name if (folder.parent / CASE_FILE).is_file() else folder.name
    return FindingView(
        name=name,
        page="finding-" + page_name(name, pages),
        sentence=finding.sentence or "This case was not judged yet.",
        kind=finding.kind.value if finding.kind is not None else "not judged",
        blamed=", ".join(finding.blamed) or "nobody",
        stacks=", ".join(finding.stacks),
        flaky=finding.flaky,
        instructions=len(opcodes),
        opcodes=", ".join(sorted(set(opcodes) - {"parameter", "constant"})),
        rerun=rerun_of(finding, folder),
        verdict=read_text(verdict).strip() if verdict.is_file() else "",
        bisection=_bisection(folder / BISECTED),
        test=text_of("Unit test", "", read_text(test)) if test.is_file() else None,
        side_by_side=(text_of("Module", "", finding.text), *(text for _, text in shown)),
        stages=tuple((STAGES.get(kind, kind), found) for kind, found in by_kind if found),
    )


def _bisection(file: Path) -> Bisection | None:
    """What a file says; None if there is none. Raises InputError for a file that bisect did not print."""
    if not file.is_file():
        return None
    try:
        found = json_of(read_text(file))
        runs = tuple((str(r["changed"]), bool(r["shows"]), str(r["sentence"])) for r in found["evidence"])
        return Bisection(str(found["culprit"] or "nobody"), str(found["sentence"]), runs)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file}: not what testbed bisect --json prints: {error!r}", remedy="make it again, or remove it"
        ) from None


def _stage_texts(folder: Path) -> Iterable[tuple[str, Text]]:
    """(kind, text) of every stage of every stack."""
    root = folder / "stages"
    if not root.is_dir():
        return
    for stack in sorted(p for p in root.iterdir() if p.is_dir()):
        for file in sorted(p for p in stack.iterdir() if p.is_file()):
            kind = kind_of(file.name)
            yield kind, text_of(STAGES.get(kind, kind), stack.name, read_text(file))


def kind_of(name: str) -> str:
    """The kind of a stage's file, as STAGES has it. A stage of one of XLA's kernels has the kernel's name before it."""
    rest = re.sub(r"^[\w+-]+\.\d+\.", "", name)
    parts = rest.split(".")
    return next((end for n in range(len(parts)) if (end := ".".join(parts[n:])) in STAGES), rest)


def text_of(title: str, stack: str, text: str) -> Text:
    lines = text.strip("\n").split("\n")
    return Text(title, stack, "\n".join(lines[:MOST_LINES]), max(len(lines) - MOST_LINES, 0))
