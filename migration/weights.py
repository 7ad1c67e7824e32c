"""How much kernel time needs which rows of the ledger: what `testbed harvest` measured, as a text file that merges."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..formats.documents import toml_of
from ..formats.program import read_text
from ..formats.whole_files import write_text
from ..hlo.errors import InputError
from .ledger import Ledger

FILE = Path(__file__).with_name("weights.toml")
"""The weights of the package."""

HEAD = "# Shares of kernel time by the rows that a kernel needs. `testbed harvest` writes it.\n"


@dataclass(frozen=True)
class Weights:
    """shares: rows that a kernel needs, in order, with spaces between → its share of kernel time, 1 in total."""

    programs: int
    kernels: int
    shares: Mapping[str, float]


def read_weights(path: Path = FILE) -> Weights:
    """The weights in a file. Raises InputError with the path."""
    try:
        table = toml_of(read_text(path))
        shares = {str(rows): float(share) for rows, share in table["shares"].items()}
        return Weights(int(table["programs"]), int(table["kernels"]), shares)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: no weights: {error}", remedy="let testbed harvest write it") from None


def write_weights(path: Path, weights: Weights) -> None:
    lines = [f"programs = {weights.programs}", f"kernels = {weights.kernels}", "", "[shares]"]
    lines += [f"{json.dumps(rows)} = {share:.5f}" for rows, share in sorted(weights.shares.items())]
    write_text(path, HEAD + "\n".join(lines) + "\n")


def migrated(weights: Weights, ledger: Ledger) -> float:
    """The share of kernel time whose rows are all on. A kernel that needs no row, a library's, does not count."""
    on = {row.name for row in ledger.rows.values() if row.is_on}
    return sum(share for rows, share in weights.shares.items() if rows and set(rows.split()) <= on)


def share_of(weights: Weights, name: str) -> float:
    """The share of kernel time that needs a row."""
    return sum(share for rows, share in weights.shares.items() if name in rows.split())
