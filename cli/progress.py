"""What a command is at, on stderr: a bar or a line that changes if that is a terminal; otherwise nothing, or a line a
minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """Yield a function that is to be called after each of `total` steps."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


LINE_SECONDS = 60.0
"""How often a line says where a command stands, if standard error is no terminal."""


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """Yield a function that is to be called with what is being done, how far it is, and what is best so far."""
    import click

    from .output import plain, width

    if not sys.stderr.isatty():
        told = time.monotonic()

        def tell(text: str) -> None:
            nonlocal told
            if time.monotonic() - told >= LINE_SECONDS:
                told = time.monotonic()
                click.echo(plain(text), err=True)

        yield tell
        return
    room = width() - 1

    def show(text: str) -> None:
        click.echo(f"\r{text[:room]:<{room}}", err=True, nl=False)

    try:
        yield show
    finally:
        click.echo(f"\r{'':<{room}}\r", err=True, nl=False)
