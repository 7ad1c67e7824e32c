"""`testbed exact`: exit statuses, folders, what it prints."""

import json

import pytest

from ...cli.main import main
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS

ADD = "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  q = f32[8] parameter(1)\n"
ADD += "  ROOT r = f32[8] subtract(p, q)\n}\n"
FFT = "HloModule m\nENTRY e {\n  p = c64[8] parameter(0)\n  ROOT r = c64[8] fft(p), fft_type=FFT, fft_length={8}\n}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a.hlo").write_text(ADD)
    (tmp_path / "below" / "b.hlo").write_text(ADD)
    (tmp_path / "below" / "c.hlo").write_text(FFT)
    return tmp_path


def test_a_folder_has_a_row_for_each_distinct_kernel(folder, capsys):
    assert main(["exact", str(folder)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "equal a.hlo r_kernel 3 draws modulo 4261412863" in out
    assert "equal below/c.hlo r_kernel 3 draws modulo 4261412863: a library's call is one function" in out
    assert "2 equal, in" in out


def test_a_fault_ends_with_status_1_and_names_the_stack(folder, capsys):
    with planted(FAULTS["legacy-subtract-swapped"]):
        assert main(["exact", str(folder / "a.hlo"), "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["kernels"]
    assert row["status"] == "differ" and row["blamed"] == ["legacy"]
    assert row["reason"].startswith("legacy differs in 8 of 8 elements; result 0 at [0]: legacy ")


def test_one_kernel_by_its_name(folder, capsys):
    assert main(["exact", str(folder / "a.hlo"), "--kernel", "r_kernel"]) == 0
    assert main(["exact", str(folder / "a.hlo"), "--kernel", "other"]) == 2
    assert "no kernel 'other'" in capsys.readouterr().err


def test_what_cannot_be_read_is_a_row_of_a_folder(folder, capsys):
    (folder / "bad.hlo").write_text("HloModule m\nENTRY e {\n")
    assert main(["exact", str(folder), "--brief"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "not run bad.hlo (module)" in out and "equal a.hlo" not in out


def test_one_module_that_cannot_be_read_is_an_error(tmp_path, capsys):
    assert main(["exact", str(tmp_path / "gone.hlo")]) == 2
    assert main(["exact", str(tmp_path / "gone.hlo"), "--program", "--json"]) == 2
    read = capsys.readouterr()
    assert "no such file" in read.err and "no such file" in json.loads(read.out)["error"]["message"]


def test_a_whole_program(folder, capsys):
    assert main(["exact", str(folder / "a.hlo"), "--program"]) == 0
    assert "equal a.hlo (program) 3 draws" in " ".join(capsys.readouterr().out.split())
    assert main(["exact", str(folder), "--program", "--brief"]) == 0
    assert "3 equal, in" in capsys.readouterr().out
    assert main(["exact", str(folder / "a.hlo"), "--program", "--kernel", "r_kernel"]) == 2


def test_a_folder_without_modules_is_refused(tmp_path, capsys):
    assert main(["exact", str(tmp_path)]) == 2
    assert "no module" in capsys.readouterr().err


def test_diff_without_bounds(folder, capsys):
    assert main(["diff", str(folder / "a.hlo"), "--exact"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out == "verdict: legacy, mlir and the HLO are equal over a field: 2 kernels and programs on 3 draws"
    with planted(FAULTS["legacy-subtract-swapped"]):
        assert main(["diff", str(folder / "a.hlo"), str(folder / "below" / "c.hlo"), "--exact", "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["programs"]
    assert (first["status"], second["status"]) == (1, 0)
    assert first["verdict"] == "over a field, r_kernel differs: suspect legacy" and second["agrees"]
    assert first["exact"][0]["blamed"] == ["legacy"] and first["exact"][0]["forms"]


@pytest.mark.parametrize("other", [["--stacks", "legacy,mlir"], ["--platforms", "host,c"], ["--atol", "1"]])
def test_options_that_exact_has_no_use_for(folder, other, capsys):
    assert main(["diff", str(folder / "a.hlo"), "--exact", *other]) == 2
    assert "--exact exclude each other" in capsys.readouterr().err


def test_bisect_over_fields(folder, capsys):
    assert main(["bisect", str(folder / "a.hlo"), "--exact"]) == 1
    assert "equal over a field: r_kernel, (program)" in " ".join(capsys.readouterr().out.split())


def test_reduce_over_fields(folder, capsys):
    assert main(["reduce", str(folder / "a.hlo"), "--exact", "-o", str(folder / "r")]) == 1
    assert "nothing to reduce, all stacks agree: equal over a field" in " ".join(capsys.readouterr().out.split())
