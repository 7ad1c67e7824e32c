"""The commands on real programs: diff, run, stages, bench, conform."""

import json

import numpy as np
import pytest

from ...cli.main import main
from ...formats.program import save_io
from ...hlo.errors import UnsupportedError
from ..cases.modules import ADD


@pytest.fixture
def add(tmp_path):
    (tmp_path / "add").mkdir()
    (tmp_path / "add/module.hlo").write_text(ADD)
    value = np.array([1, -2], np.float32)
    save_io(tmp_path / "add/io.npz", [value], [2 * value])
    return tmp_path / "add"


OURS = ["--stacks", "evaluator,legacy,mlir"]


def test_diff_agrees(add, capsys):
    assert main(["diff", str(add), *OURS]) == 0
    out = capsys.readouterr().out
    assert "verdict: evaluator, golden, legacy, mlir agree" in out
    assert "1 by legacy" in out and "1 by mlir" in out and "the result agrees on all 6 pairs of stacks" in out


def test_code_is_made_for_the_processor_that_is_named(add, capsys, monkeypatch):
    from ...codegen.options import Target

    before = Target.host()
    named = "x86-64-v2" if before.architecture == "x86_64" else "host"
    assert main(["diff", str(add), *OURS, "--cpu", named]) == 0
    assert Target.host() == before
    assert main(["diff", str(add), *OURS, "--cpu", "z80"]) == 2
    assert "unknown processor 'z80' (choose from host" in capsys.readouterr().err
    monkeypatch.setenv("TESTBED_CPU", "z81")
    assert main(["run", str(add)]) == 2
    assert "unknown processor 'z81'" in capsys.readouterr().err


def test_the_number_of_threads_holds_until_the_command_ends(add, capsys, monkeypatch):
    from ...codegen.threads import set_threads, threads

    seen = []
    monkeypatch.setattr("testbed.cli.processor.set_threads", lambda count: (seen.append(count), set_threads(count)))
    before = threads()
    assert main(["diff", str(add), *OURS, "--threads", "3"]) == 0
    assert seen == [3, before] and threads() == before
    monkeypatch.setenv("TESTBED_THREADS", "2")
    assert main(["run", str(add)]) == 0
    assert seen[2:] == [2, before]
    capsys.readouterr()
    assert main(["run", str(add), "--threads", "0"]) == 2
    assert "0 is not in the range x>=1" in capsys.readouterr().err


def test_diff_with_a_wrong_golden_exits_1_and_suspects_it(add, capsys):
    value = np.array([1, -2], np.float32)
    save_io(add / "io.npz", [value], [value])
    assert main(["diff", str(add), *OURS]) == 1
    out = capsys.readouterr().out
    assert "golden differs from evaluator, legacy, mlir: suspect golden" in out
    assert "out0 f32[2]: golden and evaluator differ in 2 of 2 elements; allowed: " in out
    worst = [line.split() for line in out.splitlines() if line.startswith("  [1]")]
    assert worst[0] == ["[1]", "-2.0", "-4.0", "2", "0.5", "8.39e+06"] and len(worst) == 3
    assert "the result does not agree on 6 pairs of stacks" in out


def test_diff_with_an_unsupported_opcode_names_it_and_exits_1(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n"
        '  ROOT r = f32[4]{0} custom-call(p), custom_call_target="nobody_wrote_this"\n}\n'
    )
    assert main(["diff", str(tmp_path / "m.hlo"), *OURS]) == 1
    out = capsys.readouterr().out
    assert "custom-call" in out and "legacy" in out and "mlir" in out
    assert "verdict: incomplete, evaluator, legacy, mlir did not run; nothing to compare" in out


def test_diff_says_that_stacks_agree_only_if_all_ran(add, capsys, monkeypatch):
    from ...migration import stacks

    genuine = stacks.prepare

    def refusing(name, *arguments, **named):
        if name == "legacy":
            raise UnsupportedError("legacy", "add(f32)")
        return genuine(name, *arguments, **named)

    monkeypatch.setattr(stacks, "prepare", refusing)
    assert main(["diff", str(add), *OURS]) == 1
    out = capsys.readouterr().out
    assert "verdict: incomplete, legacy did not run; evaluator, mlir, golden match" in out
    assert "agree\n" not in out.split("verdict:")[1]


