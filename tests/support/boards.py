"""A board with everything on it: rows in every state, a finding whose texts look like HTML, a profile, histories."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ...benchmarks.ab_history import Record
from ...benchmarks.suite.results import Figures, Report, Row
from ...cli.main import main
from ...differential.finding import finding_of, write_finding
from ...differential.outcome import Outcome, OutcomeKind, Run, RunKind
from ...formats.text.parser import parse_module
from ...migration.ledger import Hold, judge, move, new_ledger
from ...profiling.report import to_json
from ..profiling.reports import loop, made, step
from .ledgers import BAD, DAY, GOOD, ledger_file

MARKUP = "<script>alert(1)</script> & \\\"quoted\\\" 'too'"
TEXT = f"""HloModule odd
ENTRY e {{
  p = f32[2] parameter(0)
  ROOT r = f32[2] negate(p), metadata={{op_name="{MARKUP}"}}
}}
"""
EVIL = "</pre><script>alert(2)</script>\x07 ]]> &amp; <!-- "


def ledger(folder: Path) -> Path:
    made = judge(new_ledger(2), "reduce.float", replace(GOOD, every_input=7, pairs=9))
    made = judge(made, "dot.half", replace(BAD, refused="1.2 < 3 & more"))
    made = move(made, "sort.float", "shadow", DAY, "tried")
    made = judge(made, "sort.half", replace(GOOD, ratio=3.5, low=3.4, high=3.6, compile_ratio=0.3))
    made = judge(made, "scatter.float", GOOD)
    made = move(made, "scatter.float", "removed", DAY + datetime.timedelta(365))
    made = judge(made, "dot.float", BAD)
    made = move(made, "dot.float", "off", DAY, "", Hold(DAY, "an <em>old</em> reason"))
    return ledger_file(folder, made)


def finding(folder: Path) -> Path:
    module, x = parse_module(TEXT), [np.array([1, np.nan], np.float32)]
    runs = {s: Run(RunKind.RAN, (-x[0],)) for s in ("evaluator", "legacy", "mlir")}
    found = Outcome(OutcomeKind.DIFFER, ("legacy",), "legacy <differs> & more", runs)
    long = "\n".join(f"line {n}" for n in range(1000))
    stages = {
        "legacy": [("legacy.1.ll", EVIL), ("legacy.3.s", long)],
        "mlir": [("mlir.1.lhlo.mlir", EVIL), ("mlir.4.ll", "define"), ("mlir.6.s", "ret"), ("thunks.txt", "call")],
    }
    case = finding_of(module, x, found, text=TEXT)
    place = write_finding(folder / "findings" / "A <b>&finding", case, stages=stages)
    run = {"changed": "negate of <mlir>", "shows": False, "sentence": "all agree"}
    said = {"command": "bisect", "culprit": "the <emitter>", "sentence": "It is & was.", "evidence": [run]}
    (place / "bisect.json").write_text(json.dumps(said))
    return place


def history(folder: Path) -> Path:
    base = Record("2026-03-01T10:00:00", "0123abc", "m", "p <q>", "d", "legacy", "mlir", 1.0, 0.99, 1.01, 1.2, 1.0)
    later = replace(base, when="2026-03-02T10:00:00", commit="4567def", ratio=1.2, low=1.1, high=1.3)
    path = folder / "ab.jsonl"
    path.write_text("".join(json.dumps(asdict(r)) + "\n" for r in (base, later)))
    return path


def suite(folder: Path) -> Path:
    columns = {"xla": Figures("ok", rounds=[1.0]), "mlir": Figures("ok", rounds=[0.5])}
    rows = [Row("w", "g", 1, columns)]
    made = Report("2026-03-01", {"fingerprint": "m"}, {}, "0123abc", ("xla", "mlir"), {}, rows=rows)
    columns = columns | {"mlir": Figures("ok", rounds=[0.25])}
    later = replace(made, when="2026-03-02", rows=[Row("w", "g", 1, columns)])
    path = folder / "suite.jsonl"
    path.write_text("".join(json.dumps(run.as_json()) + "\n" for run in (made, later)))
    return path


def exhaustive(folder: Path) -> Path:
    """`not` of u8 on every input, and of u16, on which a stack is wrong; one of the directions of compare of s8."""
    results = [
        {"row": "not u8", "part": 0, "status": "agree", "cases": 256, "inputs": []},
        {"row": "not u16", "part": 0, "status": "differ", "cases": 65536, "inputs": ["3"]},
        {"row": "compare s8, direction=EQ", "part": 0, "status": "agree", "cases": 65536, "inputs": []},
    ]
    path = folder / "exhaustive.json"
    path.write_text(json.dumps({"schema": 2, "stacks": ["evaluator", "legacy", "mlir"], "results": results}))
    return path


def inputs(folder: Path) -> list[str]:
    """The arguments of `testbed report` for all of it, but for the output."""
    finding(folder)
    profile = folder / "profile.json"
    profile.write_text(to_json([made(loop(), step(name="<i>", depth=1), step(), program="a & b")], "0"))
    return [
        *("--ledger", str(ledger(folder)), "--findings", str(folder / "findings"), "--profile", str(profile)),
        *("--exhaustive", str(exhaustive(folder))),
        *("--history", str(history(folder)), "--history", str(suite(folder))),
    ]


def make(folder: Path) -> Path:
    """The board in a new folder."""
    given = folder / "given"
    given.mkdir()
    assert main(["report", "-o", str(folder / "board"), *inputs(given)]) == 0
    return folder / "board"
