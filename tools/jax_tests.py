"""Runs JAX's own tests on the plugin, and compares them with JAX's CPU and with a manifest of known failures.

    .venv/bin/python3 tools/jax_tests.py --tests FOLDER [FILE …] [--on testbed|cpu] [--emitters FLAGS] [--state FOLDER]

FOLDER: the `tests` of a checkout of JAX of the version that is installed (by default ../shared/jax_tests). Each file
runs in a process of its own, which is started again behind a test that crashed or took too long. Results are kept in
the state folder, one line a test: a run that was cut short goes on where it stopped. `--fresh` forgets them.

A test counts as on JAX's CPU: `jax_test_dut` is `cpu`, so that tests for the CPU alone run, too. The report gives, by
file, what passes on the CPU and how much of that passes here, once `--on cpu` has been run. A failure that is not in
the manifest, and a test of the manifest that passes, fail the run; `--update` rewrites the manifest (review the diff).
JAX's tests need absl-py and pytest.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).absolute().parents[1]
MANIFEST = ROOT / "tests" / "pjrt" / "known_failures.toml"
PASSED, FAILED, SKIPPED, CRASHED, HUNG = OUTCOMES = ("passed", "failed", "skipped", "crashed", "hung")
BAD = (FAILED, CRASHED, HUNG)
LIMIT_SECONDS = 300.0
"""Of one test, from when it starts."""
LOADING_SECONDS = 300.0
"""Until the first test of a process starts: the file is imported and its tests collected."""


@dataclass(frozen=True)
class Result:
    """How a test ended. text: the last line of what it raised."""

    test: str
    outcome: str
    seconds: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class Run:
    """What is run. on: testbed or cpu. limit: seconds a test may take."""

    tests: Path
    state: Path
    on: str
    emitters: str
    cases: int
    limit: float
    python: str

    def log(self, file: str) -> Path:
        """Where the results of a file are kept."""
        stack = self.emitters or "ledger" if self.on == "testbed" else "cpu"
        return self.state / f"{stack.replace('/', '_')}-{self.cases}" / f"{file}.jsonl"


# -- the process that runs tests ---------------------------------------------------------------------------------------
class Recorder:
    """A plugin of pytest: appends a line when a test starts and when it ends, and leaves out those that are done."""

    def __init__(self, log: Path, done: set[str], keyword: str):
        self.log, self.done, self.keyword = log, done, keyword
        self.outcome, self.text, self.start = PASSED, "", 0.0

    def write(self, **line: Any) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if name_of(i.nodeid) not in self.done and self.keyword in i.nodeid]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.outcome, self.text, self.start = PASSED, "", time.monotonic()
        self.write(started=name_of(nodeid), at=time.time())

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.outcome, self.text = FAILED, _last_line(str(report.longrepr))
        elif report.skipped and self.outcome == PASSED:
            self.outcome = SKIPPED

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        seconds = round(time.monotonic() - self.start, 3)
        self.write(test=name_of(nodeid), outcome=self.outcome, seconds=seconds, text=self.text)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write(test="(collection)", outcome=FAILED, seconds=0.0, text=_last_line(str(report.longrepr)))


def name_of(nodeid: str) -> str:
    """The test without its file: Class::name."""
    return nodeid.partition("::")[2]


def _last_line(text: str) -> str:
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")] or text.strip().splitlines()
    return (lines[0] if lines else "")[:300]


def work(file: Path, log: Path, keyword: str) -> int:
    """Run the tests of a file that the log does not have."""
    import jax
    import pytest

    with contextlib.suppress(ImportError):  # without absl-py, the files that need it say so
        from jax._src import test_util  # noqa: F401  # it defines the option

        jax.config.update("jax_test_dut", "cpu")
    done = {r.test for r in results_in(log)}
    options = ["-o", "addopts=", "-q", "-s", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short"]
    recorder = Recorder(log, done, keyword)
    status = int(pytest.main([str(file), *options], plugins=[recorder]))
    recorder.write(ended=status)
    return status


# -- the process that watches ------------------------------------------------------------------------------------------
def lines_of(log: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; the last may be cut."""
    if log.exists():
        for line in log.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def results_in(log: Path) -> list[Result]:
    return [Result(**line) for line in lines_of(log) if "test" in line]


