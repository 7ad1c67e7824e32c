"""Bodies of integers are proved by z3: code of both stacks on formulas, and what it refuses."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("z3") is None:
    pytest.skip("z3-solver is not installed (./testbed setup --dev)", allow_module_level=True)

import z3

from ...differential.exact.check import kernels_of
from ...differential.exact.evidence import Evidence, Method, evidence_of
from ...differential.exact.formulas import ones_in, resized, zeros_above
from ...differential.exact.symbolic import Memory, NoProofError, run
from ...formats.text.parser import parse_module


def evidence(body: str) -> Evidence:
    (request,) = kernels_of(parse_module(f"HloModule m\n\nENTRY e {{\n{body}\n}}\n"))
    return evidence_of(request)


PAIR = "p = {0}[300] parameter(0)\n q = {0}[300] parameter(1)\n"
PROVED = {
    "a shift": PAIR.format("s32") + "ROOT r = s32[300] shift-left(p, q)",
    "a choice": PAIR.format("u64") + "a = u64[300] xor(p, q)\n c = pred[300] compare(a, q), direction=LT\n"
    "ROOT r = u64[300] select(c, a, q)",
    "a conversion": "p = s8[5,6] parameter(0)\n q = s32[5,6] parameter(1)\n a = s32[5,6] convert(p)\n"
    "ROOT r = s32[5,6] maximum(a, q)",
    "preds and bits": "p = pred[40] parameter(0)\n q = u64[40] parameter(1)\n a = u64[40] convert(p)\n"
    "b = u64[40] popcnt(q)\n ROOT r = u64[40] and(a, b)",
    "leading zeros": "p = u32[40] parameter(0)\n ROOT r = u32[40] count-leading-zeros(p)",
    "a magnitude": "p = s64[40] parameter(0)\n ROOT r = s64[40] abs(p)",
    "a number by itself": "p = s32[] parameter(0)\n q = s32[] parameter(1)\n"
    "ROOT r = pred[] compare(p, q), direction=GE",
    "half a byte": "p = s4[30] parameter(0)\n q = s32[30] parameter(1)\n a = s4[30] convert(q)\n"
    "ROOT r = s4[30] minimum(p, a)",
    "one argument twice": "p = s32[40] parameter(0)\n a = s32[40] negate(p)\n ROOT r = s32[40] and(a, p)",
}


@pytest.mark.parametrize("body", PROVED.values(), ids=PROVED)
def test_a_small_body_is_proved(body: str) -> None:
    found = evidence(body)
    assert found.method is Method.PROVED and found.row.is_equal and not found.why, found


NOT_PROVED = {
    "neighbours": (
        "p = s32[9] parameter(0)\n q = s32[9] reverse(p), dimensions={0}\n ROOT r = s32[9] maximum(p, q)",
        "no small body",
    ),
    "a power": (PAIR.format("s32") + "ROOT r = s32[300] power(p, q)", "power"),
    "a quotient": (PAIR.format("s64") + "ROOT r = s64[300] divide(p, q)", "z3 does not say"),
}


@pytest.mark.parametrize(("body", "why"), NOT_PROVED.values(), ids=NOT_PROVED)
def test_what_is_not_proved_says_why(body: str, why: str) -> None:
    found = evidence(body)
    assert found.method is Method.SAMPLED and found.row.is_equal and why in found.why, found


def test_wrong_code_has_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs is right; the code that is read for the proof is not."""
    from ...differential.exact import proof

    parse = proof.parse
    monkeypatch.setattr(proof, "parse", lambda text: str(parse(text)).replace("= xor i32", "= or i32"))
    found = evidence(PAIR.format("s32") + "ROOT r = s32[300] xor(p, q)")
    assert found.row.is_equal and found.method is Method.SAMPLED
    assert found.why.startswith("legacy, element 0: wrong for [a0.0 = "), found.why


HEAD = "define void @f(ptr %a, ptr %b) {\n"
X = z3.BitVec("x", 32)
REFUSED = {
    "poison": ("  %x = load i32, ptr %a, align 4\n  %y = add nsw i32 %x, 1\n  ret void", "add nsw"),
    "an unknown address": (
        "  %x = load i32, ptr %a, align 4\n  %y = getelementptr i32, ptr %a, i32 %x\n  ret void",
        "depends on operands",
    ),
    "unwritten memory": ("  %x = load i32, ptr %b, align 4\n  ret void", "not written"),
    "a vector": ("  %x = load <4 x i32>, ptr %a, align 4\n  ret void", "type <4 x i32>"),
    "another function": ("  call void @g()\n  ret void", "call void @g()"),
    "no end": ("  br label %loop\nloop:\n  br label %loop", "more than"),
}


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_formulas_is_refused(body: str, why: str) -> None:
    with pytest.raises(NoProofError, match=why.replace("(", r"\(").replace(")", r"\)")):
        run(f"{HEAD}{body}\n}}", "f", Memory({(0, 0): X}))


def test_a_shift_without_its_guard_is_a_duty() -> None:
    memory = Memory({(0, 0): X})
    body = "  %x = load i32, ptr %a, align 4\n  %y = shl i32 1, %x\n  store i32 %y, ptr %b, align 4\n  ret void"
    run(f"{HEAD}{body}\n}}", "f", memory)
    assert len(memory.duties) == 1
    solver = z3.Solver()
    solver.add(z3.Not(memory.duties[0]))
    assert solver.check() == z3.sat
    assert z3.simplify(z3.substitute(memory.cells[1, 0], (X, z3.BitVecVal(3, 32)))).as_long() == 8


def test_a_loop_runs_as_often_as_it_says() -> None:
    body = """entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  %p = getelementptr inbounds i32, ptr %a, i64 %i
  %x = load i32, ptr %p, align 4
  %q = getelementptr inbounds i32, ptr %b, i64 %i
  store i32 %x, ptr %q, align 4
  %n = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %n, 3
  br i1 %c, label %loop, label %done
done:
  ret void"""
    memory = Memory({(0, 4 * n): z3.BitVec(f"x{n}", 32) for n in range(3)})
    run(f"{HEAD}{body}\n}}", "f", memory)
    assert [str(memory.cells[1, 4 * n]) for n in range(3)] == ["x0", "x1", "x2"]


@pytest.mark.parametrize("number", [0, 1, 5, 127, 128, 255])
def test_counts_of_bits_are_those_of_numbers(number: int) -> None:
    x = z3.BitVecVal(number, 8)
    assert z3.simplify(ones_in(x)).as_long() == number.bit_count()
    assert z3.simplify(zeros_above(x)).as_long() == 8 - number.bit_length()
    assert z3.simplify(resized(x, 16, True)).as_long() == (number if number < 128 else number + 0xFF00)
    assert z3.simplify(resized(x, 4, True)).as_long() == number % 16
