"""What `testbed opt --list` and `--list-rules` print."""

from __future__ import annotations

import click

from .output import say, wrapped


def list_passes(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """A line for each pass: its name, what it does, what it requires and guarantees."""
    if not value:
        return
    from ..passes.pipeline import OPTIMIZE, PASSES

    width = max(map(len, PASSES))
    for step in PASSES.values():
        needs = f"; requires {', '.join(sorted(step.requires))}" if step.requires else ""
        makes = f"; guarantees {', '.join(sorted(step.guarantees))}" if step.guarantees else ""
        alone = "" if step.name in OPTIMIZE else "; by name only"
        document = " ".join((step.run.__doc__ or "").strip().split("\n\n")[0].split()).rstrip(".")
        say(wrapped(f"{step.name:<{width}}  {document}{needs}{makes}{alone}", width + 2))
    from ..lhlo.passes.pipeline import PASSES as ON_LHLO

    say("\non a MODULE in LHLO:")
    for name, own in ON_LHLO.items():
        alone = "; by name only" if own.by_name else ""
        say(wrapped(f"{name:<{width}}  {own.help}{alone}", width + 2))
    context.exit(0)


def list_rules(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """A line for each rule of the algebra pass: its name, its pattern, and what it changes in roundings."""
    if not value:
        return
    from ..passes.algebra.sweep import ALL_RULES

    width = max(len(r.name) for r in ALL_RULES)
    for r in ALL_RULES:
        differs = f" (inexact, {r.ulp:g} ulp: {r.inexact})" if r.inexact else ""
        say(wrapped(f"{r.name:<{width}}  {r.pattern}{differs}", width + 2))
    context.exit(0)