def pending(log: Path) -> tuple[str, float] | None:
    """The test that has started and not ended, and when."""
    last = None
    for line in lines_of(log):
        last = line
    return (last["started"], last["at"]) if last and "started" in last else None


def ended(log: Path) -> bool:
    """Whether the last process that wrote the log came to its end."""
    last: dict[str, Any] = {}
    for line in lines_of(log):
        last = line
    return "ended" in last


def run_file(run: Run, file: str, keyword: str = "") -> list[Result]:
    """The results of a file, with those that the log had before."""
    log = run.log(file)
    log.parent.mkdir(parents=True, exist_ok=True)
    open_end = pending(log)
    if open_end:  # a run that was cut short: the test starts again
        with log.open("a") as out:
            out.write("{}\n")
    while True:
        status, reason = _run_process(run, file, log, keyword)
        left = pending(log)
        if left is None:
            if not ended(log):
                text = log.with_suffix(".txt").read_text(errors="replace").strip().splitlines()
                append(log, Result("(process)", reason, 0.0, f"status {status}: {text[-1] if text else ''}"))
            return results_in(log)
        append(log, Result(left[0], reason, round(time.time() - left[1], 3), f"status {status}"))


def append(log: Path, result: Result) -> None:
    with log.open("a") as out:
        out.write(json.dumps(result.__dict__) + "\n")


def _run_process(run: Run, file: str, log: Path, keyword: str) -> tuple[int, str]:
    """The status of a process that runs the rest of a file, and what is to be said of the test that it did not end."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu" if run.on == "cpu" else "testbed,cpu"}
    environment |= {"JAX_NUM_GENERATED_CASES": str(run.cases), "TESTBED_EMITTERS": run.emitters}
    command = [run.python, str(Path(__file__).absolute()), "--work", str(run.tests / file), "--log", str(log)]
    command += ["--keyword", keyword]
    with log.with_suffix(".txt").open("w") as out:
        process = subprocess.Popen(
            command, env=environment, cwd=run.tests, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
        began = time.time()
        while process.poll() is None:
            time.sleep(0.2)
            now, running = time.time(), pending(log)
            limit = running[1] + run.limit if running else max(began, _changed(log)) + LOADING_SECONDS
            if now > limit:
                process.kill()
                process.wait()
                return process.returncode, HUNG
    return process.returncode, CRASHED


def _changed(log: Path) -> float:
    return log.stat().st_mtime if log.exists() else 0.0


# -- the manifest and the report ---------------------------------------------------------------------------------------
def jax_version(python: str) -> str:
    code = "import importlib.metadata as m; print(m.version('jax'))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def known_failures(version: str) -> dict[str, dict[str, str]]:
    """File → test → why it fails, of a version of JAX."""
    rows = tomllib.loads(MANIFEST.read_text()).get(version, {}) if MANIFEST.exists() else {}
    return {file: dict(tests) for file, tests in rows.items()}


def surprises(file: str, results: Sequence[Result], known: dict[str, str], peer: dict[str, str]) -> Iterator[str]:
    """What differs from the manifest. peer: outcomes on JAX's CPU: what fails there, too, is no failure of ours."""
    for result in results:
        if result.outcome in BAD and result.test not in known and peer.get(result.test, PASSED) == PASSED:
            yield f"{file}::{result.test}: {result.outcome}: {result.text}"
        elif result.outcome == PASSED and result.test in known:
            yield f"{file}::{result.test}: passes, but is a known failure ({known[result.test]})"


def written_manifest(all_known: dict[str, Any], version: str, found: dict[str, Sequence[Result]], peers: Any) -> str:
    """The manifest's text with the failures of these files. Reasons are kept; a new failure's is to be written."""
    for file, results in found.items():
        before = all_known.setdefault(version, {}).get(file, {})
        rows = {
            r.test: before.get(r.test, f"TODO: {r.outcome}: {r.text}"[:150])
            for r in results
            if r.outcome in BAD and peers[file].get(r.test, PASSED) == PASSED
        }
        all_known[version][file] = rows
    lines = ["# JAX's tests that fail on the plugin and pass on JAX's CPU: why, and what removes the row.",
             "# tools/jax_tests.py --update writes this file."]  # fmt: skip
    for title, files in sorted(all_known.items()):
        for file, rows in sorted(files.items()):
            if rows:
                lines += ["", f"[{json.dumps(title)}.{json.dumps(file)}]"]
                lines += [f"{json.dumps(test)} = {json.dumps(why)}" for test, why in sorted(rows.items())]
    return "\n".join(lines) + "\n"


