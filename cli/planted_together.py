"""`testbed planted --together`: many faults at once, grouped by root causes, and which faults each group holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .json_output import print_document
from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..differential.planted.together import Campaign, Met

INSTRUCTIONS, DEPTH = 3, 1
"""Of a program beside what it is drawn for: small ones are made smaller soon."""


def print_groups(names: Sequence[str] | None, seconds: float, seed: int, as_json: bool) -> int:
    """names: of the faults; None: those that are meant for it. The status is 1 if less than nine of ten groups hold one
    fault.
    """
    from ..differential.campaign.task import Orders
    from ..differential.generate.program import Limits
    from ..differential.planted.together import TOGETHER, Campaign
    from .interrupt import patience

    def tell(met: Met) -> None:
        if not as_json:
            say(wrapped(f"{met.name}: {met.root.name}: {', '.join(met.faults) or 'no single fault'}"))

    orders = Orders(Limits(INSTRUCTIONS, depth=DEPTH), mixed=False, optimized=0, checked=0)
    with patience(10):
        campaign = Campaign(tuple(names or TOGETHER), orders, seconds, seed, tell)
        campaign.run()
    return _report(campaign, as_json)


def _report(campaign: Campaign, as_json: bool) -> int:
    from ..benchmarks.tables import left, right

    groups = [(group, campaign.faults_of(group)) for group in campaign.groups()]
    single = sum(len(faults) == 1 for _, faults in groups)
    status = 0 if 10 * single >= 9 * len(groups) else 1
    if as_json:
        rows = [
            {
                "root": group.root.name,
                "switch": group.root.switch,
                "proved": group.root.proved,
                "findings": len(group.members),
                "instructions": group.size,
                "faults": list(faults),
            }
            for group, faults in groups
        ]
        head = {"cases": campaign.cases, "explained": campaign.explained, "unnamed": campaign.unnamed}
        return print_document("planted", status, {**head, "planted": list(campaign.names), "groups": rows})
    heads = [left("root cause"), right("findings"), right("size"), left("proved"), left("faults")]
    cells = [
        (g.root.name, str(len(g.members)), str(g.size), "yes" if g.root.proved else "no", ", ".join(faults) or "none")
        for g, faults in groups
    ]
    say(table(heads, cells))
    held = {fault for _, faults in groups for fault in faults}
    say(
        wrapped(
            f"{campaign.cases} cases, {len(campaign.met)} findings, {campaign.explained} of known groups, "
            f"{campaign.unnamed} without a root cause; {len(held)} of {len(campaign.names)} faults met; "
            f"{single} of {len(groups)} groups hold one fault"
        )
    )
    return status
