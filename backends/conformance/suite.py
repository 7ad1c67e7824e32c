"""The whole suite as one class, which pytest collects where it is subclassed."""

from __future__ import annotations

from .memory import MemoryChecks
from .runs import RunChecks, TransferChecks
from .streams import StreamChecks


class BackendConformance(MemoryChecks, StreamChecks, TransferChecks, RunChecks):
    """All tests of a back end. Set `platform`, and what else Context names."""
