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

from .dependencies import PACKAGE, Checkout
from .rooms_of import read_groups
from .selection import SelectionError, changed_since, read_record, relative, select

ROOT = Path(__file__).absolute().parents[1]
RECORD = ROOT / ".venv" / "forms_reached.json"
"""Of which forms each test file reaches. Like a cache, it is no part of the checkout."""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="testbed test",
        description="Run the tests, through `bazel test //...` where Bazel is found and through pytest otherwise.",
    )
    parser.add_argument("paths", nargs="*", help="test files or folders, like tests/hlo/test_opset.py (default: all)")
    parser.add_argument(
        "--for",
        dest="changed",
        nargs="+",
        metavar="FILE",
        help="only the test files that depend on these files, by imports and by the record of forms",
    )
    parser.add_argument(
        "--changed",
        dest="since",
        nargs="?",
        const="HEAD",
        metavar="REV",
        help="the same for the files that differ from a revision of git (default: HEAD), and new ones",
    )
    parser.add_argument("--list", action="store_true", help="with --for or --changed: print the test files and why")
    parser.add_argument(
        "--record-forms",
        dest="record",
        nargs="?",
        const=str(RECORD),
        metavar="FILE",
        help="note the forms that each test file reaches, for --for and --changed; runs pytest "
        "(default: .venv/forms_reached.json, where these look)",
    )
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


def bazel_targets(paths: Iterable[str]) -> list[str]:
    """The labels of test files and folders: of a group whose files are all among them, else of the files themselves."""
    files: set[str] = set()
    labels: list[str] = []
    for path in paths:
        whole = Path(os.path.abspath(path))
        relative = whole.relative_to(ROOT)
        if relative.suffix == ".py":
            files.add("/".join(relative.parts[1:]))
        elif relative.parts[:1] == ("tests",) and len(relative.parts) > 1:  # no packages of Bazel's
            files |= {file.relative_to(ROOT / "tests").as_posix() for file in whole.rglob("test_*.py")}
        else:
            labels.append(f"//{relative.as_posix()}/..." if relative.parts else "//...")
    for name, grouped in read_groups(ROOT).items() if files else ():
        if files.issuperset(grouped):
            labels.append(f"//tests:{name}")
            files -= {*grouped}
    return labels + sorted("//tests:" + file.removesuffix(".py").replace("/", "_") for file in files)


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
    command.append(f"--test_env=TESTBED_TEST_CACHE={cache}")
    if options.expression:
        command.append(f"--test_filter={options.expression}")
    command += [f"--test_env={name}={value}" for name, value in options.environ.items()]
    if options.deep:
        command += ["--test_env=TESTBED_DEEP=1", "--test_timeout=3600"]
    if not sys.stderr.isatty():
        command.append("--show_progress_rate_limit=30")
    targets = bazel_targets(options.paths) if options.paths else ["//..."]
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
    if options.record:
        command += ["-p", f"{PACKAGE}.tools.record_forms", f"--record-forms={os.path.abspath(options.record)}"]
    paths = [os.path.abspath(path) for path in options.paths] or [str(ROOT / "tests")]
    environ = {**os.environ, **options.environ}
    chosen = " ".join(options.paths or ["tests"]) if len(options.paths) < 9 else f"{len(options.paths)} files"
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


def record_forms(options: argparse.Namespace) -> int:
    """Run the tests through pytest, and put the forms that they reached into the record."""
    from .record_forms import join, parts

    file = Path(options.record).absolute()
    for left in parts(file):  # by a run that was cut off
        left.unlink()
    code = run_pytest(options)
    try:
        count = join(file, Checkout(ROOT).tests)
    except SelectionError as error:
        return complain(str(error))
    print(f"testbed test: {count} test files recorded in {file}", flush=True)
    return code


def chosen_tests(options: argparse.Namespace) -> dict[str, str]:
    """The test files that --for and --changed select → why. Raises SelectionError."""
    checkout = Checkout(ROOT)
    files = relative(ROOT, options.changed) if options.changed else changed_since(ROOT, options.since)
    found = select(checkout, files, read_record(RECORD))
    named = files[0] if len(files) == 1 else f"{len(files)} files"
    print(f"testbed test: {len(found)} of {len(checkout.tests)} test files depend on {named}", flush=True)
    return found


def complain(text: str) -> int:
    print(f"testbed test: {text}", file=sys.stderr)
    return 2


def wrong_usage(options: argparse.Namespace) -> str | None:
    missing = [path for path in options.paths if not Path(path).exists()]
    if missing:
        return f"no such file or folder: {', '.join(missing)}"
    if sum(map(bool, (options.paths, options.changed, options.since))) > 1:
        return "give one of: paths, --for, --changed"
    if options.list and not (options.changed or options.since):
        return "--list goes with --for or --changed"
    if options.record and (options.expression or options.runner == "bazel" or options.every_cpu):
        return "--record-forms takes whole files, and runs pytest once: leave out -k, --runner bazel and --every-cpu"
    return None


def main(argv: list[str]) -> int:
    options = parse_arguments(argv)
    wrong = wrong_usage(options)
    if wrong is not None:
        return complain(wrong)
    bazel = find_bazel() if options.runner != "pytest" else None
    if options.runner == "bazel" and bazel is None:
        return complain("no bazel on PATH; install it, or leave --runner out")
    if options.changed or options.since:
        try:
            found = chosen_tests(options)
        except SelectionError as error:
            return complain(str(error))
        if options.list:
            print(*(f"{test}: {why}" for test, why in found.items()), sep="\n")
        if options.list or not found:
            return 0
        options.paths = [str(ROOT / test) for test in found]
    return record_forms(options) if options.record else run(bazel, options)


def run(bazel: str | None, options: argparse.Namespace) -> int:
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
