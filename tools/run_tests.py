"""Runs all tests: through Bazel if it is installed, otherwise through pytest. Both run the same tests.

`main` implements `./testbed test`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

ROOT = Path(__file__).absolute().parents[1]


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="testbed test",
        description="Run the tests, through `bazel test //...` where Bazel is found and through pytest otherwise.",
    )
    parser.add_argument("paths", nargs="*", help="test files or folders, like tests/hlo/test_opset.py (default: all)")
    parser.add_argument("-k", dest="expression", metavar="EXPR", help="only tests whose name matches, as in pytest")
    parser.add_argument("--cpu", help="make code for x86-64-v2, x86-64-v3 or x86-64-v4 instead of this machine")
    parser.add_argument(
        "--every-cpu",
        action="store_true",
        help="run once for each of these that this machine can run, once for the machine itself with NumPy's "
        "processor-specific loops off, and print a line for each",
    )
    parser.add_argument("--sample", action="store_true", help="only files whose tests depend on the processor the most")
    parser.add_argument("--deep", action="store_true", help="also run tests marked deep, and many more random examples")
    parser.add_argument(
        "--runner",
        choices=["bazel", "pytest"],
        default=os.environ.get("TESTBED_TEST_RUNNER") or None,
        help="use this runner (default: TESTBED_TEST_RUNNER, else by what is installed)",
    )
    options, rest = parser.parse_known_args(argv)
    options.rest = [arg for arg in rest if arg != "--"]
    options.environ = {"TESTBED_CPU": options.cpu} if options.cpu else {}
    if options.sample:
        options.paths += [str(ROOT / path) for path in SAMPLE]
    return options


SAMPLE = (
    "tests/conformance/test_convolution.py",
    "tests/conformance/test_epilogue.py",
    "tests/conformance/test_real_corners.py",
    "tests/conformance/test_rows.py",
    "tests/conformance/test_unrolling.py",
    "tests/evaluator/test_processors.py",
    "tests/legacy/test_math.py",
    "tests/mlir_emitters/test_math.py",
)
"""Tests of vectors, tiles and functions: what differs most from one processor to another. Under 90 s of one core."""

PROBE = """
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from testbed.codegen.options import Target
print(*Target.levels(), sep=",")
print(*[name for name in __cpu_dispatch__ if __cpu_features__.get(name)])
"""
"""Prints the processors of --cpu that this machine can run, and the extensions for which NumPy has loops."""


def every_processor() -> dict[str, dict[str, str]]:
    """What --every-cpu runs, by name: the environment of each."""
    done = subprocess.run([sys.executable, "-c", PROBE], stdout=subprocess.PIPE, text=True, check=True)
    levels, extensions = done.stdout.splitlines()
    found = {level: {"TESTBED_CPU": level} for level in levels.split(",") if level}
    if extensions:
        found["host, NumPy's loops off"] = {"NPY_DISABLE_CPU_FEATURES": extensions}
    return found


def find_bazel() -> str | None:
    return shutil.which("bazel") or shutil.which("bazelisk")


def bazel_targets(path: str) -> list[str]:
    """The label of a test file (`tests/hlo/test_x.py` -> `//tests:hlo_test_x`); for a folder, of all tests in it."""
    whole = Path(os.path.abspath(path))
    relative = whole.relative_to(ROOT)
    if relative.suffix == ".py":
        return ["//tests:" + "_".join(relative.with_suffix("").parts[1:])]
    if relative.parts[:1] == ("tests",) and len(relative.parts) > 1:  # no packages of Bazel's
        return [label for file in sorted(whole.rglob("test_*.py")) for label in bazel_targets(str(file))]
    return [f"//{relative.as_posix()}/..." if relative.parts else "//..."]


def suites(events: Iterable[str]) -> list[Path]:
    """The junit files in a build event stream: one per test or shard, including cached ones, without retries."""
    found: dict[tuple[str, int], Path] = {}
    for line in events:
        event = json.loads(line)
        name, result = event.get("id", {}).get("testResult"), event.get("testResult")
        if not name or not result:
            continue
        for output in result.get("testActionOutput", []):
            if output["name"] == "test.xml":
                found[name["label"], name.get("shard", 1)] = Path(unquote(urlparse(output["uri"]).path))
    return list(found.values())


def count(files: Iterable[Path]) -> Counter[str]:
    """Count passed, failed and skipped tests in junit files. A file that is missing or lists no test counts as a
    failure.
    """
    total: Counter[str] = Counter()
    for file in files:
        try:
            root = ElementTree.parse(file).getroot()
        except (OSError, ElementTree.ParseError):
            total["failed"] += 1
            continue
        for suite in root.iter("testsuite"):
            number = {key: int(suite.get(key) or 0) for key in ("tests", "failures", "errors", "skipped")}
            failed = number["failures"] + number["errors"]
            total["failed"] += failed
            total["skipped"] += number["skipped"]
            total["passed"] += max(0, number["tests"] - failed - number["skipped"])
    return total


def corpus(environ: Mapping[str, str]) -> str | None:
    """The folder of the conformance corpora: TESTBED_CORPUS, else ../shared/corpus if it exists; None if neither."""
    beside = ROOT.parent / "shared/corpus"
    named = environ.get("TESTBED_CORPUS")
    return os.path.abspath(named) if named else str(beside) if beside.is_dir() else None


def bazel_command(bazel: str, options: argparse.Namespace, events: Path, environ: Mapping[str, str]) -> list[str]:
    command = [bazel, "test", f"--build_event_json_file={events}", "--keep_going"]
    found = corpus(environ)
    if found:  # a sandboxed test does not see the folder beside the checkout
        command.append(f"--test_env=TESTBED_CORPUS={found}")
    # Code is cached by all that goes into it. Without a common cache, each test compiles what kernels share once more.
    cache = ROOT / ".venv" / "test-cache"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    command += [f"--test_env=TESTBED_TEST_CACHE={cache}", f"--sandbox_writable_path={cache}"]
    if options.expression:
        command.append(f"--test_filter={options.expression}")
    command += [f"--test_env={name}={value}" for name, value in options.environ.items()]
    if options.deep:
        command += ["--test_env=TESTBED_DEEP=1", "--test_timeout=3600"]
    if not sys.stderr.isatty():
        command.append("--show_progress_rate_limit=30")
    targets = [label for path in options.paths for label in bazel_targets(path)] if options.paths else ["//..."]
    return [*command, *options.rest, "--", *targets]


def run_bazel(bazel: str, options: argparse.Namespace) -> int:
    environ = {**os.environ, "TESTBED_PYTHON": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.json"
        command = bazel_command(bazel, options, events, environ)
        print(f"testbed test: through {bazel} test {' '.join(command[command.index('--') + 1 :])}", flush=True)
        code = subprocess.run(command, cwd=ROOT, env=environ).returncode
        lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
        total = count(suites(lines))
    return report(code, total)


def run_pytest(options: argparse.Namespace) -> int:
    # Two workers: the tests compile, and memory runs out before processors do.
    command = [sys.executable, "-m", "pytest", f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}", "-q"]
    if len(options.paths) != 1:
        command += ["-n", "2"]
    if options.expression:
        command += ["-k", options.expression]
    if options.deep:
        command.append("--deep")
    paths = [os.path.abspath(path) for path in options.paths] or [str(ROOT / "tests")]
    environ = {**os.environ, **options.environ}
    chosen = " ".join(options.paths or ["tests"])
    print(f"testbed test: through pytest {chosen} (no Bazel found or chosen)", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite.xml"
        code = subprocess.run(
            [*command, f"--junitxml={suite}", *options.rest, *paths], cwd=ROOT, env=environ
        ).returncode
        total = count([suite])
    return report(code, total)


def report(code: int, total: Counter[str]) -> int:
    """Print the summary line, the same for both runners, and return the exit status."""
    if code and not total["failed"]:
        total["failed"] = 1  # a target did not build, or the runner itself failed
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
    return code


def main(argv: list[str]) -> int:
    options = parse_arguments(argv)
    missing = [path for path in options.paths if not Path(path).exists()]
    if missing:
        print(f"testbed test: no such file or folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    bazel = find_bazel() if options.runner != "pytest" else None
    if options.runner == "bazel" and bazel is None:
        print("testbed test: no bazel on PATH; install it, or leave --runner out", file=sys.stderr)
        return 2
    if not options.every_cpu:
        return run_bazel(bazel, options) if bazel else run_pytest(options)
    codes = {}
    for name, options.environ in every_processor().items():
        print(f"testbed test: {name}", flush=True)
        codes[name] = run_bazel(bazel, options) if bazel else run_pytest(options)
    for name, code in codes.items():
        print(f"{name}: {'failed' if code else 'passed'}", flush=True)
    return max(codes.values(), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
