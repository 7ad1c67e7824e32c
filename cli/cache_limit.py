"""`--cache-limit`: how much compiled code stays on disk. TESTBED_CACHE_LIMIT stands for it."""

from __future__ import annotations

import re
from functools import partial

import click

from ..codegen.cache import DEFAULT_CACHE
from ..hlo.errors import InputError

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def cache_option() -> click.Option:
    """The option of every subcommand that compiles; it holds until the subcommand ends."""
    return click.Option(
        ["--cache-limit"],
        envvar="TESTBED_CACHE_LIMIT",
        metavar="BYTES",
        expose_value=False,
        callback=_limit,
        help="Keep at most so much compiled code on disk (512M); 0 keeps none. Also TESTBED_CACHE_LIMIT.",
    )


def _limit(context: click.Context, parameter: click.Parameter, text: str | None) -> None:
    if text is not None:
        limit = bytes_of(text)
        context.call_on_close(partial(setattr, DEFAULT_CACHE, "limit_bytes", DEFAULT_CACHE.limit_bytes))
        DEFAULT_CACHE.limit_bytes = limit


def bytes_of(text: str) -> int:
    """The bytes in `512M`, `2GiB`, `1.5g` or `4096`; the units are powers of 1024. Raises InputError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise InputError(f"the limit of the cache is {text!r}", remedy="give bytes, as in 4096, 512M or 2G")
    return int(float(found[1]) * UNITS[found[2].upper()])
