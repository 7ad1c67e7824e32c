"""The suite's report as text and its comparison with an earlier one, on made-up figures."""

import copy
import json

import pytest

from ...benchmarks.suite import history
from ...benchmarks.suite.figures import digits, geomean
from ...benchmarks.suite.limits import Limits
from ...benchmarks.suite.report import as_text
from ...benchmarks.suite.results import Figures, Report, Row, read_reports
from ...benchmarks.suite.rivals import DEFAULT
from ...hlo.errors import InputError

LIMITS = Limits(1, ((1 << 17, 1e11), (1 << 28, 1e10)), 1e10, {"f32": 1e11, "f64": 5e10}, {"xla": 2e-5, "legacy": 5e-6})


def figures(seconds, error=1e-7):
    return Figures(
        "ok", "", [seconds, seconds * 1.02, seconds * 0.98], [123.456], 1 << 30, 12_345_678_901, error, error
    )


def report(**times):
    """Workloads by name, each with the seconds of xla, recycled, legacy and mlir."""
    rows = [
        Row(name, "a-group-of-them", threads, dict(zip(DEFAULT, map(figures, seconds))), "", "", 1 << 22, 1e6)
        for threads in (1, 2)
        for name, seconds in times.items()
    ]
    place = {"processor": "A processor", "cpus": 2, "memory_bytes": 1 << 34, "fingerprint": "f"}
    limits = {1: LIMITS, 2: LIMITS}
    return Report("2026-01-01T00:00:00+00:00", place, {"jaxlib": "1", "numpy": "2"}, "abc", DEFAULT, {}, limits, rows)


def test_the_tables_of_the_usual_contestants_fit_80_columns_in_ascii():
    made = report(**{"a" * 24: (12.3456, 1.23456, 0.00123, 1234.5), "b": (1e-6, 1e-6, 2e-6, 3e-6)})
    made.rows[1].columns["mlir"] = Figures("failed", "killed by signal 11 (SIGSEGV): " + "words " * 30)
    made.rows[0].failure = "race: no answer within 120 s"
    text = as_text(made)
    assert text.isascii() and max(map(len, text.splitlines())) <= 80, text
    assert "2 threads" in text and "b: mlir: killed by signal 11" in text
    assert "race: no answer within 120 s" in text


def test_ratios_limits_and_means():
    lines = [line.split() for line in as_text(report(one=(0.004, 0.002, 0.001, 0.008))).splitlines()]
    assert ["workload", "xla", "ms", "min", "recycled", "legacy", "mlir", "limit"] in lines
    # The limit: 4 MiB at the bandwidth of the nearest size, 1e11 bytes a second, is 0.042 ms; arithmetic takes 0.01 ms.
    assert ["one", "4.00", "3.92", "0.500", "0.250", "2.00", "0.01"] in lines
    assert ["all", "1", "0.500", "0.250", "2.00"] in lines
    assert ["all,", "of", "minima", "1", "0.500", "0.250", "2.00"] in lines


def test_the_limit_is_the_larger_of_memory_and_arithmetic():
    assert LIMITS.seconds(1e9, 1.0, False) == pytest.approx(0.1)
    assert LIMITS.seconds(1.0, 1e10, False) == pytest.approx(0.1)
    assert LIMITS.seconds(1.0, 1e10, True) == pytest.approx(0.2)


def test_costs_are_multiples_of_xlas_and_stages_are_summed_up():
    made = report(one=(1.0, 1.0, 1.0, 1.0), other=(1.0, 1.0, 1.0, 1.0))
    for row, seconds in zip(made.rows, (0.4, 0.1), strict=False):
        row.columns["xla"].compile_seconds, row.columns["legacy"].compile_seconds = [0.1], [seconds]
        row.columns["xla"].compile_bytes, row.columns["legacy"].compile_bytes = 1 << 20, 3 << 20
        row.columns["legacy"].stages = {"plan": 0.001, "optimize": 0.003}
    lines = [line.split() for line in as_text(made).splitlines()]
    assert ["compile", "time", "legacy", "2.00", "1", "1", "4.00", "one"] in lines
    assert ["compile", "memory", "legacy", "2.00", "2", "0", "2.00", "one"] in lines
    assert ["temporary", "memory", "mlir", "1.00", "0", "0", "1.00", "one"] in lines
    assert ["optimize", "6.00", "75%"] in lines