def test_diff_compares_the_results_in_the_file_of_inputs(add, tmp_path, capsys):
    value, file = np.array([3, 5], np.float32), tmp_path / "other.npz"
    save_io(file, [value], [2 * value])
    assert main(["diff", str(add), *OURS, "--inputs", str(file)]) == 0
    assert "evaluator, golden, legacy, mlir agree" in capsys.readouterr().out
    save_io(file, [value], [value])
    assert main(["diff", str(add), *OURS, "--inputs", str(file)]) == 1
    assert "suspect golden" in capsys.readouterr().out
    np.savez(file, in0=value)
    assert main(["diff", str(add), *OURS, "--inputs", str(file)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "golden: not compared, " in out and "verdict: evaluator, legacy, mlir agree" in out


def test_diff_with_flags_says_which_stack_emitted_which_kernel(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(
        "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
        "ENTRY e {\n  p = f32[4,4]{1,0} parameter(0)\n  d = f32[4,4]{1,0} dot(p, p), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n  z = f32[] constant(0)\n"
        "  ROOT r = f32[4]{0} reduce(d, z), dimensions={1}, to_apply=add\n}\n"
    )
    assert main(["diff", str(tmp_path / "m.hlo"), *OURS, "--emitters", "mlir,reduce=legacy"]) == 0
    out = capsys.readouterr().out
    assert "1 by legacy" in out and "1 by mlir" in out


@pytest.mark.parametrize("emitters", ["evaluator", "legacy", "mlir"])
def test_run_prints_and_saves(add, tmp_path, capsys, emitters):
    assert main(["run", str(add), "--emitters", emitters, "--output", str(tmp_path / "o.npz")]) == 0
    assert capsys.readouterr().out == "out0 float32[2] [ 2., -4.]\n"
    with np.load(tmp_path / "o.npz") as saved:
        assert saved["out0"].tolist() == [2, -4] and saved["in0"].tolist() == [1, -2]


def test_run_with_a_seed_is_reproducible(add, capsys):
    outputs = []
    for seed in ("3", "3", "4"):
        assert main(["run", str(add), "--seed", seed]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


def test_bench_prints_a_row_a_stack(add, capsys):
    assert main(["bench", str(add), "--ab", "legacy,mlir", "--rounds", "3", "--seconds", "0.001"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ratio to legacy" in lines[0] and lines[1].startswith("legacy") and lines[2].startswith("mlir")


ENDLESS = """HloModule endless
body { i = s64[] parameter(0)
  one = s64[] constant(1)
  ROOT n = s64[] add(i, one) }
condition { i = s64[] parameter(0)
  end = s64[] constant(-1)
  ROOT p = pred[] compare(i, end), direction=NE }
ENTRY e { x = s64[] parameter(0)
  z = s64[] abs(x)
  ROOT w = s64[] while(z), condition=condition, body=body }"""


def test_bench_leaves_out_what_takes_too_long(add, tmp_path, capsys):
    endless = tmp_path / "endless.hlo"
    endless.write_text(ENDLESS)
    rounds = ["--rounds", "3", "--seconds", "0.001"]
    assert main(["bench", str(endless), "--ab", "evaluator,optimized", *rounds, "--limit", "0.2"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{name}: left out, no result within 0.2 s" for name in ("evaluator", "optimized")
    ]
    assert main(["bench", str(add), "--ab", "evaluator,optimized", *rounds, "--limit", "100"]) == 0
    assert "ratio to evaluator" in capsys.readouterr().out


def test_conform_reports_and_exits_by_the_result(add, tmp_path, capsys):
    row = {"id": "add", "hlo": "module.hlo", "golden": "io.npz"}
    (add / "manifest.jsonl").write_text(json.dumps(row) + "\n")
    report = tmp_path / "r.json"
    stacks = ["--stacks", "evaluator,legacy,mlir,parse"]
    assert main(["conform", str(add), *stacks, "--jobs", "1", "--json", str(report)]) == 0
    assert "1 of 1 cases pass on evaluator, legacy, mlir, parse" in capsys.readouterr().out
    assert json.loads(report.read_text())["stacks"]["mlir"]["passed"] == 1
    save_io(add / "io.npz", [np.float32([1, 2])], [np.float32([1, 2])])
    assert main(["conform", str(add), "--stacks", "evaluator", "--jobs", "1"]) == 1
    assert "failed  evaluator  add: result 0" in capsys.readouterr().out


def test_known_failures_must_fail(add, tmp_path, capsys):
    (add / "manifest.jsonl").write_text(
        "".join(json.dumps({"id": n, "hlo": "module.hlo", "golden": f"{n}.npz"}) + "\n" for n in ("good", "bad"))
    )
    value = np.float32([1, 2])
    save_io(add / "good.npz", [value], [2 * value])
    save_io(add / "bad.npz", [value], [value])
    known, report = tmp_path / "known.txt", tmp_path / "r.json"
    conform = ["conform", str(add), "--stacks", "evaluator,optimized", "--jobs", "1"]
    conform += ["--expected-failures", str(known), "--json", str(report)]
    known.write_text("# what is known\n\nbad  its results are wrong\n")
    assert main(conform) == 0
    out = capsys.readouterr().out
    assert "failed" not in out.splitlines()[0].split("  ")[0] and "2 failures were expected" in out
    cases = json.loads(report.read_text())["cases"]
    assert [c.get("expected_failure") for c in cases] == [None, None, *["its results are wrong"] * 2]
    known.write_text("bad@evaluator its results are wrong\n")
    assert main(conform) == 1
    assert capsys.readouterr().out.startswith("failed  optimized  bad: ")
    known.write_text("bad x\ngood@optimized y z\n")
    assert main(conform) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"passed optimized good: expected to fail (y z); remove {known}:2:1" in out
    for text, words in (
        ("bad\n", f"{known}:1:1: bad has no reason"),
        ("\nugly x\n", f"{known}:2:1: the suite has no case 'ugly'"),
        ("bad@llvm x\n", f"{known}:1:1: unknown stack 'llvm'"),
        ("bad x\nbad y\n", f"{known}:2:1: a second entry for bad"),
    ):
        known.write_text(text)
        assert main(conform) == 2
        assert words in capsys.readouterr().err


def test_stages_writes_every_stage_of_both_stacks(add, tmp_path, capsys):
    out = tmp_path / "stages"
    assert main(["stages", str(add), "--dir", str(out)]) == 0
    names = {p.name for p in out.iterdir()}
    assert names == {
        "0.input.hlo",
        "1.optimized.hlo",
        "2.plan.txt",
        "3.thunks.txt",
        "legacy.0.forms.txt",
        "legacy.1.ll",
        "legacy.2.optimized.ll",
        "legacy.3.s",
        "mlir.0.forms.txt",
        "mlir.1.lhlo.mlir",
        "mlir.2.mlir",
        "mlir.3.llvm.mlir",
        "mlir.4.ll",
        "mlir.5.optimized.ll",
        "mlir.6.s",
    }
    assert all(p.stat().st_size for p in out.iterdir())
    capsys.readouterr()
    assert main(["forms", str(add), "--emitters", "mlir"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert " ".join((out / "mlir.0.forms.txt").read_text().split()) == printed
    assert main(["stages", str(add), "--dir", str(tmp_path / "more"), "--host-program", "compiled"]) == 0
    more = {p.name for p in (tmp_path / "more").iterdir()} - names
    assert more == {"4.host.mlir", "5.host.ll", "6.host.optimized.ll"}
    assert "@testbed_program" in (tmp_path / "more/4.host.mlir").read_text()
