"""tools/jax_tests.py on a small file of tests: outcomes, a crash, a hang, going on, the manifest."""

import sys

import pytest

from ...tools import jax_tests
from ...tools.jax_tests import Result, Run
from .children import needs_jax

TESTS = """
import os, time, unittest

class T(unittest.TestCase):
    def test_a_passes(self): pass
    def test_b_fails(self): self.assertEqual(1, 2)
    def test_c_crashes(self): os._exit(9)
    def test_d_is_skipped(self): self.skipTest("why")
    def test_e_hangs(self): time.sleep(600)
    def test_f_passes(self): pass
"""


@needs_jax
def test_each_test_has_an_outcome(tmp_path):
    (tmp_path / "some_test.py").write_text(TESTS)
    run = Run(tmp_path, tmp_path / "state", "cpu", "", 1, 3.0, sys.executable)
    results = jax_tests.run_file(run, "some_test.py")
    assert [(r.test.removeprefix("T::test_"), r.outcome) for r in results] == [
        ("a_passes", "passed"),
        ("b_fails", "failed"),
        ("c_crashes", "crashed"),
        ("d_is_skipped", "skipped"),
        ("e_hangs", "hung"),
        ("f_passes", "passed"),
    ]
    assert results[1].text == "AssertionError: 1 != 2"
    log = run.log("some_test.py")
    kept = log.read_text().splitlines()
    log.write_text("\n".join(kept[:2]) + '\n{"test": "cut')  # as of a run that was killed
    assert [r.outcome for r in jax_tests.run_file(run, "some_test.py")] == [r.outcome for r in results]


@needs_jax
def test_a_file_that_cannot_be_imported_is_a_failure(tmp_path):
    (tmp_path / "some_test.py").write_text("import no_such_module\n")
    run = Run(tmp_path, tmp_path / "state", "cpu", "", 1, 3.0, sys.executable)
    (result,) = jax_tests.run_file(run, "some_test.py")
    assert (result.test, result.outcome) == ("(collection)", "failed")
    assert "no_such_module" in result.text


RESULTS = [
    Result("T::a", "passed"),
    Result("T::b", "failed", 0, "x"),
    Result("T::c", "crashed"),
    Result("T::d", "hung"),
]


def test_what_differs_from_the_manifest_is_said():
    known = {"T::a": "reason a", "T::c": "reason c"}
    said = list(jax_tests.surprises("f.py", RESULTS, known, {"T::d": "failed"}))
    assert said == ["f.py::T::a: passes, but is a known failure (reason a)", "f.py::T::b: failed: x"]


def test_manifest_keeps_reasons(tmp_path, monkeypatch):
    text = jax_tests.written_manifest(
        {"1.0": {"g.py": {"T::z": "of another file"}, "f.py": {"T::b": "reason b", "T::gone": "old"}}},
        "1.0",
        {"f.py": RESULTS},
        {"f.py": {}},
    )
    monkeypatch.setattr(jax_tests, "MANIFEST", tmp_path / "m.toml")
    jax_tests.MANIFEST.write_text(text)
    known = jax_tests.known_failures("1.0")
    assert known["g.py"] == {"T::z": "of another file"}
    assert known["f.py"]["T::b"] == "reason b" and set(known["f.py"]) == {"T::b", "T::c", "T::d"}
    assert jax_tests.known_failures("2.0") == {}


def test_known_failures_have_reasons():
    for files in map(jax_tests.known_failures, ("0.10.2", "0.12.0.1")):
        for tests in files.values():
            assert all(why and not why.startswith("TODO") for why in tests.values())


def test_report_counts_of_what_passes_on_the_cpu():
    table = jax_tests.report({"f.py": (RESULTS, {"T::a": "passed", "T::b": "passed", "T::c": "failed"})})
    assert table.splitlines()[1].split() == ["f.py", "1", "1", "1", "1", "0", "1/2", "0"]


def test_tests_must_be_there(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["jax_tests.py", "--tests", str(tmp_path / "none")])
    assert jax_tests.main() == 2
    assert "name the tests of a checkout of JAX" in capsys.readouterr().err


@pytest.mark.parametrize("nodeid", ["a/b_test.py::T::test_x[1::2]", "b_test.py::T::test_x[1::2]"])
def test_name_is_without_the_file(nodeid):
    assert jax_tests.name_of(nodeid) == "T::test_x[1::2]"
