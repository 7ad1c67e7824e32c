"""Kernels taken from LHLO files run in the program; what does not fit or computes something else is refused."""

from __future__ import annotations

import re

import pytest

from testbed.cli.main import main

HLO = """HloModule softmax
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
body { s = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,16] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  low = f32[] constant(-inf)
  m = f32[8] reduce(x, low), dimensions={1}, to_apply=max
  b = f32[8,16] broadcast(m), dimensions={0}
  d = f32[8,16] subtract(x, b)
  e = f32[8,16] exponential(d)
  ROOT r = (s32[], f32[8,16]) tuple(next, e) }
condition { s = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[8,16] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[8,16]) tuple(zero, x)
  w = (s32[], f32[8,16]) while(t), condition=condition, body=body
  y = f32[8,16] get-tuple-element(w), index=1
  none = f32[] constant(0)
  ROOT r = f32[8] reduce(y, none), dimensions={1}, to_apply=add }"""


@pytest.fixture
def written(tmp_path, capsys):
    """The module, and the row kernel's name and file."""
    module = tmp_path / "m.hlo"
    module.write_text(HLO)
    assert main(["lhlo", str(module), "--kernels"]) == 0
    text = capsys.readouterr().out
    names = re.findall(r"func\.func @([\w.]+)\(", text)
    name = next(n for n in names if '"lhlo.exponential"' in text.split(f"@{n}(")[1].split("func.func")[0])
    kernel = tmp_path / "k.lhlo.mlir"
    assert main(["lhlo", str(module), "--kernel", name, "-o", str(kernel)]) == 0
    return module, name, kernel


def test_a_hand_written_kernel_runs_in_the_program(written, tmp_path, capsys):
    """exp(x − m) becomes exp(m − x) negated inside: another graph with the same meaning."""
    module, name, kernel = written
    text = kernel.read_text()
    line = re.search(r'"lhlo.subtract"\(%(\w+), %(\w+), %(\w+)\) \{[^}]*\} : \((.*?), .*', text)
    assert line is not None
    x, m, d, type_ = line.groups()
    changed = (
        f'%other = memref.alloca() : {type_}\n"lhlo.subtract"(%{m}, %{x}, %other) : ({type_}, {type_}, {type_}) -> ()\n'
        f'"lhlo.negate"(%other, %{d}) : ({type_}, {type_}) -> ()'
    )
    kernel.write_text(text.replace(line[0], changed))
    stacks = ["--stacks", "evaluator,legacy,mlir"]
    assert main(["diff", str(module), *stacks, "--replace", f"{name}={kernel}"]) == 0, capsys.readouterr()
    folder = tmp_path / "stages"
    assert main(["stages", str(module), "--dir", str(folder), "--replace", f"{name}={kernel}"]) == 0
    assert '"lhlo.negate"' in (folder / "mlir.1.lhlo.mlir").read_text()
    assert main(["run", str(module), "--emitters", "mlir", "--replace", f"{name}={kernel}"]) == 0
    assert main(["bench", str(module), "--rounds", "3", "--seconds", "0.001", "--replace", f"{name}={kernel}"]) == 0


WRONG = {
    "another value": (r'"lhlo.exponential"', '"lhlo.abs"', "computes another result 0 than kernel"),
    "other bytes": (r"8x16xf32", "8x17xf32", r"\[FUNC4\]"),
    "alignment": (r"lhlo.alignment = \d+", "lhlo.alignment = 4096", "is aligned to 4096 bytes, passed with"),
    "not LHLO": (r"lhlo.exponential", "lhlo.nothing", "k.lhlo.mlir:"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case, written, capsys):
    module, name, kernel = written
    pattern, new, message = WRONG[case]
    text = kernel.read_text()
    assert re.search(pattern, text)
    kernel.write_text(re.sub(pattern, new, text))
    assert main(["run", str(module), "--replace", f"{name}={kernel}"]) == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    "spec, message",
    [("nothing", "'nothing' is not KERNEL=FILE"), ("k=f", "no kernel 'k'"), ("{0}={0}.x", "no such file")],
)
def test_wrong_specs(spec, message, written, capsys):
    module, name, _ = written
    assert main(["run", str(module), "--replace", spec.format(name)]) == 2
    assert message in capsys.readouterr().err


def test_one_kernel_is_replaced_once(written, capsys):
    module, name, kernel = written
    spec = f"{name}={kernel}"
    assert main(["run", str(module), "--replace", spec, "--replace", spec]) == 2
    assert "is replaced twice" in capsys.readouterr().err
