"""Digests of rows by the hash of the files that make code, in the user's cache folder; what is lost is made again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

from ...codegen.cache import user_cache_directory
from ...formats.whole_files import write_text
from ...hlo.errors import InputError, TestbedError
from ...migration.ledger import Row
from ..child import Child
from .digests import code_hash, form_digests

LIMIT_SECONDS = 900.0
"""For a row, whatever else the machine does."""

Digests = dict[str, str]
"""Form of a stack → digest."""


def seeds_of(row: Row) -> tuple[tuple[str, int], ...]:
    """The forms that only drawn programs of a row have, with their seeds."""
    return tuple((f.form, f.seed) for f in (row.evidence.forms if row.evidence else ()) if f.seed >= 0)


def known(rows: Iterable[Row], folder: Path | None = None) -> dict[str, Digests]:
    """Row → the digests of its forms, as far as they are in the cache."""
    kept = _read(_file(folder))
    return {row.name: kept[key] for row in rows if (key := _key(row)) in kept}


def found(rows: Sequence[Row], jobs: int, folder: Path | None = None) -> dict[str, Digests]:
    """Row → the digests of its forms. What the cache lacks is found in `jobs` processes."""
    have, file, lock = known(rows, folder), _file(folder), Lock()
    missing = [row for row in rows if row.name not in have]
    with ExitStack() as stack:
        free = [stack.enter_context(Child()) for _ in range(min(jobs, len(missing)))]

        def one(row: Row) -> None:
            with lock:
                child = free.pop()
            made = child.call(form_digests, row.unit, row.dtypes, seeds_of(row), limit_s=LIMIT_SECONDS)
            with lock:
                free.append(child)
            if isinstance(made, str):
                raise InputError(f"{row.name}: no digests: {made}", remedy="report it")
            have[row.name] = made

        if missing:
            with ThreadPoolExecutor(len(free)) as pool:
                list(pool.map(one, missing))
            _write(file, {**_read(file), **{_key(row): have[row.name] for row in missing}})
    return have


def _key(row: Row) -> str:
    return " ".join([row.name, *(f"{form}={seed}" for form, seed in seeds_of(row))])


def _file(folder: Path | None) -> Path:
    return (folder or user_cache_directory().parent / "digests") / f"{code_hash()}.json"


def _read(file: Path) -> dict[str, Digests]:
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError):
        return {}


def _write(file: Path, digests: dict[str, Digests]) -> None:
    """Without a place to keep them, they are found again next time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(digests))
    except (OSError, TestbedError):
        return
