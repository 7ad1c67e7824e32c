"""`testbed run --profile`: the steps' counts, for HLO and LHLO, on both stacks; where it cannot be had."""

import json

import numpy as np
import pytest

from ...cli.main import main
from ..support.lhlo_programs import SMALL_LOOP


@pytest.fixture(params=["loop.hlo", "loop.lhlo.mlir", "marked.lhlo.mlir"])
def module(request, tmp_path, capsys):
    """The program as HLO, as LHLO, and as LHLO with marks."""
    (tmp_path / "loop.hlo").write_text(SMALL_LOOP)
    plain, marked = str(tmp_path / "loop.lhlo.mlir"), str(tmp_path / "marked.lhlo.mlir")
    assert main(["lhlo", str(tmp_path / "loop.hlo"), "-o", plain]) == 0
    assert main(["opt", plain, "--passes", "insert-profile", "-o", marked]) == 0
    assert capsys.readouterr() == ("", "")
    return str(tmp_path / request.param)


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
def test_calls_of_steps(module, emitters, capsys, tmp_path):
    np.savez(tmp_path / "in.npz", in0=np.int32(2), in1=np.ones(8, np.float32))
    inputs = str(tmp_path / "in.npz")
    assert main(["run", module, "--inputs", inputs, "--emitters", emitters, "--profile", "--json"]) == 0
    (program,) = json.loads(capsys.readouterr().out)["programs"]
    (iteration,) = program["iterations"]
    profile = iteration["profile"]
    (loop,) = [s for s in profile["steps"] if s["kind"] == "while"]
    assert (loop["calls"], loop["depth"], profile["lost_events"]) == (profile["runs"], 0, 0)
    inside = {s["calls"] for s in profile["steps"] if s["depth"] == 1}
    assert inside == {5 * profile["runs"], 6 * profile["runs"]}  # the body, the condition


def test_the_table_fits_a_pipe(module, capsys):
    assert main(["run", module, "--init", "zeros", "--profile"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(n for n, line in enumerate(lines) if line.split()[:3] == ["step", "kind", "calls"])
    assert any(line.startswith("w ") and "while" in line for line in lines[head:])
    assert "in steps" in lines[-1] or "in steps" in lines[-2]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("emitters", ["evaluator", "xla"])
def test_there_is_none_without_kernels(emitters, tmp_path, capsys):
    (tmp_path / "loop.hlo").write_text(SMALL_LOOP)
    assert main(["run", str(tmp_path / "loop.hlo"), "--emitters", emitters, "--profile"]) == 2
    assert "--profile needs compiled kernels" in capsys.readouterr().err


SOURCES = """HloModule m
ENTRY e {
  p = f32[8,8] parameter(0)
  d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/dot" source_file="a.py" source_line=12}
  c = f32[8,8] custom-call(d), custom_call_target="Sharding", metadata={op_name="jit(f)/shard"}
  ROOT r = f32[8,8] dot(c, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/last"}
}
"""


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
def test_steps_name_their_source_or_their_op_name(emitters, tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(SOURCES)
    run = ["run", str(tmp_path / "m.hlo"), "--emitters", emitters, "--profile"]
    assert main([*run, "--json"]) == 0
    (iteration,) = json.loads(capsys.readouterr().out)["programs"][0]["iterations"]
    steps = [(s["name"], s["op_name"], s["source"]) for s in iteration["profile"]["steps"]]
    assert steps == [("d", "jit(f)/dot", "a.py:12"), ("r", "jit(f)/last", "")]
    assert main(run) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("step "))
    assert [lines[head].split()[-1], lines[head + 1].split()[-1], lines[head + 2].split()[-1]] == [
        "source",
        "a.py:12",
        "jit(f)/last",
    ]


def test_without_metadata_there_is_no_column_for_it(tmp_path, capsys):
    (tmp_path / "loop.hlo").write_text(SMALL_LOOP)
    assert main(["run", str(tmp_path / "loop.hlo"), "--init", "zeros", "--profile"]) == 0
    assert not any("source" in line.split() for line in capsys.readouterr().out.splitlines())
