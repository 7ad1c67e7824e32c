"""Rows of benchmarks/xla_migration.py in a file, one JSON document a line, so that a run that was cut short goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ..formats.documents import json_of
from ..hlo.errors import InputError
from .xla_kernels import KernelRow, ProgramRow

REMEDY = "give another file, or remove this one to measure again"

Name = tuple[str, str, str]
"""Program, generation and symbol of a kernel."""


class Rows:
    """What was measured with these settings. path: None keeps nothing.

    Raises InputError for a file of other settings, or that holds no rows.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any]):
        self.path = path
        self.programs: dict[str, ProgramRow] = {}
        self.kernels: dict[Name, dict[str, Any]] = {}
        if path is None:
            return
        if not path.exists():
            self._append({"settings": dict(settings)})
            return
        self._read(path, dict(settings))

    def _read(self, path: Path, settings: dict[str, Any]) -> None:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]  # the last line of a run that was cut short may not be
        try:
            found, *documents = [json_of(line) for line in whole.splitlines()]
            for document in documents:
                self._take(document)
            if found["settings"] != settings:
                raise InputError(f"{path}: measured with other settings: {found['settings']}", remedy=REMEDY)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise InputError(f"{path}: no rows of xla_migration: {error!r}", remedy=REMEDY) from None
        if whole != data:
            os.truncate(path, len(whole))

    def _take(self, document: dict[str, Any]) -> None:
        if "program_row" in document:
            row = ProgramRow(**document["program_row"])
            row.kernels = {name: (pair[0], pair[1]) for name, pair in row.kernels.items()}
            self.programs[row.program] = row
        else:
            row = document["kernel_row"]
            self.kernels[row["program"], row["generation"], row["symbol"]] = row

    def kernel(self, name: Name, key: Hashable) -> KernelRow | None:
        """A measured kernel. key: of what it computes, which no file holds."""
        row = self.kernels.get(name)
        return None if row is None else KernelRow(**row, key=key)

    def add_program(self, row: ProgramRow) -> None:
        self.programs[row.program] = row
        self._append({"program_row": asdict(row)})

    def add_kernel(self, row: KernelRow) -> None:
        plain = plain_of(row)
        self.kernels[row.program, row.generation, row.symbol] = plain
        self._append({"kernel_row": plain})

    def _append(self, document: dict[str, Any]) -> None:
        if self.path is None:
            return
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(document) + "\n")
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}", remedy="give a writable file") from None


def plain_of(row: KernelRow) -> dict[str, Any]:
    """The row without its key, as JSON has it."""
    return {f.name: getattr(row, f.name) for f in fields(row) if f.name != "key"}
