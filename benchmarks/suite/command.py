"""The suite's command line: which workloads, which contestants, how long, and where the figures go."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from ...formats.whole_files import write_text
from ...hlo.errors import InputError, TestbedError
from . import history, processes
from .child import Request
from .figures import digits
from .limits import Limits
from .machine import ISA, as_on, commit, cpus, levels, machine, versions
from .plot import check_name, plot
from .report import as_text
from .results import Figures, Report, Row
from .rivals import COLUMNS, DEFAULT, missing
from .workload import Workload
from .workloads import WORKLOADS

CHILD = "testbed.benchmarks.suite.child"
LIMITS = "testbed.benchmarks.suite.limits"

QUICK = {"rounds": 3, "seconds": 0.1, "compiles": 3}
USUAL = {"rounds": 7, "seconds": 0.7, "compiles": 3}


@dataclass(frozen=True)
class Settings:
    """How each workload is measured. limit: seconds for one child process. memory: its resident bytes. level: of the
    processor that code is made for.
    """

    columns: tuple[str, ...]
    rounds: int
    seconds: float
    compiles: int
    exact: bool
    limit: float
    memory: int
    level: str = "host"


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        return _run(parser, options)
    except TestbedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed.benchmarks.suite",
        description="Measure workloads on XLA, on both stacks and on others: run and compile time, memory, accuracy.",
    )
    add = parser.add_argument
    add("modules", nargs="*", metavar="MODULE", help="measure these folders (a module and io.npz) instead of the suite")
    add("--list", action="store_true", help="list the workloads and exit")
    add("--only", metavar="REGEX", help="only workloads whose name or group matches; 'fft|sort', '^softmax'")
    add("--columns", default=",".join(DEFAULT), help=f"contestants, from: {', '.join(COLUMNS)}; default %(default)s")
    add(
        "--threads",
        default="1",
        metavar="N,N",
        help="processors and threads of each contestant",
    )
    add(
        "--cpu",
        default="host",
        metavar="LEVEL",
        help=f"as on a processor of this level ({', '.join(ISA)}), XLA's own code too; its libraries (products, "
        "convolutions; in jaxlib 0.12 reductions), numpy, torch and IREE use what the machine has",
    )
    add("--quick", action="store_true", help="few and short rounds: for a look, not for a figure")
    add("--rounds", type=_positive(int), help=f"interleaved rounds; default {USUAL['rounds']}, quick {QUICK['rounds']}")
    add("--seconds", type=_positive(float), help="seconds of timed runs per contestant and workload; default 0.7")
    add("--limit", type=_positive(float), default=120.0, help="seconds until a workload is given up; default 120")
    add("--memory", type=_positive(float), default=8.0, metavar="GIB", help="memory of a workload; default 8")
    add("--no-errors", action="store_true", help="leave out the errors, which take longer than the times")
    add("--no-limits", action="store_true", help="leave out the limits of the machine")
    add("--json", type=Path, metavar="FILE", help="also write all figures to FILE")
    add("--plot", type=Path, metavar="FILE", help="also draw the ratios: .svg, .png or .pdf")
    add("--history", type=Path, metavar="FILE", help="also append the figures to FILE")
    add("--against", metavar="LAST|FILE", help="compare with the last run in the history, or with a file of --json")
    add(
        "--fail-above", type=_positive(float), metavar="R", help="exit 1 if one of our times is surely more than R-fold"
    )
    return parser


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError
        return value

    parse.__name__ = f"positive {'integer' if kind is int else 'number'}"
    return parse


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    workloads = _chosen(options)
    if options.list:
        print(_list(workloads))
        return 0
    settings = _settings(options)
    counts = _thread_counts(options.threads)
    if options.plot is not None:
        check_name(options.plot)
    if options.fail_above is not None and options.against is None:
        parser.error("--fail-above needs --against")
    place = machine(settings.level)
    then = None
    if options.against is not None:
        then = history.earlier(options.against, options.history, place["fingerprint"])
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    shown = asdict(settings) | {"threads": counts}
    report = Report(when, place, versions(), commit(), settings.columns, shown)
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: child processes end, too
    try:
        _measure_all(report, workloads, settings, counts, not options.no_limits)
    except KeyboardInterrupt:
        report.interrupted = True
    finally:
        signal.signal(signal.SIGTERM, former)
    print(as_text(report))
    status = _write(report, options)
    if then is not None:
        found = history.changes(report, then)
        print("\n" + history.as_text(report, then, found))
        status = max(status, _judge(report, then, found, options.fail_above))
    return 130 if report.interrupted else status


def _chosen(options: argparse.Namespace) -> list[Workload]:
    """The workloads of the suite that match, or the modules given. Raises InputError if there are none."""
    if options.modules:
        paths = [Path(m) for m in options.modules]
        gone = [path for path in paths if not path.exists()]
        if gone:
            raise InputError(f"{gone[0]}: no such file", remedy="give folders with a module and its io.npz, or --list")
        everything = [Workload(path.resolve().name, "modules", path=str(path.resolve())) for path in paths]
    else:
        everything = list(WORKLOADS.values())
    try:
        pattern = re.compile(options.only or "")
    except re.error as error:
        raise InputError(f"--only {options.only!r}: not a regular expression: {error}", remedy="escape it") from None
    found = [w for w in everything if pattern.search(w.name) or pattern.search(w.group)]
    if not found:
        raise InputError(f"--only {options.only!r} matches no workload", remedy="--list prints them")
    return found


def _list(workloads: Sequence[Workload]) -> str:
    lines = [f"{w.name:<25}{w.group:<18}{'needs jaxlib' if w.needs_jax else ''}".rstrip() for w in workloads]
    return "\n".join([*lines, f"{len(workloads)} workloads"])


def _settings(options: argparse.Namespace) -> Settings:
    columns = tuple(dict.fromkeys(c.strip() for c in options.columns.split(",") if c.strip()))
    for column in columns:
        if column not in COLUMNS:
            raise InputError(f"unknown contestant {column!r}", remedy=f"choose from {', '.join(COLUMNS)}")
    if not columns:
        raise InputError("--columns names no contestant", remedy=f"choose from {', '.join(COLUMNS)}")
    if options.cpu not in levels():
        remedy = f"choose from {', '.join(levels())}"
        raise InputError(f"--cpu {options.cpu}: not a level of this machine", remedy=remedy)
    usual = QUICK if options.quick else USUAL
    return Settings(
        columns,
        options.rounds or int(usual["rounds"]),
        options.seconds or usual["seconds"],
        int(usual["compiles"]),
        not options.no_errors,
        options.limit,
        int(options.memory * 2**30),
        options.cpu,
    )


def _thread_counts(text: str) -> list[int]:
    """Raises InputError for anything but numbers of processors that this process may use."""
    available = len(cpus())
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--threads {text}: not a list of numbers", remedy="such as --threads 1,2") from None
    for count in counts:
        if not 1 <= count <= available:
            raise InputError(f"--threads {count}: this process may use {available}", remedy=f"give 1 to {available}")
    return sorted(set(counts))


def _measure_all(
    report: Report, workloads: Sequence[Workload], settings: Settings, counts: Sequence[int], limits: bool
) -> None:
    """Measure every workload at every number of threads, and add the rows to the report as they come."""
    total = len(workloads) * len(counts)
    for threads in counts:
        chosen = tuple(cpus()[:threads])
        if limits:
            found = _machine_limits(chosen, settings)
            if found is not None:
                report.limits[threads] = found
        for workload in workloads:
            row = measure(workload, threads, chosen, settings)
            report.rows.append(row)
            print(f"[{len(report.rows)}/{total}] {_progress(row)}", file=sys.stderr, flush=True)


def _machine_limits(chosen: Sequence[int], settings: Settings) -> Limits | None:
    command = processes.command(LIMITS, [str(cpu) for cpu in chosen])
    outcome = processes.run(command, "", settings.limit, settings.memory)
    if outcome.ended is not None or not outcome.events:
        print(f"limits of the machine: {outcome.ended or 'no answer'}", file=sys.stderr)
        return None
    return Limits.from_json(outcome.events[-1])


def measure(
    workload: Workload, threads: int, chosen: tuple[int, ...], settings: Settings, command: Sequence[str] | None = None
) -> Row:
    """Measure one workload in a child process. One that dies while a contestant is prepared is started again without.

    chosen: processors. command: what is started instead of child.py.
    """
    row = Row(workload.name, workload.group, threads)
    if workload.needs_jax and missing("xla") is not None:
        row.failure = "needs jaxlib: ./testbed setup --xla"
        return row
    columns, lost = settings.columns, dict[str, str]()
    while True:
        request = Request(
            workload.path or workload.name,
            *(chosen, columns, settings.rounds, settings.seconds, settings.compiles, settings.exact, settings.limit),
            settings.level,
        )
        line, environ = json.dumps(asdict(request)), as_on(settings.level, os.environ)
        outcome = processes.run(command or processes.command(CHILD), line, settings.limit, settings.memory, environ)
        _take(row, outcome.events)
        if outcome.ended is None or outcome.stage not in columns:
            break
        lost[outcome.stage] = outcome.ended
        columns = tuple(c for c in columns if c != outcome.stage)
        row.columns.clear()
        if not columns:
            break
    for column, reason in lost.items():
        row.columns[column] = Figures("failed", reason)
    if outcome.ended is not None and outcome.stage not in lost:
        if outcome.stage == "exact":
            row.no_error = outcome.ended
        elif outcome.stage != "done":
            row.failure = f"{outcome.stage}: {outcome.ended}"
            row.columns = {c: f for c, f in row.columns.items() if f.status == "ok"}
    return row


def _take(row: Row, events: Sequence[dict]) -> None:
    for event in events:
        target: object = row.columns.setdefault(event["column"], Figures()) if "column" in event else row
        for key, value in event.get("set", {}).items():
            setattr(target, key, value)


def _progress(row: Row) -> str:
    """What became of a workload, in one line."""
    times = [f"{c} {digits(time * 1e3)}" for c in row.columns if (time := row.time(c)) is not None]
    failed = [f"{c}: {f.reason[:60]}" for c, f in row.columns.items() if f.status == "failed"]
    return "  ".join([row.name, *times, *(["ms"] if times else []), *failed, *([row.failure] if row.failure else [])])


def _write(report: Report, options: argparse.Namespace) -> int:
    if options.json is not None:
        write_text(options.json, json.dumps(report.as_json(), indent=1) + "\n")
    if options.history is not None and not report.interrupted:
        history.append(options.history, report)
    if options.plot is not None and report.rows:
        plot(report, options.plot)
    return 0


def _judge(report: Report, then: Report, found: Sequence[history.Change], limit: float | None) -> int:
    """1 if a time of our stacks has surely grown beyond the limit, or an error has grown; 0 without a limit."""
    if limit is None:
        return 0
    slower = [c for c in found if c.column in history.OURS and c.low > limit]
    for change in slower:
        print(f"slower: {change.name}: {change.column}: {change}", file=sys.stderr)
    return 1 if slower or history.grown_errors(report, then) else 0
