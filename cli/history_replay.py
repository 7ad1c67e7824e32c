"""`testbed history --suite replay`: XLA:CPU's faults of a year on versions of jaxlib, and a gate's answer to a move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .json_output import print_document
from .output import say, table, wrapped
from .programs import complain

if TYPE_CHECKING:
    from ..backends.xla.versions import XlaVersion
    from ..differential.replay.gate import Replay
    from ..differential.replay.measure import Measured
    from ..differential.replay.suite import Replayed

Provide = Callable[[str], "XlaVersion"]


def replay(names: Sequence[str], provide: Provide, emitters: str, only: str, output: str | None, as_json: bool) -> int:
    """The exit status: 1 if a move is refused or a version is missing. provide: installs a version."""
    from ..differential.replay.gate import Replay, sentence
    from ..hlo.errors import InputError, TestbedError

    chosen = _suite(only)
    found = Replay(suite=chosen)
    for name in names:
        try:
            found.measured[name] = _measured(provide(name), emitters, found)
        except TestbedError as error:
            complain(error)
            found.missing[name] = str(error)
    if not found.measured:
        raise InputError("no version of jaxlib is there", remedy="give versions as --jaxlib 0.7.2,0.10.2")
    status = int(bool(found.missing) or any(move.refused for move in found.moves()))
    if output is not None:
        from ..differential.replay.page import page
        from ..formats.whole_files import write_text

        write_text(Path(output), page(found, emitters))
    if as_json:
        return print_document("history", status, _document(found, emitters))
    _print(found)
    for move in found.moves():
        say(wrapped(sentence(move)))
    return status


def _suite(only: str) -> list[Replayed]:
    from ..differential.replay.suite import SUITE
    from ..hlo.errors import InputError

    chosen = [program for program in SUITE if only in program.name]
    if not chosen:
        names = ", ".join(program.name for program in SUITE)
        raise InputError(f"no program of the suite is named {only!r}", remedy=f"its programs are {names}")
    return chosen


def _measured(version: XlaVersion, emitters: str, found: Replay) -> dict[str, Measured]:
    """The suite on a version. Raises InputError if it lacks the emitters."""
    from ..backends.xla.versions import EMITTERS, require_emitters
    from ..differential.replay.measure import measure, on_version
    from .progress import progress

    require_emitters(version, emitters)
    run = on_version(version, EMITTERS[emitters])
    measured: dict[str, Measured] = {}
    with progress(len(found.suite)) as advance:
        for program in found.suite:
            measured[program.name] = measure(program, run)
            advance()
    return measured


def _print(found: Replay) -> None:
    from ..benchmarks.tables import left
    from ..differential.replay.gate import kinds

    faults = {version: found.faults(version) for version in found.measured}
    rows = [
        (p.name, p.report or "-", *("/".join(kinds(faults[v].get(p.name, []))) or "right" for v in faults))
        for p in found.suite
    ]
    say(table([left("program"), left("report"), *map(left, faults)], rows))


def _document(found: Replay, emitters: str) -> dict[str, Any]:
    return {
        "suite": "replay",
        "emitters": emitters,
        "versions": [
            {
                "version": version,
                "programs": [
                    {
                        "name": p.name,
                        "report": p.report,
                        "faults": found.faults(version).get(p.name, []),
                        "seconds": [cost.run for cost in found.measured[version][p.name].costs],
                        "compile_seconds": [cost.compile for cost in found.measured[version][p.name].costs],
                    }
                    for p in found.suite
                ],
            }
            for version in found.measured
        ],
        "moves": [
            {"old": m.old, "new": m.new, "refused": m.refused, "brings": m.brings, "keeps": m.keeps, "mends": m.mends}
            for m in found.moves()
        ],
        "missing": [{"version": version, "reason": why} for version, why in found.missing.items()],
    }
