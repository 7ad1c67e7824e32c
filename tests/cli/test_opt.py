"""`testbed opt`: passes by name, the table, printing, verification, fuel."""

import re

import numpy as np
import pytest

from ...cli.main import main
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import VerificationError
from ...hlo.ir import Computation, Module
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...passes import pipeline
from ...passes.algebra.rule import rule
from ...passes.algebra.sweep import ALL_RULES, by_opcode, simplify_algebra
from ..support.passes import agree

TEXT = """HloModule m
callee { p = f32[4] parameter(0)
  r = f32[2,2] reshape(p)
  q = f32[4] reshape(r)
  ROOT n = f32[4] negate(q) }
ENTRY e { x = f32[4] parameter(0)
  a = f32[4] call(x), to_apply=callee
  c = f32[4] copy(a)
  dead = f32[4] abs(c)
  d = f32[4] copy(c)
  ROOT t = f32[4] tanh(d) }
"""


@pytest.fixture
def module(tmp_path):
    (tmp_path / "m.hlo").write_text(TEXT)
    return str(tmp_path / "m.hlo")


def rows(table: str) -> dict[str, list[str]]:
    """The table's lines by pass."""
    lines = [line.split() for line in table.splitlines()]
    assert lines[0] == ["pass", "ms", "before", "after", "rewrites"]
    return {line[0]: line[1:] for line in lines[1:]}


def test_prints_the_module_and_a_table(module, capsys):
    assert main(["opt", module, "--passes", "inline,dce,cse,simplify,fuse", "--verify-each"]) == 0
    done = capsys.readouterr()
    optimised = parse_module(done.out)
    verify(optimised)
    x = np.array([0.5, -1, 2, 0], np.float32)
    agree(parse_module(TEXT), evaluate(parse_module(TEXT), [x]), evaluate(optimised, [x]))
    table = rows(done.err)
    assert list(table)[:4] == ["inline", "dce", "cse", "simplify"] and list(table)[-2:] == ["fuse", "total"]
    assert {"flatten", "layouts"} < set(table)  # which fuse requires
    assert table["simplify"][-1] != "0" and table["total"][2] == str(pipeline.count_instructions(optimised))


def test_the_default_is_the_pipeline(module, capsys):
    assert main(["opt", module]) == 0
    names = [line.split()[0] for line in capsys.readouterr().err.splitlines()[1:-1]]
    assert names == list(pipeline.OPTIMIZE)


def test_print_after(module, capsys):
    assert main(["opt", module, "--passes", "inline,dce", "--print-after", "inline"]) == 0
    first, second = re.split(r"(?=^HloModule)", capsys.readouterr().out, flags=re.M)[1:]
    assert "dead" in first and "dead" not in second


@pytest.mark.parametrize("limit", range(8))
def test_the_pass_limit_bounds_rewrites(module, capsys, limit):
    assert main(["opt", module, "--passes", "flatten,simplify,dce", "--pass-limit", str(limit)]) == 0
    done = capsys.readouterr()
    spent = int(rows(done.err)["total"][-1])
    assert spent == min(limit, 6)  # flatten, four rewrites, dce
    verify(parse_module(done.out))


def test_print_after_takes_patterns_and_each_must_match(module, capsys):
    assert main(["opt", module, "--passes", "inline,dce,dce", "--print-after", "d*", "--print-after", "i?line"]) == 0
    assert re.findall(r"^// .*", capsys.readouterr().out, re.M) == [
        "// after inline, pass 1 of 3", "// after dce, pass 2 of 3", "// after dce, pass 3 of 3",
    ]  # fmt: skip
    for pattern in ("fuse", "x*"):
        assert main(["opt", module, "--passes", "inline,dce", "--print-after", pattern]) == 2
        assert f"--print-after {pattern}: no such pass among those that run: inline, dce" in capsys.readouterr().err


