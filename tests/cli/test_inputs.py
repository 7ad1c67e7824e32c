"""Inputs from the command line, several modules, iterations, replicas, and bounds by hand."""

import numpy as np
import pytest

from ...cli.inputs import KINDS
from ...cli.main import main
from ...differential import filled_inputs as filled
from ...differential.filled_inputs import filled_inputs
from ...formats.program import save_io
from ...formats.text.parser import parse_module

SUB = """HloModule sub
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT s = f32[2] subtract(a, b)
}
"""
TUPLE = """HloModule t
ENTRY e {
  p = (s32[], c64[2], token[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  c = c64[2] get-tuple-element(p), index=1
  ROOT r = (c64[2], s32[]) tuple(c, i)
}
"""


@pytest.fixture
def sub(tmp_path):
    (tmp_path / "sub.hlo").write_text(SUB)
    return str(tmp_path / "sub.hlo")


@pytest.mark.parametrize(
    ("given", "result"),
    [
        (["f32[2] {5,7}", "{1,2}"], "[4., 5.]"),
        (["f32[2]{0} {5,7}", "f32[2]{1,2}"], "[4., 5.]"),
        (["b={1,2}", "a = f32[2] {5, 7}"], "[4., 5.]"),
        (["%b = {1,2}", "{inf, -7}"], "[inf, -9.]"),
        (["b={0,0}", "f32[2] 3"], "[3., 0.]"),  # as a constant: one number is the first element
    ],
)
def test_values_on_the_command_line(sub, capsys, given, result):
    options = [word for text in given for word in ("--input", text)]
    assert main(["run", sub, "--emitters", "evaluator", *options]) == 0
    assert capsys.readouterr().out.split("] ", 1)[1].replace(" ", "") == result.replace(" ", "") + "\n"


@pytest.mark.parametrize("text", ["(s32[], c64[2], token[]) (7, {(1,2), 3}, token)", "(7, {(1,2), 3}, token)"])
def test_a_tuple_on_the_command_line(tmp_path, capsys, text):
    (tmp_path / "t.hlo").write_text(TUPLE)
    text = text.replace(", token)", ", )")
    assert main(["run", str(tmp_path / "t.hlo"), "--emitters", "evaluator", "--input", text]) == 0
    assert capsys.readouterr().out.splitlines() == ["out0 complex64[2] [1.+2.j, 3.+0.j]", "out1 int32[] 7"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--input", "{1,2,3}"], "--input 1:1:6: dimension 0 of a constant of shape f32[2] has more than 2"),
        (["--input", "a = {1,x}"], "--input 1:1:8: expected a f32 number, found 'x'"),
        (["--input", "f32[3] {1,2,3}"], "--input 1:1:1: f32[3] does not match f32[2] (give a value of f32[2])"),
        (["--input", "s32[2] {1,2}"], "s32[2] does not match f32[2]"),
        (["--input", "{1,2} {3}"], "--input 1:1:7: expected the end of the value"),
        (["--input", "{...}"], "the value is elided"),
        (["--input", "a={1,2}"], "no value for parameter b of shape f32[2] (add --input 'b="),
        (["--input", "c={1,2}"], "--input 1: no parameter named c (the parameters are a, b)"),
        (["--input", "a={1,2}", "--input", "a={1,2}"], "--input 2: a second value for a"),
        (["--input", "{1,2}"] * 3, "--input 3: a value too many; sub has 2 parameters (a: f32[2], b: f32[2])"),
        (["--input", "{1,2}", "--inputs", "x.npz"], "--inputs and --input exclude each other"),
        (["--init", "ones", "--seed", "1"], "--init ones and --seed exclude each other"),
        (["--init", "twos"], "'twos' is not one of 'ones', 'iota', 'random', 'nan', 'zeros'"),
        (["--replicas", "2", "--emitters", "xla"], "xla runs on one device, without feeds; choose other --emitters"),
        (["--iterations", "2", "--output", "o.npz"], "--output takes one MODULE"),
    ],
)
def test_wrong_values_are_one_line_with_place(sub, capsys, options, words):
    assert main(["run", sub, *options]) == 2
    out, err = capsys.readouterr()
    assert words in err.splitlines()[0] and out == ""


def test_the_rest_of_the_parameters_is_filled_where_that_is_asked(sub, capsys):
    assert main(["run", sub, "--emitters", "evaluator", "--input", "b={1,2}", "--init", "ones"]) == 0
    assert "[ 0., -1.]" in capsys.readouterr().out


