"""`testbed platforms`: which back ends there are, what they can do, and why one cannot be used here."""

from __future__ import annotations

from typing import Any

import click

from .json_output import json_option, print_document
from .output import say, table, wrapped


@click.command()
@json_option("the platforms")
def command(as_json: bool) -> int:
    """List the platforms: built in, and from packages with an entry point in the group testbed.backends."""
    from ..backends.device import Capability
    from ..backends.registry import platforms, status

    found = [status(name) for name in platforms()]
    body: list[dict[str, Any]] = [
        {
            "name": s.name,
            "origin": s.origin,
            "devices": list(s.devices),
            "capabilities": [c.value for c in s.capabilities],
            "refused_here": s.why,
        }
        for s in found
    ]
    if as_json:
        return print_document("platforms", 0, {"platforms": body})
    _print(body, [c.value for c in Capability])
    return 0


def _print(body: list[dict[str, Any]], everything: list[str]) -> None:
    from rich.table import Column

    columns = [Column("platform"), Column("from"), Column("devices", justify="right"), Column("device")]
    rows = [(p["name"], p["origin"], str(len(p["devices"])), ", ".join(dict.fromkeys(p["devices"]))) for p in body]
    say(table(columns, rows))
    for platform in body:
        if platform["refused_here"] is not None:
            say(wrapped(f"{platform['name']}: not here: {platform['refused_here']}"))
        lacks = [name for name in everything if name not in platform["capabilities"]]
        if platform["capabilities"]:
            say(wrapped(f"{platform['name']}: has {', '.join(platform['capabilities'])}"))
        if lacks and (platform["capabilities"] or platform["refused_here"] is None):
            say(wrapped(f"{platform['name']}: lacks {', '.join(lacks)}"))
