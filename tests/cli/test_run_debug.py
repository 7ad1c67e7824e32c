"""`testbed run --debug`: what is found is said in words, a table and the document; what cannot be had is refused."""

import json

import pytest

from ...backends.base import DebugKind
from ...cli.main import main
from ...cli.run_debug import KINDS
from ...thunks.insert_checks import CHECKS

PROGRAM = """HloModule m
ENTRY e { x = f32[2,3] parameter(0)
  l = f32[2,3] log(x)
  t = f32[3,2]{0,1} transpose(l), dimensions={1,0}
  ROOT s = f32[3,2]{0,1} sort(t), dimensions={0}, to_apply=less }
"""
LESS = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\nENTRY"


@pytest.fixture
def run(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(PROGRAM.replace("ENTRY", LESS))

    def run(values, *arguments):
        status = main(["run", str(tmp_path / "m.hlo"), "--input", values, *arguments])
        return status, capsys.readouterr().out

    return run


def test_the_kinds_of_checks_are_those_of_the_options():
    assert KINDS == tuple(DebugKind) == (*CHECKS, "memory")  # which no thunks do


GOOD, BAD = "{{1,2,3},{4,5,6}}", "{{1,2,3},{4,-5,6}}"


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
@pytest.mark.parametrize("host", ["interpreted", "compiled"])
def test_the_first_nan_is_named_with_its_index(run, emitters, host):
    options = ["--emitters", emitters, "--host-program", host, "--debug", "nan"]
    status, text = run(BAD, *options, "--json")
    first, *_ = json.loads(text)["programs"][0]["iterations"][0]["checks"]["found"]
    assert status == 1 and first["value"] == "nan" and first["shape"] in ("f32[2,3]", "f32[3,2]")
    assert first["index"] == [1, 1] and first["times"] == 1
    status, text = run(GOOD, *options)
    assert status == 0 and "no NaN, in " in text


def test_the_words_and_the_table_fit_a_pipe(run):
    status, text = run(BAD, "--debug", "finite")
    lines = text.splitlines()
    assert status == 1 and any(line.startswith("the first is nan at [1,1] of f32[") for line in lines)
    assert any(line.split() == ["step", "shape", "index", "value", "times"] for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_parameter_that_brings_it_is_the_first(run):
    _, text = run("{{1,2,3},{4,nan,6}}", "--debug", "nan")
    assert "the first is nan at [1,1] of f32[2,3]: x" in text


def test_infinities_count_for_finite_only(run):
    zero = "{{1,2,3},{4,0,6}}"
    assert run(zero, "--debug", "nan")[0] == 0
    status, text = run(zero, "--debug", "finite")
    assert status == 1 and "the first is -inf at [0,1]" in text


def test_checksums_of_equal_runs_are_equal_and_show_where_others_part(run):
    def sums(values, *options):
        status, text = run(values, "--debug", "checksum", "--json", *options)
        assert status == 0
        return [(f["name"], f["checksum"]) for f in json.loads(text)["programs"][0]["iterations"][0]["checks"]["found"]]

    one = sums(GOOD)
    assert one == sums(GOOD, "--host-program", "compiled") and one[0][0] == "x"
    other = sums("{{1,2,3},{4,5,7}}")
    assert [n for n, _ in one] == [n for n, _ in other] and all(a != b for a, b in zip(one, other, strict=True))


def test_no_write_out_of_bounds(run):
    status, text = run(GOOD, "--debug", "redzone")
    assert status == 0 and "no kernel wrote out of bounds, in " in text


@pytest.mark.parametrize(("options", "message"), [
    (["--debug", "nan", "--profile"], "need a program of their own"),
    (["--debug", "nan", "--red-zones"], "need a program of their own"),
    (["--debug", "nan", "--emitters", "evaluator"], "--debug needs compiled kernels"),
    (["--debug", "zero"], "'zero' is not one of"),
])  # fmt: skip
def test_what_cannot_be_had_is_refused(tmp_path, capsys, options, message):
    (tmp_path / "m.hlo").write_text(PROGRAM.replace("ENTRY", LESS))
    assert main(["run", str(tmp_path / "m.hlo"), *options]) == 2
    assert message in capsys.readouterr().err
