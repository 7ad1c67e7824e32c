"""What a user chooses for programs of JAX: the emitters and what is noted, from the environment or from Python."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..hlo.records import dataclass, replace
from ..migration.flags import LEDGER, Flags

EMITTERS_VARIABLE = "TESTBED_EMITTERS"
PROFILE_VARIABLE = "TESTBED_JAX_PROFILE"
"""1: note the times of kernels."""
REPRO_VARIABLE = "TESTBED_REPRO"
"""Names the folder that receives programs that fail or differ."""


@dataclass(frozen=True, slots=True)
class Settings:
    """flags: which stack emits which ops. profile: note the times of kernels. repro: receives what fails or differs."""

    flags: Flags
    profile: bool = False
    repro: Path | None = None


_chosen: list[Settings] = []


def settings() -> Settings:
    """Those of programs that are compiled now. Raises FlagError if the environment's are malformed."""
    if not _chosen:
        flags = Flags.parse(os.environ.get(EMITTERS_VARIABLE) or LEDGER)
        repro = os.environ.get(REPRO_VARIABLE)
        profile = os.environ.get(PROFILE_VARIABLE) == "1"
        _chosen.append(Settings(flags, profile, Path(repro) if repro else None))
    return _chosen[-1]


@contextmanager
def emitters(flags: str) -> Iterator[None]:
    """Choose the emitters of what JAX compiles inside: `with emitters("mlir,reduce=legacy"):`.

    Programs that JAX has compiled before keep theirs, also inside.
    """
    chosen = replace(settings(), flags=Flags.parse(flags))
    _chosen.append(chosen)
    try:
        yield
    finally:
        _chosen.remove(chosen)
