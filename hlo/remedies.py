"""Remedies of several rooms, or that depend on how the package came to the machine: a checkout, or installed."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).absolute().parents[1] / "tests"
"""Only a checkout has this folder."""


def adding(extra: str) -> str:
    """The command that adds an extra of pyproject.toml: `./testbed setup --xla`, or pip for an installed package."""
    return f"./testbed setup --{extra}" if TESTS.is_dir() else f"pip install 'xla-testbed[{extra}]'"


CHANNELS = (
    "XLA:CPU has none either; pass values as parameters and results, exchange them between devices by "
    "collective-permute, or run the module by evaluate_replicated"
)
"""For send and recv, which exchange values with another program, or a host, during a run."""
