"""The board's files: values in, templates filled, text out. Equal values give equal text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ... import __version__
from ...benchmarks.ab_history import Record, by_series
from ...benchmarks.suite.results import Report
from ...formats.documents import json_of
from .coverage import Coverage
from .figures import course, parity, spark, suite_courses
from .findings_view import FindingView
from .kernels_view import KernelView
from .ledger_view import GLYPHS, LIMITS, LedgerView
from .profiles_view import ProfileView
from .suites import suite_runs

HERE = Path(__file__).parent
COPIED = ("board.css", "board.js")
"""Files of the board that are the same in every one."""

MANIFEST = "board.json"
"""The board's own list of its files. A folder without it is no board, and is never replaced."""

NAV = (
    ("index.html", "Overview"),
    ("coverage.html", "Coverage"),
    ("speed.html", "Speed"),
    ("findings.html", "Findings"),
    ("kernels.html", "Kernels"),
    ("profiles.html", "Profiles"),
)


@dataclass(frozen=True)
class Board:
    """All that the board shows. findings, profiles: None where none were asked for. kernels: side by side."""

    ledger: LedgerView
    coverage: Coverage
    findings: Sequence[FindingView] | None
    profiles: Sequence[ProfileView] | None
    history: Sequence[Record]
    suites: Sequence[Report]
    kernels: Sequence[KernelView] = ()


def files_of(board: Board) -> dict[str, str]:
    """The board's files by name."""
    fill = _Filler(board)
    files = {name: (HERE / name).read_text(encoding="utf-8") for name in COPIED}
    files["index.html"] = fill("index", "index.html", ledger=board.ledger, spark=spark)
    files["coverage.html"] = fill("coverage", "coverage.html", coverage=board.coverage, rows=_rows(board.ledger))
    courses = [course(records) for records in by_series(board.history)]
    runs = suite_runs(board.suites)
    speed = {"parity": parity(board.ledger), "courses": courses, "runs": runs, "suites": suite_courses(runs)}
    files["speed.html"] = fill("speed", "speed.html", **speed)
    files["findings.html"] = fill("findings", "findings.html")
    for finding in board.findings or ():
        files[finding.page] = fill("finding", "findings.html", finding=finding)
    files["kernels.html"] = fill("kernels", "kernels.html")
    for kernel in board.kernels:
        files[kernel.page] = fill("kernel", "kernels.html", kernel=kernel)
    files["profiles.html"] = fill("profiles", "profiles.html")
    for profile in board.profiles or ():
        files[profile.page] = fill("profile", "profiles.html", profile=profile, picture=Markup(profile.picture))
    files[MANIFEST] = json.dumps({"kind": "testbed-board", "files": sorted([*files, MANIFEST])}, indent=1) + "\n"
    return files


def is_board(folder: Path) -> bool:
    """Whether a folder holds a board and nothing else, so that another board may take its place."""
    try:
        listed = json_of((folder / MANIFEST).read_text(encoding="utf-8"))
        return listed["kind"] == "testbed-board" and {p.name for p in folder.iterdir()} == set(listed["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _rows(view: LedgerView) -> Mapping[str, Any]:
    return {row.name: row for row in view.rows}


class _Filler:
    """Fills templates; all of them see the board, its navigation and the signs of states."""

    def __init__(self, board: Board):
        loader = FileSystemLoader(HERE)
        self.environment = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self.environment.finalize = _printable
        self.environment.filters |= {"percent": _percent, "us": _us, "number": _number}
        self.environment.globals |= {
            "board": board,
            "nav": NAV,
            "glyphs": GLYPHS,
            "limits": LIMITS,
            "version": __version__,
        }

    def __call__(self, name: str, here: str, **values: Any) -> str:
        """here: the page of the navigation that it belongs to."""
        return self.environment.get_template(f"{name}.html.jinja").render(here=here, **values)


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def _printable(value: Any) -> Any:
    """The value without characters that HTML forbids or UTF-8 lacks."""
    return _CONTROL.sub("\ufffd", value) if type(value) is str else value


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:,.3f}"


def _number(value: float | None, digits: int = 2) -> str:
    """A number with digits behind the point; a dash where it is not known."""
    return "–" if value is None else f"{value:.{digits}f}"