def test_numbers_are_short():
    assert [digits(v) for v in (None, 0.0, 12.345, 0.0123456, 1234.5, 1e-9, float("inf"))] == [
        *("-", "0", "12.3", "0.0123", "1234", "1.0e-09", "inf")
    ]
    assert geomean([2.0, None, 8.0]) == pytest.approx(4.0) and geomean([None]) is None


def test_changes_are_relative_to_xla_and_known_from_noise():
    then = report(same=(1.0, 1.0, 1.0, 1.0), slower=(1.0, 1.0, 1.0, 1.0))
    now = report(same=(3.0, 3.0, 3.0, 3.0), slower=(3.0, 3.0, 6.0, 3.0))  # a machine three times slower
    found = {(c.name, c.threads, c.column): c for c in history.changes(now, then)}
    assert found["same", 1, "legacy"].median == pytest.approx(1) and not found["same", 1, "legacy"].is_beyond_noise
    slow = found["slower", 1, "legacy"]
    assert slow.relative and slow.median == pytest.approx(2) and slow.low > 1.5 and slow.is_beyond_noise
    assert found["same", 1, "xla"].median == pytest.approx(3) and not found["same", 1, "xla"].relative
    text = history.as_text(now, then, history.changes(now, then))
    assert "multiples of XLA's" in text and "2.00 [" in text and max(map(len, text.splitlines())) <= 80


def test_without_xla_of_the_same_version_times_themselves_are_compared():
    then, now = report(one=(1.0, 1.0, 1.0, 1.0)), report(one=(3.0, 3.0, 3.0, 3.0))
    now.versions = {"jaxlib": "2"}
    assert all(c.median == pytest.approx(3) for c in history.changes(now, then))
    assert len(history.changes(now, then)) == 8


def test_errors_that_grew_are_named_and_fail():
    then, now = report(one=(1.0, 1.0, 1.0, 1.0)), report(one=(1.0, 1.0, 1.0, 1.0))
    now.rows[0].columns["mlir"].error = 1e-3
    assert history.grown_errors(now, then) == ["one: mlir: error 1.0e-07 -> 1.0e-03"]
    assert "Errors that grew:" in history.as_text(now, then, [])


def test_the_history_grows_a_line_a_run_and_the_last_one_of_this_machine_counts(tmp_path):
    path = tmp_path / "history.jsonl"
    first, other = report(one=(1.0, 1.0, 1.0, 1.0)), report(one=(2.0, 2.0, 2.0, 2.0))
    other.machine = {**other.machine, "fingerprint": "g"}
    for made in (first, other):
        history.append(path, made)
    assert len(path.read_text().splitlines()) == 2 and len(read_reports(path)) == 2
    assert history.earlier("LAST", path, "f").as_json() == first.as_json()
    assert history.earlier("LAST", path, "nowhere").as_json() == other.as_json()
    plain = tmp_path / "r.json"
    plain.write_text(json.dumps(first.as_json(), indent=1))
    assert history.earlier(str(plain), None, "f").as_json() == first.as_json()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 99}', "no json", '{"schema": 1, "workloads": 3}'])
def test_a_file_of_another_kind_is_refused_and_kept(content, tmp_path):
    path = tmp_path / "other"
    path.write_text(content)
    with pytest.raises(InputError, match=r"not a report|holds no report"):
        history.earlier(str(path), None, "f")
    if content:
        with pytest.raises(InputError, match="not a report"):
            history.append(path, report(one=(1.0, 1.0, 1.0, 1.0)))
        assert path.read_text() == content


def test_reports_survive_json():
    made = report(one=(1.0, 1.0, 1.0, 1.0))
    assert Report.from_json(json.loads(json.dumps(made.as_json()))) == copy.deepcopy(made)
