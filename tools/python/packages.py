"""The packages of the wheel: every folder of the checkout with an `__init__.py`, but what only a checkout has."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]

CHECKOUT_ONLY = frozenset({"tests", "tools", "examples", "docs", "locks"})
"""Folders of the root that are no part of the package."""


def found(root: Path = ROOT) -> list[str]:
    """Their names, sorted; the root itself is `testbed`."""
    names, waiting = ["testbed"], [root]
    while waiting:
        for folder in waiting.pop().iterdir():
            if folder.is_dir() and (folder / "__init__.py").is_file():
                parts = folder.relative_to(root).parts
                if parts[0] not in CHECKOUT_ONLY and not parts[0].startswith("."):
                    names.append(".".join(["testbed", *parts]))
                    waiting.append(folder)
    return sorted(names)
