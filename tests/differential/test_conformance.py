"""The conformance runner: every outcome of a case becomes one row, and the run continues."""

import json
import os
import signal
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ...backends import registry
from ...backends.cuda.dialect import CUDA
from ...differential.case_runner import run_case
from ...differential.comparison import nearest_of
from ...differential.conformance import run_cases
from ...differential.corpus import Case, read_suite, select
from ...differential.report import CaseResult, summary, write_json
from ...formats.program import load_io, save_io
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.shapes import array
from ..support.host_items import host_items
from ..support.recorded import Recorded


def case(name: str) -> Case:
    return Case(name, "unused.hlo", None, None, None, None)


def scripted(case, stack):
    """A runner that does what the case's id says, on the first stack; others pass."""
    if stack == "legacy" and case.id == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if stack == "legacy" and case.id == "exit":
        os._exit(3)
    if stack == "legacy" and case.id == "hang":
        time.sleep(600)
    print("noise of a stack")
    return CaseResult(case.id, stack, "passed")


def test_a_crash_or_a_hang_is_one_row_and_the_rest_of_the_case_still_runs(capfd):
    names = ["a", "segfault", "b", "exit", "hang", "c"]
    rows = run_cases([case(n) for n in names], ["legacy", "mlir"], jobs=2, limit=8.0, runner=scripted)
    assert [(r.id, r.stack) for r in rows] == [(n, s) for n in names for s in ("legacy", "mlir")]
    bad = {r.id: r for r in rows if r.status != "passed"}
    assert {(r.id, r.stack, r.status) for r in bad.values()} == {
        (n, "legacy", "crashed") for n in ("segfault", "exit", "hang")
    }
    assert bad["segfault"].reason == "killed by signal 11"
    assert bad["exit"].reason == "exited with status 3"
    assert bad["hang"].reason == "no answer within 8 s"
    assert capfd.readouterr().out == ""


def test_an_interrupt_ends_the_run_at_once():
    def interrupt(row):
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_cases(
            [case(n) for n in ("a", "hang", "hang")], ["legacy"], jobs=2, limit=60, on_row=interrupt, runner=scripted
        )
    assert time.monotonic() - start < 30


def suite(folder: Path, *rows: dict) -> Path:
    (folder / "manifest.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder


ADD = "HloModule m\n\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  ROOT r = f32[2]{0} add(p, p)\n}\n"


def test_real_cases_pass_fail_and_are_refused(tmp_path):
    (tmp_path / "add.hlo").write_text(ADD)
    (tmp_path / "bad.hlo").write_text(ADD.replace("add(", "ad("))
    value = np.array([1, -2], np.float32)
    save_io(tmp_path / "right.npz", [value], [value + value])
    save_io(tmp_path / "wrong.npz", [value], [value])
    np.savez(tmp_path / "short.npz", in0=value[:1], out0=value)
    rows = [
        {"id": name, "hlo": f"{hlo}.hlo", "golden": f"{golden}.npz"}
        for name, hlo, golden in [
            ("right", "add", "right"),
            ("wrong", "add", "wrong"),
            ("short", "add", "short"),
            ("unparsed", "bad", "right"),
            ("gone", "gone", "right"),
        ]
    ]
    cases = read_suite(suite(tmp_path, *rows))
    got = {r.id: r for r in run_cases(cases, ["evaluator"], jobs=1, limit=60)}
    assert got["right"].status == "passed" and got["right"].max_abs == 0
    assert got["wrong"].status == "failed" and got["wrong"].max_abs == 2.0 and "result 0" in got["wrong"].reason
    assert got["short"].status == "failed" and "in0" in got["short"].reason and "f32[2]" in got["short"].reason
    assert got["unparsed"].status == "failed" and "bad.hlo:5:" in got["unparsed"].reason
    assert got["gone"].status == "failed" and "no such file" in got["gone"].reason
    write_json(tmp_path / "report.json", list(got.values()), ["evaluator"])
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["stacks"] == {"evaluator": {"passed": 1, "failed": 4, "undecided": 0, "unsupported": 0, "crashed": 0}}
    assert set(report["cases"][0]) == {"id", "stack", "status", "reason", "max_abs", "max_rel", "max_ulp", "seconds"}
    assert summary([], ["mlir"]) == {"mlir": {"passed": 0, "failed": 0, "undecided": 0, "unsupported": 0, "crashed": 0}}


@pytest.mark.parametrize("line", ["{", "[1]", '{"id": "a"}', '{"hlo": "a.hlo"}', "3"])
def test_a_malformed_manifest_is_located(tmp_path, line):
    (tmp_path / "manifest.jsonl").write_text('{"id": "x", "hlo": "x.hlo"}\n' + line + "\n")
    with pytest.raises(InputError, match=r"manifest\.jsonl:2:1: not a case"):
        read_suite(tmp_path)


def test_missing_and_empty_suites_are_errors(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_suite(tmp_path)
    (tmp_path / "manifest.jsonl").write_text("\n")
    with pytest.raises(InputError, match="holds no case"):
        read_suite(tmp_path)


def test_selection_is_by_glob_and_seed():
    cases = [case(f"add.{i}") for i in range(20)] + [case("sub.0")]
    assert [c.id for c in select(cases, "sub.*", None, 0)] == ["sub.0"]
    first, again, other = (select(cases, None, 5, seed) for seed in (1, 1, 2))
    assert first == again != other and len(first) == 5
    assert [c.id for c in first] == [c.id for c in cases if c in first]
    with pytest.raises(InputError, match="no case matches"):
        select(cases, "mul.*", None, 0)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F8E4M3FN, DType.S4, DType.U4, DType.PRED, DType.C64, DType.F16])