def report(rows: dict[str, tuple[Sequence[Result], dict[str, str]]]) -> str:
    """A table: of each file the outcomes, and of the tests that pass on JAX's CPU how many pass."""
    lines = [
        f"{'file':32}{'passed':>8}{'failed':>8}{'crashed':>8}{'hung':>6}{'skipped':>8}{'of CPU':>14}{'seconds':>9}"
    ]
    total: Counter[str] = Counter()
    for file, (results, peer) in rows.items():
        count = Counter(r.outcome for r in results)
        good = {test for test, outcome in peer.items() if outcome == PASSED}
        both = sum(r.outcome == PASSED and r.test in good for r in results)
        seconds = sum(r.seconds for r in results)
        total.update(count)
        total.update({"both": both, "good": len(good), "seconds": round(seconds)})
        lines.append(_row(file, count, both, len(good), seconds))
    lines.append(_row("total", total, total["both"], total["good"], total["seconds"]))
    return "\n".join(lines)


def _row(file: str, count: Counter[str], both: int, good: int, seconds: float) -> str:
    share = f"{both}/{good}" if good else "-"
    numbers = f"{count[PASSED]:8}{count[FAILED]:8}{count[CRASHED]:8}{count[HUNG]:8}{count[SKIPPED]:8}"
    return f"{file:32}{numbers}{share:>14}{seconds:9.0f}"


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="names such as lax_test.py; by default all")
    parser.add_argument("--tests", type=Path, default=ROOT.parent / "shared" / "jax_tests")
    parser.add_argument("--state", type=Path, default=ROOT / ".jax_tests")
    parser.add_argument("--on", choices=("testbed", "cpu"), default="testbed")
    parser.add_argument("--emitters", default="", help="as TESTBED_EMITTERS; by default the ledger's")
    parser.add_argument("--cases", type=int, default=1, help="JAX_NUM_GENERATED_CASES")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds a test")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with JAX and the package")
    parser.add_argument("--keyword", default="", help="only tests whose name has this text")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these files")
    parser.add_argument("--update", action="store_true", help="rewrite the manifest")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    return parser


def main() -> int:
    given = arguments().parse_args()
    if given.work:
        return work(given.work, given.log, given.keyword)
    if not given.tests.is_dir():
        print(f"no folder {given.tests}: name the tests of a checkout of JAX with --tests", file=sys.stderr)
        return 2
    files = given.files or sorted(path.name for path in given.tests.glob("*_test.py"))
    run = Run(given.tests, given.state, given.on, given.emitters, given.cases, given.limit, given.python)
    cpu = Run(given.tests, given.state, "cpu", "", given.cases, given.limit, given.python)
    version = jax_version(given.python)
    known = known_failures(version)
    rows: dict[str, tuple[Sequence[Result], dict[str, str]]] = {}
    unexpected: list[str] = []
    for file in files:
        if given.fresh:
            run.log(file).unlink(missing_ok=True)
        results = run_file(run, file, given.keyword)
        peer = {r.test: r.outcome for r in results_in(cpu.log(file))}
        rows[file] = results, peer
        print(report({file: rows[file]}).splitlines()[1], flush=True)
        if run.on == "testbed":
            unexpected += surprises(file, results, known.get(file, {}), peer)
    print(f"\nJAX {version} on {run.on} {run.emitters}\n{report(rows)}")
    if given.update and run.on == "testbed":
        whole = tomllib.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
        found = {file: results for file, (results, _) in rows.items()}
        peers = {file: peer for file, (_, peer) in rows.items()}
        MANIFEST.write_text(written_manifest(whole, version, found, peers))
        return 0
    for line in unexpected:
        print(line)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
