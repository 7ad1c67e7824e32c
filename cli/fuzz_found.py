"""`testbed fuzz --found DIR`: tries the examples in DIR before it draws, and keeps what it finds there for ever."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .output import say, wrapped

if TYPE_CHECKING:
    from ..differential.campaign.campaign import Campaign
    from ..differential.found import Tried


def tried_first(folder: Path, budget: float, handlers: tuple[str, ...], quiet: bool) -> list[Tried]:
    """The outcomes of all examples, which are printed if they fail."""
    from ..differential.found import try_examples
    from ..ffi.from_files import load_handlers

    begin = partial(load_handlers, handlers) if handlers else None
    done = list(try_examples(folder, budget, begin))
    bad = failing(done)
    if not quiet:
        say(wrapped(f"{len(done)} examples of earlier runs in {folder}: {len(done) - len(bad)} pass"))
        for one in bad:
            say(wrapped(f"fails  {one.name}: {one.outcome.sentence}"))
            say(f"  ./testbed diff {one.folder}")
    return done


def failing(tried: Iterable[Tried]) -> list[Tried]:
    return [one for one in tried if one.outcome.is_finding]


def keep_findings(campaign: Campaign, folder: Path, quiet: bool) -> list[Path]:
    """Keep the findings of a campaign as examples. Returns their new folders."""
    from ..benchmarks.suite.machine import commit
    from ..differential.found import keep

    at, kept = commit() or "unknown", []
    for known in campaign.state.causes:
        place = known.cause.folder(campaign.folder)
        made = keep(place, folder, at) if place.is_dir() else None
        if made is not None:
            kept.append(made)
            if not quiet:
                say(wrapped(f"kept as an example: {made}; commit it with what mends it"))
    return kept
