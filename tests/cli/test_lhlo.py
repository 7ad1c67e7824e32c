"""LHLO as a MODULE of every command, as text and bytecode, and `testbed lhlo`, which writes it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from testbed.cli.main import main

HLO = """HloModule small
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[4,8] parameter(0)
  zero = f32[] constant(0)
  t = f32[4,8] tanh(x)
  ROOT r = f32[4] reduce(t, zero), dimensions={1}, to_apply=add }"""


@pytest.fixture(params=["small.lhlo.mlir", "small.lhlo.mlirbc", "plain.mlir"])
def module(request, tmp_path, capsys):
    """The path of a program in LHLO: by its ending, as bytecode, and known by its content alone."""
    (tmp_path / "small.hlo").write_text(HLO)
    path = tmp_path / request.param
    assert main(["lhlo", str(tmp_path / "small.hlo"), "-o", str(path)]) == 0
    assert capsys.readouterr() == ("", "")
    return path


@pytest.mark.parametrize("emitters", ["evaluator", "legacy", "mlir", "mlir,fusion=legacy"])
def test_run(module, emitters, tmp_path):
    out = tmp_path / "out.npz"
    assert main(["run", str(module), "--emitters", emitters, "--output", str(out)]) == 0
    with np.load(out) as io:
        np.testing.assert_allclose(io["out0"], np.tanh(io["in0"]).sum(1), rtol=1e-5)


def test_diff(module, capsys):
    assert main(["diff", str(module), "--stacks", "evaluator,optimized,legacy,mlir"]) == 0
    assert "evaluator, legacy, mlir, optimized agree" in capsys.readouterr().out


def test_stages(module, tmp_path, capsys):
    folder = tmp_path / "stages"
    assert main(["stages", str(module), "--dir", str(folder)]) == 0
    names = {p.name for p in folder.iterdir()}
    assert {"0.input.lhlo.mlir", "1.values.hlo", "2.plan.txt", "legacy.1.ll", "mlir.2.mlir"} <= names
    assert '"lhlo.tanh"' in (folder / "0.input.lhlo.mlir").read_text()
    again = folder / "1.values.hlo"
    assert main(["diff", str(again), "--stacks", "evaluator,legacy"]) == 0


def test_show_and_bench(module, capsys):
    assert main(["show", str(module)]) == 0
    assert "tanh 1" in capsys.readouterr().out
    assert main(["bench", str(module), "--rounds", "3", "--seconds", "0.001"]) == 0
    assert "legacy" in capsys.readouterr().out


def test_opt(module, tmp_path, capsys):
    out = tmp_path / "o.lhlo.mlir"
    assert main(["opt", str(module), "--passes", "canonicalize,check-buffers", "-o", str(out)]) == 0
    assert main(["diff", str(out), "--stacks", "evaluator,legacy,mlir"]) == 0
    assert main(["opt", str(module)]) == 0
    assert "lhlo.tanh" in capsys.readouterr().out


def test_opt_lists_them(capsys):
    assert main(["opt", "--list"]) == 0
    assert "remove-dead-steps" in capsys.readouterr().out


def test_conform(module, tmp_path, capsys):
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    np.savez(tmp_path / "io.npz", in0=x, out0=np.tanh(x.astype(np.float64)).sum(1).astype(np.float32))
    row = {"id": "small", "suite": "own", "hlo": module.name, "golden": "io.npz", "params": [["float32", [4, 8]]]}
    row |= {"results": [["float32", [4]]], "opcodes": ["tanh"], "n_instructions": 3, "origin": "", "test": ""}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(row | {"atol": 1e-5, "rtol": 1e-5}) + "\n")
    assert main(["conform", str(tmp_path), "--stacks", "evaluator,legacy,mlir"]) == 0, capsys.readouterr()


def test_printed_text_names_slices_and_kernels(tmp_path, capsys):
    (tmp_path / "small.hlo").write_text(HLO)
    assert main(["lhlo", str(tmp_path / "small.hlo"), "--kernels"]) == 0
    text = capsys.readouterr().out
    assert "lhlo.kernel" in text and "lhlo.slice = array<i64: 0, 0, 128>" in text
    name = text.split("func.func @")[1].split("(")[0]
    assert main(["lhlo", str(tmp_path / "small.hlo"), "--kernel", name]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    "command, text, message",
    [
        (
            ["run"],
            "func.func @f(%x: memref<4xf32>) attributes {lhlo.program} {\n  scf.for\n}",
            "error: .*f.lhlo.mlir:2:",
        ),
        (["run"], "func.func @f(%x: memref<4xf32>) {\n  return\n}", "f.lhlo.mlir:1:1: 0 programs and 0 kernels"),
        (["opt", "--print-after", "fuse"], HLO, "--print-after is for passes on HLO"),
        (["opt", "--passes", "fuse"], HLO, "no LHLO pass 'fuse' "),
        (["buffers"], HLO, "LHLO fixes its buffers"),
        (["lhlo", "--kernel", "k"], HLO, "no kernel 'k'"),
    ],
)
def test_one_line_with_place_and_remedy(command, text, message, tmp_path, capsys):
    import re

    path = tmp_path / "f.lhlo.mlir"
    if text is HLO:
        (tmp_path / "small.hlo").write_text(HLO)
        assert main(["lhlo", str(tmp_path / "small.hlo"), "-o", str(path)]) == 0
    else:
        path.write_text(text)
    assert main([command[0], str(path), *command[1:]]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
