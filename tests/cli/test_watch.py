"""A program that never ends: diff says what it is at, and --limit ends it."""

import re
import threading
import time

import pytest

from ...cli import watch
from ...cli.main import main
from ...cli.watch import OverLimit, Watch, limited

ENDLESS = """HloModule m
c {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  z = s32[] constant(-1)
  ROOT r = pred[] compare(i, z), direction=GT
}
b {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  big = s32[] constant(1000000)
  j = s32[] add(i, one)
  k = s32[] remainder(j, big)
  y = f32[] negate(x)
  ROOT t = (s32[], f32[]) tuple(k, y)
}
ENTRY e {
  i = s32[] constant(0)
  x = f32[] parameter(0)
  t = (s32[], f32[]) tuple(i, x)
  w = (s32[], f32[]) while(t), condition=c, body=b
  ROOT r = f32[] get-tuple-element(w), index=1
}
"""


def test_an_endless_program_is_told_of_and_ended(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(watch, "FIRST_SECONDS", 0.4)
    (tmp_path / "m.hlo").write_text(ENDLESS)
    stacks = "evaluator,legacy,mlir"
    assert main(["diff", str(tmp_path / "m.hlo"), "--stacks", stacks, "--limit", "3"]) == 1
    said = capsys.readouterr()
    assert re.search(r"evaluator runs, for \d s now: \w+ '\w+' of [bc]; [\d,]+ iterations of 'w'", said.err)
    assert re.search(r"legacy runs, for \d s now: some [\d,]+ iterations", said.err)
    assert said.out.count("no answer within 3 s") == 3 and "incomplete, evaluator, legacy, mlir did not run" in said.out
    assert main(["diff", "examples/integer_hash", "--stacks", "evaluator,legacy", "--limit", "60"]) == 0


def test_lines_become_rarer_and_end(monkeypatch):
    monkeypatch.setattr(watch, "FIRST_SECONDS", 0.1)
    lines = []
    with Watch(lines.append) as told:
        time.sleep(0.3)
        assert not lines  # nothing is being done
        told.doing("x runs")
        time.sleep(1.2)
    count = len(lines)
    assert 2 <= count <= 4 and lines[0].startswith("x runs, for 0 s now")
    time.sleep(0.4)
    assert len(lines) == count


def test_the_limit_is_for_the_block():
    with pytest.raises(OverLimit), limited(0.1):
        threading.Event().wait(5)
    with limited(0.1):
        pass
    time.sleep(0.2)
    with limited(None):
        time.sleep(0.01)
