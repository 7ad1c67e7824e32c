"""The names of all rewrites that can be left out: passes, and kinds of rewrites within them, as `pass/kind`."""

from __future__ import annotations

from functools import cache

from ..hlo.errors import InputError
from .algebra.sweep import ALL_RULES
from .cleanup.simplify import RULES
from .pipeline import PASSES

KINDS = (
    *("conditionals/known", "conditionals/select", "conditionals/narrow"),
    *("fold-constants/constant", "fold-constants/splat", "loops/unroll", "loops/rebuild"),
)
"""Of passes without a table of rules, as they ask for fuel (fuel.py)."""


@cache
def rewrites() -> tuple[str, ...]:
    """Passes without which others cannot run (those that guarantee something) are not among them."""
    passes = [p.name for p in PASSES.values() if not p.guarantees]
    simplifications = [f"simplify/{op.value}" for op in RULES]
    return tuple(dict.fromkeys((*passes, *(rule.switch for rule in ALL_RULES), *simplifications, *KINDS)))


def checked(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names. Raises InputError for one that is no rewrite."""
    for name in names:
        if name not in rewrites():
            import difflib

            near = difflib.get_close_matches(name, rewrites(), n=1)
            remedy = f"did you mean {near[0]}?" if near else "name a pass of testbed opt --list, or PASS/RULE"
            raise InputError(f"no rewrite named {name!r} can be left out", remedy=remedy)
    return names
