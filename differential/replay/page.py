"""A replay as a table of Markdown, and the gate's answers: the measured part of docs/replay.md."""

from __future__ import annotations

from collections.abc import Sequence

from .gate import Replay, sentence
from .suite import Look, Replayed


def page(found: Replay, emitters: str) -> str:
    """The page. emitters: which of XLA's made the code."""
    versions = list(found.measured)
    faults = {version: found.faults(version) for version in versions}
    rows = [
        [p.name, p.report or "–", p.versions or "–", *(_cell(p, found, v, faults[v].get(p.name, [])) for v in versions)]
        for p in found.suite
    ]
    command = f"./testbed history --suite replay --jaxlib {','.join([*versions, *found.missing])}"
    command += "" if emitters == "default" else f" --emitters {emitters}"
    lines = [
        f"Made by `{command}`, on one processor. Times are hints: other work ran beside it.",
        "",
        *_table(["program", "report", "told of", *versions], rows),
        "",
        "What a gate says of each move:",
        "",
        *(f"- {sentence(move)}" for move in found.moves()),
        *(f"- {version}: {why}" for version, why in found.missing.items()),
    ]
    return "\n".join(lines) + "\n"


def _cell(program: Replayed, found: Replay, version: str, said: Sequence[str]) -> str:
    """The faults, in bold, else the time of the longer run, or of compiling the larger program."""
    if said:
        return f"**{'; '.join(said)}**"
    costs = found.measured[version][program.name].costs
    if not costs:
        return "right"
    return f"{costs[-1].compile:.2g} s" if program.look is Look.COMPILE else f"{costs[-1].run * 1e3:.3g} ms"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]
