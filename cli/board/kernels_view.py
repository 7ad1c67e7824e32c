"""Kernels that `testbed stages --kernel` wrote, as the board shows them: the stages of all stacks side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...formats.program import read_text
from ...hlo.errors import InputError
from .findings_view import STAGES, Text, kind_of, page_name, text_of

MODULE = "1.optimized.hlo"
"""The file of the kernel's module."""

_FILE = re.compile(r"(?P<stack>[a-z][\w+-]*)\.(?P<number>\d+)\..+")


@dataclass(frozen=True)
class KernelView:
    """name: of the folder. page: its file. rows: (title, texts of the stacks that have this stage), MLIR first."""

    name: str
    page: str
    stacks: str
    module: Text
    rows: tuple[tuple[str, tuple[Text, ...]], ...]


def kernels_in(folders: Iterable[Path]) -> list[KernelView]:
    """A view of each folder. Raises InputError for one that `testbed stages` did not write."""
    pages: set[str] = set()
    return [_view(folder, pages) for folder in folders]


def _view(folder: Path, pages: set[str]) -> KernelView:
    remedy = "give a folder of testbed stages MODULE --kernel NAME --dir DIR"
    if not (folder / MODULE).is_file():
        raise InputError(f"{folder}: no stages of a kernel: {MODULE} is missing", remedy=remedy)
    found = [(named, path) for path in sorted(folder.iterdir()) if (named := _FILE.fullmatch(path.name)) is not None]
    files = sorted(found, key=lambda row: (row[0]["stack"], int(row[0]["number"])))
    stacks = list(dict.fromkeys(named["stack"] for named, _ in files))
    if not stacks:
        raise InputError(f"{folder}: no stages of a kernel: no stack has any", remedy=remedy)
    by_kind: dict[str, list[Text]] = {}
    for named, path in files:
        kind = kind_of(path.name)
        by_kind.setdefault(kind, []).append(text_of(STAGES.get(kind, kind), named["stack"], read_text(path)))
    order = [kind for kind in ORDER if kind in by_kind] + sorted(by_kind.keys() - set(ORDER))
    return KernelView(
        name=folder.name,
        page="kernel-" + page_name(folder.name, pages),
        stacks=", ".join(stacks),
        module=text_of("Module", "", read_text(folder / MODULE)),
        rows=tuple((STAGES.get(kind, kind), tuple(by_kind[kind])) for kind in order),
    )


ORDER = (
    *("forms.txt", "lhlo.mlir", "before.mlir", "mlir", "after.mlir", "llvm.mlir", "lowered.mlir"),
    *("ll", "optimized.ll", "s"),
)
"""Kinds of stages: how the kernel is emitted, then from the instruction down to its code."""
