"""The tests' function `check`: it accepts equal results, and its repro folder is a MODULE for the command line."""

import numpy as np
import pytest

from ...backends.base import MemoryFault
from ...differential import finding as findings
from ...formats.program import load_program
from ...hlo.errors import ParseError
from ..support import check as door

TEXT = """HloModule m
ENTRY e {
  p = f32[2,3] parameter(0)
  q = s32[] parameter(1)
  t = f32[2,3] negate(p)
  ROOT r = (f32[2,3], s32[]) tuple(t, q)
}
"""


class Wrong:
    """A compiled program whose results on the second stack are slightly wrong in one element."""

    stages = (("1.ll", "wrong code"),)

    def execute(self, inputs):
        first = -inputs[0]
        first[1, 2] += 0.5
        return [first, inputs[1]]


def test_agreement_returns_the_results():
    t, q = door.check(TEXT, [np.ones((2, 3), np.float32), np.int32(7)], stacks=["evaluator", "evaluator"])
    assert (t == -1).all() and q == 7


def test_inputs_are_made_from_a_seed():
    module = door.parsed(TEXT)
    a, b = door.make_inputs(module, 1), door.make_inputs(module, 1)
    assert [x.tobytes() for x in a] == [x.tobytes() for x in b] != [x.tobytes() for x in door.make_inputs(module, 2)]
    assert a[0].dtype == np.float32 and a[0].shape == (2, 3) and abs(a[0]).max() < 1


def test_special_inputs_stand_among_ordinary_ones():
    text = "HloModule m\nENTRY e {\n  p = f32[40] parameter(0)\n  q = s8[40] parameter(1)\n  ROOT t = tuple(p, q)\n}\n"
    a, b = (door.make_inputs(door.parsed(text), seed, special=True) for seed in (1, 2))
    for x, q in (a, b):
        assert np.isnan(x).any() and {np.inf, -np.inf, 0.0, np.finfo(np.float32).max} <= {*x.tolist()}
        assert np.signbit(x[x == 0]).any() and not np.signbit(x[x == 0]).all()
        assert {-128, 127, -1, 0} <= {*q.tolist()}
        assert (abs(x[20:]) < 1).all()  # ordinary
    assert a[0].tobytes() != b[0].tobytes()


def test_special_inputs_leave_out_what_several_orders_decide_on():
    text = "HloModule m\nENTRY e {\n  p = f32[40] parameter(0)\n  ROOT t = f32[40] sine(p)\n}\n"
    (x,) = door.make_inputs(door.parsed(text), special=True)
    assert np.isnan(x).any() and np.isinf(x).any() and x[np.isfinite(x)].max() <= 1


def test_a_mismatch_writes_a_folder_that_diff_takes(monkeypatch, tmp_path):
    monkeypatch.setattr(door, "compiled", lambda text, flags: Wrong())
    monkeypatch.setattr(findings, "compile_module", lambda *_: Wrong())
    monkeypatch.setattr(door.tempfile, "tempdir", str(tmp_path))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with pytest.raises(AssertionError) as caught:
        door.check(TEXT, [x, np.int32(3)], stacks=["evaluator", "legacy", "mlir,negate=legacy"])
    message = str(caught.value)
    assert "out0: legacy differs from evaluator in 1 of 6 elements" in message and "first at [1, 2]" in message
    (folder,) = (tmp_path / "testbed-repro").iterdir()
    assert f"repro: {folder}" in message and f"./testbed diff {folder}" in message
    program = load_program(str(folder))
    assert program.text == TEXT and (program.inputs[0] == x).all() and (program.expected[0] == -x).all()
    assert (folder / "stages/legacy/1.ll").read_text() == "wrong code"
    assert findings.read_finding(folder).stacks == ("evaluator", "legacy", "mlir,negate=legacy")
    assert "--emitters mlir,negate=legacy" in (folder / "rerun").read_text()


class Foreign:
    """A compiled program whose results are right, whatever it reads."""

    stages = (("1.ll", "code"),)

    def execute(self, inputs):
        return [-inputs[0], inputs[1]]

    def execute_checked(self, inputs):
        raise MemoryFault("t_kernel", "t", "memory that is not its own is read by kernel t_kernel (t)", "see its IR")


def test_foreign_memory_is_a_mismatch_where_it_is_checked(monkeypatch, tmp_path):
    monkeypatch.setattr(door, "compiled", lambda text, flags: Foreign())
    monkeypatch.setattr(findings, "compile_module", lambda *_: Foreign())
    monkeypatch.setattr(door.tempfile, "tempdir", str(tmp_path))
    given, stacks = [np.ones((2, 3), np.float32), np.int32(3)], ["evaluator", "legacy"]
    with pytest.raises(AssertionError, match=r"legacy: memory that is not its own is read by kernel t") as caught:
        door.check(TEXT, given, stacks)
    assert "--debug memory" in str(caught.value)
    door.check(TEXT, given, stacks, memory=False)
    monkeypatch.setattr(door, "MOST_CHECKED_BYTES", 10)
    door.check(TEXT, given, stacks)


def test_what_is_wrong_before_running_passes_through():
    with pytest.raises(ParseError):
        door.check("HloModule m\nENTRY e {", [])
