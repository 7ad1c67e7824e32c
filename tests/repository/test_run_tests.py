"""tools/run_tests.py: labels, counts over Bazel's reports, arguments; and how pytest_main.py shards."""

import json
from pathlib import Path

import pytest

from ...tools import run_tests
from ...tools.python import pytest_main


def suite(folder: Path, name: str, **numbers: int) -> Path:
    file = folder / name
    counts = " ".join(f'{key}="{value}"' for key, value in numbers.items())
    file.write_text(f"<testsuites><testsuite name='pytest' {counts}/></testsuites>")
    return file


def test_counts_add_up_and_a_missing_report_is_a_failure(tmp_path):
    files = [
        suite(tmp_path, "a.xml", tests=10, failures=1, errors=1, skipped=2),
        suite(tmp_path, "b.xml", tests=3, failures=0, errors=0),
        tmp_path / "gone.xml",
    ]
    assert run_tests.count(files) == {"passed": 9, "failed": 3, "skipped": 2}


def test_the_last_attempt_of_a_flaky_shard_counts():
    def event(shard: int, attempt: int) -> str:
        return json.dumps(
            {
                "id": {"testResult": {"label": "//tests:t", "run": 1, "shard": shard, "attempt": attempt}},
                "testResult": {
                    "testActionOutput": [{"name": "test.xml", "uri": f"file:///x%20y/{shard}/{attempt}.xml"}]
                },
            }
        )

    lines = [event(1, 1), event(1, 2), event(2, 1), json.dumps({"id": {"progress": {}}})]
    assert run_tests.suites(lines) == [Path("/x y/1/2.xml"), Path("/x y/2/1.xml")]


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("tests/repository/test_names.py", "//tests:repository_test_names"),
        ("tests/hlo/test_x.py", "//tests:hlo_test_x"),
        ("tests", "//tests/..."),
        (".", "//..."),
    ],
)
def test_paths_become_labels(path, label, monkeypatch):
    monkeypatch.setattr(run_tests, "read_groups", lambda root: {})  # which Bazel's sandbox does not have
    assert run_tests.bazel_targets([str(run_tests.ROOT / path)]) == [label]


def test_files_become_the_labels_of_whole_groups_and_of_the_others(tmp_path, monkeypatch):
    """Only tests/ itself is a package of Bazel's."""
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    names = ("passes/test_b.py", "passes/algebra/test_a.py", "passes/test_d.py", "passes/conftest.py", "hlo/test_c.py")
    for name in names:
        file = tmp_path / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    groups = {"g": ["passes/test_b.py", "passes/algebra/test_a.py"], "h": ["passes/test_d.py", "hlo/test_c.py"]}
    monkeypatch.setattr(run_tests, "read_groups", lambda root: groups)
    passes = str(tmp_path / "tests" / "passes")
    assert run_tests.bazel_targets([passes]) == ["//tests:g", "//tests:passes_test_d"]
    assert run_tests.bazel_targets([passes + "/test_b.py"]) == ["//tests:passes_test_b"]
    assert run_tests.bazel_targets([passes, str(tmp_path / "tests/hlo/test_c.py")]) == ["//tests:g", "//tests:h"]


def test_a_missing_path_is_one_line_and_status_2(capsys):
    assert run_tests.main(["tests/no_such_test.py"]) == 2
    assert capsys.readouterr().err == "testbed test: no such file or folder: tests/no_such_test.py\n"


def test_bazel_that_is_not_there_is_one_line_and_status_2(capsys, monkeypatch):
    monkeypatch.setattr(run_tests, "find_bazel", lambda: None)
    assert run_tests.main(["--runner", "bazel"]) == 2
    assert "no bazel on PATH" in capsys.readouterr().err


def test_bazel_is_told_of_the_corpus_where_there_is_one(tmp_path, monkeypatch):
    def command(*arguments: str, **environ: str) -> list[str]:
        return run_tests.bazel_command("bazel", run_tests.parse_arguments([*arguments]), tmp_path, environ)

    monkeypatch.setattr(run_tests, "ROOT", tmp_path / "checkout")
    assert not [word for word in command() if "CORPUS" in word]
    (tmp_path / "shared/corpus").mkdir(parents=True)
    assert f"--test_env=TESTBED_CORPUS={tmp_path}/shared/corpus" in command()
    assert "--test_env=TESTBED_CORPUS=/elsewhere" in command(TESTBED_CORPUS="/elsewhere")
    assert {"--test_filter=add", "--jobs=1"} <= set(command("-k", "add", "--jobs=1"))


def test_pytest_ends_with_the_same_count(monkeypatch, capfd):
    monkeypatch.delenv("TESTBED_DEEP", raising=False)
    arguments = ["--runner", "pytest", "-k", "without_loss", str(Path(__file__).absolute())]
    assert run_tests.main(arguments) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    assert run_tests.main([*arguments, "--no-such-option"]) != 0
    assert capfd.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_shards_split_the_tests_without_loss():
    class Hook:
        def pytest_deselected(self, items):
            dropped.extend(items)

    class Config:
        hook = Hook()

    dropped: list[int] = []
    kept = []
    for index in range(3):
        items = list(range(10))
        pytest_main.Shard(3, index).pytest_collection_modifyitems(Config(), items)
        kept += items
    assert sorted(kept) == list(range(10)) and len(dropped) == 20


def test_bazels_report_filter_and_folder_reach_pytest():
    args = pytest_main.arguments({"XML_OUTPUT_FILE": "out.xml", "TESTBRIDGE_TEST_ONLY": "add", "TEST_TMPDIR": "/t"})
    assert args[2:] == ["--basetemp=/t/pytest", "--junitxml=out.xml", "-k", "add"]


def test_the_sample_is_of_files_that_exist():
    options = run_tests.parse_arguments(["--sample", "--cpu", "x86-64-v3"])
    checkout = Path(__file__).resolve().parents[2]  # Bazel's sandbox holds this test's own inputs only
    names = [Path(path).relative_to(run_tests.ROOT) for path in options.paths]
    assert names and all((checkout / name).is_file() for name in names)
    assert options.environ == {"TESTBED_CPU": "x86-64-v3"}


def test_every_processor_is_a_run_of_its_own_and_one_failure_fails(capsys, monkeypatch):
    from ...codegen.options import Target

    found = run_tests.every_processor()
    assert [name for name in found if name in Target.levels()] == Target.levels()
    runs = []

    def run(options):
        runs.append(options.environ)
        return int("x86-64-v3" in options.environ.values())

    chosen = {"x86-64-v2": {"TESTBED_CPU": "x86-64-v2"}, "x86-64-v3": {"TESTBED_CPU": "x86-64-v3"}}
    monkeypatch.setattr(run_tests, "every_processor", lambda: chosen)
    monkeypatch.setattr(run_tests, "run_pytest", run)
    assert run_tests.main(["--every-cpu", "--runner", "pytest"]) == 1
    assert runs == list(chosen.values())
    assert capsys.readouterr().out.endswith("x86-64-v2: passed\nx86-64-v3: failed\n")


def test_the_processor_reaches_the_tests_through_bazel(tmp_path):
    options = run_tests.parse_arguments(["--cpu", "x86-64-v2"])
    assert "--test_env=TESTBED_CPU=x86-64-v2" in run_tests.bazel_command("bazel", options, tmp_path / "e", {})
