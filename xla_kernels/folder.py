"""The modules of a folder that XLA wrote (`--xla_dump_to`), and the files of each by what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..hlo.errors import InputError
from ..hlo.records import dataclass

SCHEDULED = "cpu_after_optimizations"
"""What XLA calls a module after its last pass, in the names of files."""

HOW = "make it with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_hlo_as_proto', or by testbed xla"

_MODULE = re.compile(rf"(?P<prefix>.+)\.{SCHEDULED}\.(?:hlo\.pb|txt)")
_NUMBER = re.compile(r"^module_\d+\.")
_KIND = {
    "code": re.compile(r"obj-file\.(?:(?P<part>.+)\.)?o"),
    "ir": re.compile(r"(?:(?P<part>.+)\.)?ir-no-opt\.ll"),
    "optimised": re.compile(r"(?:(?P<part>.+)\.)?ir-with-opt\.ll"),
    "before": re.compile(r"(?P<part>.+)-pre-optimization\.mlir"),
    "after": re.compile(r"(?P<part>.+)-post-optimization\.mlir"),
    "lowered": re.compile(r"(?P<part>.+)-post-lowering\.mlir"),
}
"""What a file of a module holds → its name behind the module's: objects, LLVM IR before and after LLVM's passes, MLIR
before and after XLA's passes and in the LLVM dialect. A module that XLA compiled in one piece has no part in its names.
"""


@dataclass(frozen=True, eq=False)
class DumpFiles:
    """The files of one module. prefix: how their names begin. parts: by kind (_KIND), part of the module → file."""

    folder: Path
    prefix: str
    parts: Mapping[str, Mapping[str, Path]]

    @property
    def name(self) -> str:
        """The module's name, without XLA's number."""
        return _NUMBER.sub("", self.prefix)

    def one(self, end: str) -> Path | None:
        """The file with this end; None if there is none."""
        path = self.folder / f"{self.prefix}.{SCHEDULED}{end}"
        return path if path.is_file() else None

    @property
    def scheduled(self) -> Path:
        """The scheduled module: the proto, whose constants are whole, if it is there."""
        found = self.one(".hlo.pb") or self.one(".txt")
        assert found is not None, "a module is found by this file"
        return found


def modules_in(folder: Path) -> list[DumpFiles]:
    """Every module of a folder, by name. Raises InputError if it is no folder, or holds none."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
    except NotADirectoryError:
        raise InputError(f"{folder}: not a folder", remedy=f"give a folder of XLA's dumps; {HOW}") from None
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", remedy=f"give a folder of XLA's dumps; {HOW}") from None
    prefixes = sorted({found["prefix"] for found in map(_MODULE.fullmatch, names) if found})
    if not prefixes:
        raise InputError(f"{folder}: no module of XLA:CPU (*.{SCHEDULED}.txt or .hlo.pb)", remedy=HOW)
    return [_files(folder, prefix, names) for prefix in prefixes]


def one_module(path: Path) -> DumpFiles:
    """The only module of a folder; or one of several: the folder's path with the module's prefix or name behind it.

    Raises InputError.
    """
    folder, wanted = (path, None) if path.is_dir() or not path.parent.is_dir() else (path.parent, path.name)
    modules = modules_in(folder)
    found = modules if wanted is None else [m for m in modules if wanted in (m.prefix, m.name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(str(folder / m.prefix) for m in (found or modules)[:6])
    what = f"no module {wanted!r}" if not found else f"{len(found)} modules"
    raise InputError(f"{folder}: {what}", remedy=f"give one of {listed}")


def is_dump(path: Path) -> bool:
    """Whether a path is a folder of XLA's dumps, or names a module in one."""
    folder = path if path.is_dir() else path.parent
    try:
        names = [p.name for p in folder.iterdir()] if folder.is_dir() and not path.is_file() else []
    except OSError:
        return False
    prefixes = {found["prefix"] for found in map(_MODULE.fullmatch, names) if found}
    wanted = {path.name, *(p for p in prefixes if _NUMBER.sub("", p) == path.name)}
    return bool(prefixes if path.is_dir() else prefixes & wanted)


def _files(folder: Path, prefix: str, names: Sequence[str]) -> DumpFiles:
    parts: dict[str, dict[str, Path]] = {kind: {} for kind in _KIND}
    for name in names:
        rest = name.removeprefix(f"{prefix}.")
        if rest == name:
            continue
        for kind, pattern in _KIND.items():
            if found := pattern.fullmatch(rest):
                parts[kind][found["part"] or ""] = folder / name
    return DumpFiles(folder, prefix, parts)
