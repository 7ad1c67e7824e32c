"""Runs a test's code as compiled for another processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ...codegen.options import Target, assume_host, assumed_host


@contextmanager
def code_for(level: str) -> Iterator[None]:
    """Compile for a level of the x86-64 psABI inside. Skips the test where this machine cannot run such code.

    `support.check.compiled` remembers executables by their text, so the text must name the level.
    """
    if level not in Target.levels():
        pytest.skip(f"this machine cannot run code for {level}")
    before = assumed_host()
    assume_host(level)
    try:
        yield
    finally:
        assume_host(before)
