"""`testbed fuzz --since REV`: what the opcodes and forms that changed make the focus of the drawn programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from ..hlo.remedies import TESTS
from .fuzz_options import Options, ops_drawn

if TYPE_CHECKING:
    from ..differential.campaign.coverage import FormKey


@dataclass(frozen=True)
class Since:
    """why: lines that say what programs are drawn for. forms: (stack, form) of those that changed."""

    why: tuple[str, ...] = ()
    forms: tuple[FormKey, ...] = ()

    def missed(self, reached: Mapping[FormKey, int]) -> str:
        """What to say of the forms that changed; empty if there are none."""
        left = [f"{stack} {form}" for stack, form in self.forms if not reached.get((stack, form))]
        if not self.forms:
            return ""
        had = f"forms that changed: kernels had {len(self.forms) - len(left)} of {len(self.forms)}"
        return f"{had}; not {', '.join(left)}" if left else had


def focused(options: Options, revision: str | None) -> tuple[Options, Since]:
    """The options with the focus on what changed since a revision, and why. Raises click.UsageError."""
    if revision is None:
        return options, Since()
    if options.focus is not None:
        raise click.UsageError("--since and --focus: give one of them")
    if not TESTS.is_dir():
        raise click.UsageError("--since looks at a checkout: run ./testbed in one, or name opcodes with --focus")
    from ..migration.choose import ROOMS
    from ..tools.changed_ops import wanted_since

    wanted = wanted_since(revision)
    stack_of = {module.rpartition(".")[2]: stack for stack, module in ROOMS.items()}
    forms = tuple(sorted((stack_of[room], form) for room, form in wanted.forms))
    drawn = [op for op in ops_drawn() if op in wanted.ops]
    if wanted.everything:
        return options, Since(tuple(wanted.why), forms)
    if not drawn:
        why = "everything: none of the opcodes that changed is drawn by itself"
        return options, Since((*wanted.why, why), forms)
    left = sorted(wanted.ops.difference(drawn))
    lines = [*wanted.why, f"focus: {', '.join(drawn)}", *([f"not drawn by itself: {', '.join(left)}"] if left else [])]
    return replace(options, focus=",".join(drawn)), Since(tuple(lines), forms)
