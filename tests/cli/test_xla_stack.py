"""The stack xla in the commands: a crash of XLA is one line or one row, its flags reach it, run takes it."""

import numpy as np
import pytest

from ...backends import xla
from ...backends.xla import XlaCrashed, installed
from ...cli.main import main
from ...differential.case_runner import run_case
from ...differential.corpus import Case
from ...formats.program import save_io
from ...hlo.errors import OutOfMemoryError
from ...migration.stacks import STACKS
from ..cases.modules import ADD

needs_xla = pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")


@pytest.fixture
def add(tmp_path):
    (tmp_path / "add").mkdir()
    (tmp_path / "add/module.hlo").write_text(ADD)
    value = np.array([1, -2], np.float32)
    save_io(tmp_path / "add/io.npz", [value], [2 * value])
    return tmp_path / "add"


@pytest.fixture
def crashing(monkeypatch):
    def crash(text, flags=()):
        raise XlaCrashed("killed by SIGABRT: partitioner.cc:269: Check failed: a == b")

    monkeypatch.setattr(xla, "IsolatedXla", crash)


def test_a_crash_is_one_line_of_diff_and_no_agreement(add, crashing, capsys):
    assert main(["diff", str(add), "--stacks", "evaluator,legacy,xla"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "xla: XLA crashed on this module: killed by SIGABRT: partitioner.cc:269: Check failed: a == b" in out
    assert "verdict: incomplete, xla did not run" in out


def test_a_stack_without_memory_is_one_line_of_diff(add, monkeypatch, capsys):
    """The evaluator may need it where no kernel does; the others are compared all the same."""

    def prepare(program, *_):
        raise OutOfMemoryError("multiply v, f32[100000,100000],", 4 * 10**10)

    monkeypatch.setitem(STACKS, "evaluator", prepare)
    assert main(["diff", str(add), "--stacks", "evaluator,legacy,mlir"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "evaluator: out of memory: multiply v, f32[100000,100000], takes 37.3 GiB" in out
    assert "verdict: incomplete, evaluator did not run; legacy, mlir, golden match" in out


def test_a_crash_ends_run_and_bench_with_one_line(add, crashing, capsys):
    for command in (["run", "--emitters", "xla"], ["bench", "--ab", "legacy,xla"]):
        assert main([*command, str(add)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("testbed: error: XLA crashed on this module: killed by SIGABRT")
        assert len(error.splitlines()) == 1


def test_a_crash_is_a_crashed_row(add, crashing):
    case = Case("add", str(add / "module.hlo"), str(add / "io.npz"), None, None, None)
    row = run_case(case, "xla")
    assert (row.status, row.reason) == ("crashed", "killed by SIGABRT: partitioner.cc:269: Check failed: a == b")


def test_flags_need_the_stack_and_their_form(add, capsys):
    assert main(["run", str(add), "--xla-flags=--xla_a=1"]) == 2
    assert "--xla-flags needs --emitters xla" in capsys.readouterr().err
    assert main(["run", str(add), "--emitters", "xla", "--red-zones"]) == 2
    assert "xla has none" in capsys.readouterr().err


@needs_xla
@pytest.mark.xla
def test_run_diff_and_bench_take_flags(add, tmp_path, capsys):
    def dumped() -> bool:
        files = [*(tmp_path / "dump").glob("*before_optimizations*")]
        for file in (tmp_path / "dump").glob("*"):
            file.unlink()
        return bool(files)

    flags = f"--xla-flags=--xla_dump_to={tmp_path}/dump"
    assert main(["run", str(add), "--emitters", "xla", flags]) == 0 and dumped()
    assert "out0 float32[2] [ 2., -4.]" in capsys.readouterr().out
    assert main(["diff", str(add), "--stacks", "evaluator,xla", flags]) == 0 and dumped()
    bench = ["bench", str(add), "--ab", "evaluator,xla", "--rounds", "3", "--seconds", "0.001"]
    assert main([*bench, flags]) == 0 and dumped()
    assert main(["run", str(add), "--emitters", "xla", "--xla-flags=--xla_nope"]) == 2
    assert "XLA's flags: No such compile option: 'xla_nope'" in capsys.readouterr().err
