"""The option --pin: a measurement on one processor."""

from __future__ import annotations

import os

import click

pin_option = click.option(
    "--pin",
    "pinned",
    type=click.IntRange(0),
    metavar="CPU",
    help="Pin the process, including XLA's threads, to one CPU.",
)


def pin(cpu: int | None) -> None:
    """Pin this process; None: leave it where it is. Raises UsageError."""
    if cpu is None:
        return
    if not hasattr(os, "sched_setaffinity"):
        raise click.UsageError("--pin needs Linux")
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:
        last = (os.cpu_count() or 1) - 1
        raise click.UsageError(f"--pin {cpu}: no such CPU; this machine has 0 to {last}") from None