def test_print_before(module, capsys):
    assert main(["opt", module, "--passes", "inline,dce", "--print-before", "i*", "--print-after", "inline"]) == 0
    first, second, third = re.split(r"(?=^HloModule)", capsys.readouterr().out, flags=re.M)[1:]
    assert "call(" in first and "call(" not in second and "dead" in second and "dead" not in third
    assert main(["opt", module, "--passes", "inline", "--print-before", "fuse"]) == 2
    assert "--print-before fuse: no such pass among those that run: inline" in capsys.readouterr().err


def test_the_module_is_dumped_where_it_changes(module, tmp_path, capsys):
    folder = tmp_path / "a" / "dump"
    assert main(["opt", module, "--passes", "inline,dce,dce", "--dump-on-change", str(folder)]) == 0
    assert sorted(p.name for p in folder.iterdir()) == ["000.input.hlo", "001.inline.hlo", "002.dce.hlo"]
    assert (folder / "002.dce.hlo").read_text() == capsys.readouterr().out
    assert "dead" in (folder / "001.inline.hlo").read_text() and "call(" in (folder / "000.input.hlo").read_text()
    assert main(["opt", module, "--dump-on-change", str(folder)]) == 2
    assert "exists and is not an empty folder (give a new folder)" in capsys.readouterr().err
    assert main(["opt", module, "--dump-on-change", f"{module}/x"]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_output_is_a_file_that_appears_whole(module, tmp_path, capsys):
    target = tmp_path / "out.hlo"
    assert main(["opt", module, "--passes", "dce", "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    verify(parse_module(target.read_text()))
    assert main(["opt", module, "--passes", "dce", "-o", "-"]) == 0
    assert capsys.readouterr().out == target.read_text()
    assert main(["opt", module, "-o", str(tmp_path / "no" / "out.hlo")]) == 2
    assert "out.hlo: cannot write: No such file or directory" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.hlo", "out.hlo"]


def test_inputs_are_for_evaluation(module, capsys):
    for option in (["--seed", "1"], ["--inputs", "x.npz"]):
        assert main(["opt", module, *option]) == 2
        assert f"{option[0]} is for --evaluate-each" in capsys.readouterr().err


def test_an_unknown_pass_is_one_line_with_a_guess(module, capsys):
    assert main(["opt", module, "--passes", "dce,simplfy"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "no pass named 'simplfy'" in error and "did you mean simplify?" in error
    assert main(["opt", module, "--print-after", "cse2"]) == 2
    assert "did you mean cse?" in capsys.readouterr().err


def test_verify_each_names_the_pass_that_broke_the_module(module, capsys, monkeypatch):
    def break_it(given: Module) -> Module:
        entry = given.entry
        broken = Computation(entry.name, entry.instructions[1:], entry.root)
        return Module(given.name, (*given.computations[:-1], broken), broken)

    monkeypatch.setitem(pipeline.PASSES, "break", pipeline.Pass("break", break_it))
    assert main(["opt", module, "--passes", "dce,break", "--verify-each"]) == 2
    assert "after break: " in capsys.readouterr().err
    with pytest.raises(VerificationError):
        verify(break_it(parse_module(TEXT)))


def test_list(module, capsys):
    assert main(["opt", "--list"]) == 0
    out = capsys.readouterr().out
    ours, _, on_lhlo = out.partition("\n\non a MODULE in LHLO:\n")
    assert [line.split()[0] for line in ours.splitlines() if line[0] != " "] == list(pipeline.PASSES) and on_lhlo
    assert "requires agreed, flat" in " ".join(out.split())


def wrong(given: Module) -> Module:
    """A pass with a bug: it changes the root's opcode."""
    entry = given.entry
    root = entry.root.replace(opcode=Op.NEGATE)
    changed = Computation(entry.name, (*entry.instructions[:-1], root), root)
    return Module(given.name, (*given.computations[:-1], changed), changed)


def test_evaluate_each_names_the_first_pass_that_changes_a_result(module, capsys, monkeypatch):
    monkeypatch.setitem(pipeline.PASSES, "wrong", pipeline.Pass("wrong", wrong))
    assert main(["opt", module, "--passes", "flatten,simplify,wrong,dce", "--evaluate-each"]) == 1
    first, second, *difference = capsys.readouterr().err.splitlines()
    assert re.match(r"wrong changes the results: result 0: [1-4] elements differ, first at \[\d\]", first)
    limit = re.search(r"rewrite 1 of 1 does; to see it: --passes flatten,simplify,wrong --pass-limit (\d+)", second)
    assert limit is not None and [line[:9] for line in difference] == ["- t = f32", "+ t = f32"]
    again = ["opt", module, "--passes", "flatten,simplify,wrong", "--evaluate-each", "--pass-limit"]
    assert main([*again, limit[1]]) == 1 and main([*again, str(int(limit[1]) - 1)]) == 0


def test_evaluate_each_names_the_rewrite(tmp_path, capsys, monkeypatch):
    def wrong_rule(i, b):
        """x - y → y - x."""
        return b.binary(Op.SUBTRACT, i.operands[1], i.operands[0]) if i.operands[1].name == "y" else None

    rules = by_opcode([rule(Op.SUBTRACT, wrong_rule), *ALL_RULES])
    monkeypatch.setitem(pipeline.PASSES, "algebra", pipeline.Pass("algebra", lambda m: simplify_algebra(m, rules)))
    lines = [f"  a{n} = f32[4] negate({f'b{n - 1}' if n else 'x'})\n  b{n} = f32[4] negate(a{n})\n" for n in range(9)]
    lines.insert(5, "  bad = f32[4] subtract(b4, y)\n  c = f32[4] multiply(bad, y)\n")
    text = f"HloModule m\nENTRY e {{\n  x = f32[4] parameter(0)\n  y = f32[4] parameter(1)\n{''.join(lines)}"
    (tmp_path / "m.hlo").write_text(f"{text}  ROOT t = f32[4] add(b8, c) }}\n")
    assert main(["opt", str(tmp_path / "m.hlo"), "--passes", "dce,algebra", "--evaluate-each"]) == 1
    error = capsys.readouterr().err
    assert "its rewrite 6 of 10 does; to see it: --passes dce,algebra --pass-limit 6, and 5" in error
    assert re.search(r"^- bad = .*subtract\(x, y\)$", error, re.M) and re.search(
        r"^\+ bad = .*subtract\(y, x\)$", error, re.M
    )


def test_evaluate_each_on_the_whole_pipeline(module, tmp_path):
    np.savez(tmp_path / "in.npz", in0=np.array([0, -0.0, np.nan, np.inf], np.float32))
    assert main(["opt", module, "--evaluate-each", "--inputs", str(tmp_path / "in.npz")]) == 0
    assert main(["opt", module, "--evaluate-each", "--seed", "3"]) == 0
    assert main(["opt", module, "--evaluate-each", "--seed", "3", "--inputs", "x.npz"]) == 2
    (tmp_path / "r.hlo").write_text("HloModule m\nENTRY e { a = f32[] constant(0)\n b = f32[] constant(1)\n"
                                    "ROOT r = f32[2] rng(a, b), distribution=rng_uniform }")  # fmt: skip
    assert main(["opt", str(tmp_path / "r.hlo"), "--evaluate-each"]) == 0  # passes draw the same numbers


def test_list_rules(capsys):
    assert main(["opt", "--list-rules"]) == 0
    lines = re.sub(r"\n +", " ", capsys.readouterr().out).splitlines()
    assert [line.split()[0] for line in lines] == [r.name for r in ALL_RULES]
    (power,) = [line for line in lines if line.startswith("power_small")]
    assert "x^-1 -> a quotient" in power and "inexact, 4 ulp: " in power
    assert sum("inexact" in line for line in lines) == sum(bool(r.inexact) for r in ALL_RULES) < len(ALL_RULES) / 5
