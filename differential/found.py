"""Examples for ever: what a campaign found, as a case that each later campaign and the tests try first.

A folder holds one folder for each example: module, inputs, verdict, the blob that drew it and the commit it failed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile

from ..formats.whole_files import write_folder
from ..hlo.errors import InputError
from .child import Begin, Child
from .finding import CASE_FILE, read_finding
from .follow_up import SMALL
from .outcome import Outcome

FILES = ("module.hlo", "io.npz", CASE_FILE, "verdict.txt")
BLOB_FILE, COMMIT_FILE = "blob", "commit"

LIMIT_SECONDS = 60.0
"""Of a stack, for an example."""


@dataclass(frozen=True)
class Tried:
    """An example, and what became of it now."""

    name: str
    folder: Path
    outcome: Outcome


def examples(folder: Path) -> list[Path]:
    """The folders of all examples, by name; none where there is no such folder."""
    return sorted(file.parent for file in folder.glob(f"*/{CASE_FILE}"))


def try_examples(
    folder: Path, budget: float, begin: Begin | None = None, on_example: Callable[[Tried], object] = lambda tried: None
) -> Iterator[Tried]:
    """Run each example by its setting in a process of its own. budget, begin: as of Setting and Child.

    Raises InputError for a folder that is no example.
    """
    with Child(begin) as child:
        for place in examples(folder):
            tried = Tried(place.name, place, try_example(place, child, budget))
            on_example(tried)
            yield tried


def try_example(place: Path, child: Child, budget: float) -> Outcome:
    """The outcome of one example. Another run says whether it is flaky."""
    case = read_finding(place)
    setting = replace(case.setting, cache=False, budget=budget)
    return child.outcome(case.module, case.inputs, case.stacks, LIMIT_SECONDS, setting, again=True)


def keep(finding: Path, into: Path, commit: str) -> Path | None:
    """Copy the finding of a campaign to the examples: the small one, if it was reduced. Returns its folder there; None
    if one of this name is there already.
    """
    place, source = into / finding.name, finding / SMALL
    source = source if (source / CASE_FILE).is_file() else finding
    if place.exists():
        return None

    def fill(work: Path) -> None:
        for name in FILES:
            copyfile(source / name, work / name)
        if (finding / BLOB_FILE).is_file():
            copyfile(finding / BLOB_FILE, work / BLOB_FILE)
        (work / COMMIT_FILE).write_text(commit + "\n", encoding="utf-8")

    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{into}: cannot write: {error.strerror}", remedy="give a writable folder") from None
    write_folder(place, fill)
    return place