def test_kinds_of_inputs():
    text = "HloModule m\nENTRY e {\n" + "".join(
        f"  p{n} = {t}[3] parameter({n})\n" for n, t in enumerate(["f32", "s8", "pred", "u4", "c64", "f8e4m3fn"])
    )
    module = parse_module(text + "  ROOT r = f32[3] negate(p0)\n}\n")
    assert KINDS == filled.KINDS
    numbers = {
        k: [v.astype(complex).real.tolist() for v in filled_inputs(module, k)] for k in ("ones", "zeros", "iota")
    }
    assert numbers["ones"] == [[1] * 3] * 6 and numbers["zeros"] == [[0] * 3] * 6
    assert numbers["iota"] == [[0, 1, 2], [0, 1, 2], [0, 1, 0], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    nan = filled_inputs(module, "nan")
    assert [bool(np.isnan(v.astype(complex)).all()) for v in nan] == [True, False, False, False, True, True]
    drawn = filled_inputs(module, "random", 5)
    assert (nan[1] == filled_inputs(module, "nan")[1]).all() and not (
        drawn[0] == filled_inputs(module, "random")[0]
    ).all()
    wide = parse_module("HloModule m\nENTRY e {\n  p = s4[40] parameter(0)\n  ROOT r = s4[40] negate(p)\n}\n")
    assert filled_inputs(wide, "iota")[0].astype(int).tolist()[6:10] == [6, 7, -8, -7]


def test_several_modules_and_an_error_among_them(sub, tmp_path, capsys):
    (tmp_path / "bad.hlo").write_text(SUB.replace("subtract", "substract"))
    bad = str(tmp_path / "bad.hlo")
    for command in (["run"], ["diff", "--stacks", "evaluator,legacy"]):
        assert main([*command, sub, bad, sub]) == 2
        out, err = capsys.readouterr()
        assert f"testbed: error: {bad}:5:" in err and out.count(sub) == 2
        assert out.count("out0 float32[2]" if command == ["run"] else "verdict: evaluator, legacy agree") == 2


def test_iterations_draw_from_the_next_seed(sub, capsys):
    outputs = []
    for options in (["--seed", "4"], ["--seed", "5"], ["--seed", "4", "--iterations", "2"]):
        assert main(["run", sub, *options]) == 0
        outputs.append(capsys.readouterr().out)
    fourth, fifth, both = outputs
    assert both == f"{fourth}iteration 2: seed 5\n{fifth}" and fourth != fifth
    assert main(["diff", sub, "--stacks", "evaluator,legacy", "--iterations", "3"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("iteration")] == [
        "iteration 1: seed 0", "iteration 2: seed 1", "iteration 3: seed 2",
    ]  # fmt: skip
    assert out.endswith("verdict: evaluator, legacy agree in all 3 iterations\n")


def test_iterations_on_the_same_inputs_must_give_the_same_bits(sub, capsys, monkeypatch):
    assert main(["run", sub, "--init", "iota", "--iterations", "2"]) == 0
    assert capsys.readouterr().out == "out0 float32[2] [0., 0.]\niteration 2: the same bits\n"
    from ...migration import stacks

    results = iter([np.float32([1, 2]), np.float32([1, 3])])
    monkeypatch.setattr(stacks, "run_prepared", lambda *_: stacks.Run([next(results)], 0.0, 0.0))
    assert main(["run", sub, "--init", "iota", "--iterations", "2"]) == 1
    assert "iteration 2 gives other bits than the first on the same inputs: out0" in capsys.readouterr().err


@pytest.mark.parametrize("emitters", ["evaluator", "legacy", "mlir"])
def test_replicas_exchange_values(emitters, tmp_path, capsys):
    (tmp_path / "sum.hlo").write_text(
        "HloModule m\nadd { x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y) }\n"
        "ENTRY e {\n  r = u32[] replica-id()\n  f = f32[] convert(r)\n  p = f32[] parameter(0)\n"
        "  s = f32[] add(f, p)\n  ROOT a = f32[] all-reduce(s), to_apply=add\n}\n"
    )
    given = ["--emitters", emitters, "--input", "10", "--replicas", "3"]
    assert main(["run", str(tmp_path / "sum.hlo"), *given]) == 0
    assert capsys.readouterr().out.splitlines() == [f"replica {r} out0 float32[] 33." for r in range(3)]


def test_bounds_by_hand_replace_the_modules(sub, tmp_path, capsys):
    value, other = np.float32([4, 5]), np.float32([4.0001, 5])
    save_io(tmp_path / "io.npz", [np.float32([5, 7]), np.float32([1, 2])], [other])
    diff = ["diff", sub, "--stacks", "evaluator,legacy", "--inputs", str(tmp_path / "io.npz")]
    ulp = int(other.view(np.int32)[0] - value.view(np.int32)[0])
    for option, status in (
        ([], 1), (["--atol", "2e-4"], 0), (["--atol", "5e-5"], 1), (["--rtol", "3e-5"], 0), (["--rtol", "2e-5"], 1),
        (["--ulp", str(ulp)], 0), (["--ulp", str(ulp - 1)], 1), (["--atol", "0"], 1),
    ):  # fmt: skip
        assert main([*diff, *option]) == status, option
        out = capsys.readouterr().out
        assert ("bounds: as given, " in out) == bool(option)
    assert main([*diff, "--atol", "1", "--ulp", "3"]) == 0
    assert "bounds: as given, 1 absolute or 3 ulp; the bounds of the module" in capsys.readouterr().out
