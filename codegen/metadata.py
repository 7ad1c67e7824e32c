"""What stacks tell LLVM besides the code, each kind switchable; and what of it a function must lose to be inlined."""

from __future__ import annotations

import re

from ..hlo.errors import InputError

METADATA = {
    "arguments": "noalias, readonly, align, dereferenceable, noundef and nonnull of a kernel's arguments",
    "scopes": "alias.scope and noalias of loads and stores: which of the kernel's arrays they are of",
    "invariant": "invariant.load of loads from arrays that the kernel does not write",
    "ranges": "range of a kernel's first and last step, the limits of its loops' counters",
    "loops": "hints for loops: what is unrolled, interleaved and vectorised",
}
"""docs/structured-mlir.md says what carries each, and what it brings."""

DEFAULT_METADATA = ("arguments", "ranges", "loops")


def metadata_of(text: str) -> tuple[str, ...]:
    """Names of METADATA with commas between them, or `all`, `none`, `default`; in the table's order.

    Raises InputError for another name.
    """
    sets = {"all": tuple(METADATA), "none": (), "default": DEFAULT_METADATA}
    if text in sets:
        return sets[text]
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in METADATA]
    if unknown:
        raise InputError(f"unknown metadata {unknown[0]!r}", remedy=f"choose from {', '.join([*sets, *METADATA])}")
    return tuple(name for name in METADATA if name in names)


_assumed: tuple[str, ...] = DEFAULT_METADATA


def assume_metadata(names: tuple[str, ...]) -> None:
    """From now on kernels have this metadata in this process, unless their options say otherwise."""
    global _assumed
    _assumed = names


def assumed_metadata() -> tuple[str, ...]:
    """The latest argument of `assume_metadata`, at first DEFAULT_METADATA."""
    return _assumed


_PROMISES = re.compile(r", !(?:alias\.scope|noalias|invariant\.load) !\d+")


def without_promises(line: str) -> str:
    """A line of LLVM IR without what holds only while its kernel runs.

    In a function that calls several kernels, a later one writes what an earlier one only reads, and arrays of one are
    parts of an array of another.
    """
    return _PROMISES.sub("", line) if ", !" in line else line