@pytest.mark.parametrize("dims", [(), (3,), (0, 2)])
def test_io_files_round_trip_every_kind_of_dtype(tmp_path, dtype, dims):
    value = np.ones(dims, dtype.numpy)
    save_io(tmp_path / "io.npz", [value], [value])
    (got,), (out,) = load_io(tmp_path / "io.npz", [array(dtype, *dims)], [array(dtype, *dims)])
    assert got.dtype == out.dtype == dtype.numpy and got.shape == dims and got.tobytes() == value.tobytes()


def test_io_files_that_cannot_be_read_or_do_not_fit_say_why(tmp_path):
    f32 = array(DType.F32, 2)
    path = tmp_path / "io.npz"
    with pytest.raises(InputError, match="no such file"):
        load_io(path, [f32], None)
    path.write_bytes(b"PK\3\4 truncated")
    with pytest.raises(InputError, match="not a readable"):
        load_io(path, [f32], None)
    np.savez(path, in0=np.zeros(2, np.float32), in1=np.zeros(2, np.float32))
    with pytest.raises(InputError, match="holds in1, but the module has 1"):
        load_io(path, [f32], None)
    with pytest.raises(InputError, match="in2 is missing"):
        load_io(path, [f32, f32, f32], None)
    with pytest.raises(InputError, match=r"in0: dtype f32 does not match f64\[2\]"):
        load_io(path, [array(DType.F64, 2), f32], None)
    with pytest.raises(InputError, match=r"in0: shape \[2\] does not match f32\[3\]"):
        load_io(path, [array(DType.F32, 3), f32], None)


def test_a_suite_is_read_from_the_source_that_is_asked_for(tmp_path):
    rows = [{"id": "a", "hlo": "a.hlo", "stablehlo": "a.mlir"}, {"id": "b", "hlo": "b.hlo"}]
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert [Path(c.hlo).name for c in read_suite(tmp_path)] == ["a.hlo", "b.hlo"]
    assert [Path(c.hlo).name for c in read_suite(tmp_path, "stablehlo")] == ["a.mlir"]
    (tmp_path / "manifest.jsonl").write_text(json.dumps(rows[1]) + "\n")
    with pytest.raises(InputError, match="no case has a 'stablehlo' path"):
        read_suite(tmp_path, "stablehlo")


FLOOR = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT r = f32[4]{0} floor(p)\n}\n"


def test_a_device_that_keeps_subnormals_may_have_their_results(tmp_path, monkeypatch):
    """XLA:CPU, whose results are expected, flushes them; nothing else is allowed."""
    monkeypatch.setitem(registry._PLATFORMS, "cuda", Recorded(CUDA, host_items()))
    (tmp_path / "floor.hlo").write_text(FLOOR)
    given = np.array([-1e-45, -1.5, 2.5, np.nan], np.float32)
    save_io(tmp_path / "right.npz", [given], [np.array([-0.0, -2, 2, np.nan], np.float32)])
    save_io(tmp_path / "wrong.npz", [given], [np.array([-0.0, -2, 3, np.nan], np.float32)])
    rows = [{"id": name, "hlo": "floor.hlo", "golden": f"{name}.npz"} for name in ("right", "wrong")]
    right, wrong = read_suite(suite(tmp_path, *rows))
    for stack in ("legacy@cuda", "mlir@cuda"):
        assert run_case(right, stack).status == "passed"
        row = run_case(wrong, stack)
        assert row.status == "failed" and "1 elements differ, first at [2]" in row.reason


def test_the_nearest_of_several_expected_arrays_is_taken_by_part():
    value = np.array([1 + 2j, complex(np.nan, 5), complex(np.inf, 0)], np.complex64)
    first = np.array([1 + 9j, 3 + 5.5j, complex(np.inf, 1)], np.complex64)
    second = np.array([7 + 2j, complex(np.nan, 9), complex(-np.inf, 0)], np.complex64)
    found = nearest_of(value, [first, second])
    np.testing.assert_array_equal(found, np.array([1 + 2j, complex(np.nan, 5.5), complex(np.inf, 0)], np.complex64))
    narrow = [np.array([2, 7], ml_dtypes.bfloat16), np.array([4, 1], ml_dtypes.bfloat16)]
    assert nearest_of(np.array([4, 6], ml_dtypes.bfloat16), narrow).tolist() == [4, 7]
