"""Starts pytest inside a Bazel test: shards by test, reports to Bazel's files, keeps every write in TEST_TMPDIR."""

import os
import sys
from pathlib import Path

import pytest

# This file is tools/python/pytest_main.py in the runfiles. Their top folder is `testbed` or `_main`, by Bazel version.
ROOT = Path(__file__).absolute().parents[2]


class Shard:
    """Keeps every TEST_TOTAL_SHARDS-th test, and tells Bazel that sharding is supported."""

    def __init__(self, total: int, index: int) -> None:
        self.total, self.index = total, index

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        keep = items[self.index :: self.total]
        dropped = [item for number, item in enumerate(items) if number % self.total != self.index]
        config.hook.pytest_deselected(items=dropped)
        items[:] = keep


def arguments(environ: dict[str, str]) -> list[str]:
    temporary = environ.get("TEST_TMPDIR", "/tmp")
    args = [f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}", f"--basetemp={temporary}/pytest"]
    if "XML_OUTPUT_FILE" in environ:
        args.append(f"--junitxml={environ['XML_OUTPUT_FILE']}")
    if environ.get("TESTBRIDGE_TEST_ONLY"):
        args += ["-k", environ["TESTBRIDGE_TEST_ONLY"]]
    return args


def main(argv: list[str]) -> int:
    plugins: list[object] = []
    if "TEST_TMPDIR" in os.environ:
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.environ["TEST_TMPDIR"] + "/hypothesis")
        shared = os.environ.get("TESTBED_TEST_CACHE")  # of compiled code, as in a run without Bazel
        os.environ["GIT_CEILING_DIRECTORIES"] = os.environ["TEST_TMPDIR"]  # above it is a link to .git
        os.environ["XDG_CACHE_HOME"] = shared or os.environ["TEST_TMPDIR"] + "/cache"
    sharded = "TEST_TOTAL_SHARDS" in os.environ
    if sharded:
        plugins.append(Shard(int(os.environ["TEST_TOTAL_SHARDS"]), int(os.environ["TEST_SHARD_INDEX"])))
        Path(os.environ["TEST_SHARD_STATUS_FILE"]).touch()
    paths = [str(ROOT / arg) if (ROOT / arg).exists() else arg for arg in argv]
    code = pytest.main([*arguments(dict(os.environ)), *paths], plugins=plugins)
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and (sharded or "TESTBRIDGE_TEST_ONLY" in os.environ):
        return 0
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
