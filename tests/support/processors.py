"""Runs a test's code as compiled for another processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ...codegen import options
from ...codegen.options import Target, assume_host, assumed_host
from ...codegen.processors import Processor, processor_of
from ...hlo.records import replace


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


@contextmanager
def small_caches() -> Iterator[None]:
    """Compile inside as if the last cache held one byte: whatever an array's share of it is, an array has it.

    As `code_for`, it asks for texts that no other test has.
    """

    def small(architecture: str, features: str) -> Processor:
        return replace(processor_of(architecture, features), last_cache_bytes=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "processor_of", small)
        yield
