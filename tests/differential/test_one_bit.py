"""`check` sees one bit: what is off by more than a module's bound fails, by as little as that may be."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ...differential.bounds import bounds_of, op_ulp
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import EXACT
from ..cases.elementwise_cases import Case, cases
from ..support import check as door

COUNT = 64
CASES = [*cases()]
DTYPES = {d.numpy: d for d in DType if d.is_array}
ABOVE_ONE = {Op.ACOSH, Op.FLOOR, Op.ROUND_NEAREST_AFZ, Op.ROUND_NEAREST_EVEN}
STACKS = ("evaluator", "other")
"""`other` is the evaluator with one element changed."""


def stepped(x: np.ndarray, at: int, ulp: int) -> np.ndarray:
    """x with one element moved by steps to neighbours, away from zero; of an integer or pred, one bit changed."""
    changed = np.array(x)
    flat = changed.reshape(-1)
    if not np.iscomplexobj(changed) and not DTYPES[changed.dtype].is_float:
        flat.view(np.dtype(f"u{changed.dtype.itemsize}"))[at] ^= 1
    elif np.iscomplexobj(changed):
        flat.real[at : at + 1] = stepped(flat.real[at : at + 1], 0, ulp)
    else:
        flat.view(np.dtype(f"u{changed.dtype.itemsize}"))[at] += np.array(ulp).astype(f"u{changed.dtype.itemsize}")
    return changed


def run_with(monkeypatch: pytest.MonkeyPatch, change) -> None:
    """From here on the stack `other` gives the evaluator's results, changed."""
    run = door.run_stack

    def run_stack(text, stack, inputs):
        results = run(text, "evaluator", inputs)
        return change(results) if stack == "other" else results

    monkeypatch.setattr(door, "run_stack", run_stack)


def inputs_of(case: Case) -> list[np.ndarray]:
    """Plain numbers, at which no result is zero, infinite or NaN: a step away from each is another number."""
    rng = np.random.default_rng(3)
    made = []
    for dtype in case.operands:
        if dtype is DType.PRED:
            made.append(rng.integers(0, 2, COUNT).astype(np.bool_))
        elif dtype.is_integer:
            made.append(rng.integers(1 if dtype.bits > 2 or dtype.is_unsigned else 0, 2, COUNT).astype(dtype.numpy))
        else:
            low = 1.2 if case.op in ABOVE_ONE else 0.2
            made.append(rng.uniform(low, low + 0.6, COUNT).astype(dtype.numpy))
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_one_step_beyond_the_row_fails(case: Case, monkeypatch: pytest.MonkeyPatch):
    text, inputs = case.text(COUNT), inputs_of(case)
    leaf = len(case.results) // 2
    dtype = DTYPES[door.run_stack(text, "evaluator", inputs)[leaf].dtype]
    source = case.dtype if case.dtype.is_complex else dtype
    inexact = (dtype.is_float or dtype.is_complex) and case.op is not Op.CONVERT
    allowed = int(op_ulp(case.op, source)) if inexact else EXACT
    if source.is_complex and allowed:
        allowed = 4 * allowed  # bounds are in the plane: one part may take the error of both, at half its magnitude

    def change(results, by):
        return [stepped(x, 5, by) if n == leaf else x for n, x in enumerate(results)]

    run_with(monkeypatch, lambda results: change(results, allowed + 1))
    with pytest.raises(
        AssertionError,
        match=rf"out{leaf}: other differs from evaluator in 1 of {COUNT} .*allowed" if inexact else "differs",
    ):
        door.check(text, inputs, stacks=STACKS, memory=False)


def test_the_rows_are_exact_or_tight():
    """Of real numbers; what is exact is compared bit by bit above."""
    functions = [c for c in CASES if c.dtype.is_float and op_ulp(c.op, c.dtype)]
    assert len({c.op for c in functions}) > 20
    assert all(op_ulp(c.op, c.dtype) <= (6 if c.dtype.bits >= 32 else 1) for c in functions)
    assert all(OPSET[op].ulp == EXACT for op in (Op.ADD, Op.MULTIPLY, Op.DIVIDE, Op.SQRT, Op.MAXIMUM, Op.CONVERT))


def one(op: str, dtype: str = "f32") -> str:
    return f"HloModule m\nENTRY e {{\n  p = {dtype}[4] parameter(0)\n  ROOT r = {dtype}[4] {op}\n}}\n"


@pytest.mark.parametrize("op", ["negate(p)", "add(p, p)", "floor(p)", "reverse(p), dimensions={0}"])
def test_signs_of_zeros_count(op: str, monkeypatch: pytest.MonkeyPatch):
    x = np.array([0.0, 1, 2, 0.0], np.float32)
    run_with(monkeypatch, lambda results: [np.where(r == 0, -r, r) for r in results])
    with pytest.raises(AssertionError, match="the same bits"):
        door.check(one(op), [x], stacks=STACKS, memory=False)


def test_any_nan_is_any_other(monkeypatch: pytest.MonkeyPatch):
    x = np.array([np.nan, 1, 2, 3], np.float32)
    payload = np.array(0xFFC12345, np.uint32).view(np.float32)
    run_with(monkeypatch, lambda results: [np.where(np.isnan(r), payload, r) for r in results])
    (result,) = door.check(one("negate(p)"), [x], stacks=STACKS, memory=False)
    assert np.isnan(result[0])


@pytest.mark.parametrize(
    ("op", "may"), [("add(p, p)", True), ("negate(p)", False), ("reverse(p), dimensions={0}", False)]
)
def test_only_arithmetic_may_flush_a_subnormal(op: str, may: bool, monkeypatch: pytest.MonkeyPatch):
    kept, flushed = (np.array([x, 1, 1, 1], np.float32) for x in (1e-40, 0))
    monkeypatch.setattr(door, "run_stack", lambda text, stack, inputs: [flushed if stack == "other" else kept])
    x = [np.ones(4, np.float32)]
    if may:
        door.check(one(op), x, stacks=STACKS, memory=False)
    else:
        with pytest.raises(AssertionError, match="the same bits"):
            door.check(one(op), x, stacks=STACKS, memory=False)


@pytest.mark.parametrize(
    ("condition", "flush"),
    [
        ("compare(p, q), direction=GT", True),
        ("or(n, m)\n  n = pred[4] compare(p, q), direction=GT\n  m = pred[4] compare(p, p), direction=NE", True),
        ("compare(q, q), direction=NE", False),
    ],
)
def test_a_select_of_what_its_condition_compares_may_flush(condition: str, flush: bool):
    """LLVM makes maxss of it, whose result is 0 for a subnormal."""
    first, *others = condition.split("\n")
    lines = [*others, f"  c = pred[4] {first}"]
    parameters = "  p = f32[4] parameter(0)\n  q = f32[4] parameter(1)\n  z = f32[4] negate(p)"
    root = "  ROOT r = f32[4] select(c, p, z)"
    text = "HloModule m\nENTRY e {\n" + "\n".join([parameters, *lines, root]) + "\n}\n"
    (bound,) = bounds_of(parse_module(text))
    assert bound.flush == flush


REGION = "f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
LARGER = {
    "chain": (
        "",
        "p = f32[40] parameter(0)\n t = f32[40] tanh(p)\n m = f32[40] multiply(t, t)\n ROOT r = f32[40] exponential(m)",
    ),
    "dot": (
        "",
        """p = f32[20,30] parameter(0)
  q = f32[30,20] parameter(1)
  ROOT r = f32[20,20] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    ),
    "reduce": (
        REGION,
        """p = f32[20,30] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[20] reduce(p, z), dimensions={1}, to_apply=f""",
    ),
}


@pytest.mark.parametrize("name", LARGER)
def test_a_larger_module_fails_beyond_its_bound_and_names_it(name: str, monkeypatch: pytest.MonkeyPatch):
    regions, body = LARGER[name]
    text = f"HloModule m\n{regions}ENTRY e {{\n {body}\n}}\n"
    module = door.parsed(text)
    (bound,) = bounds_of(module)
    assert 1 < bound.ulp < 25 and bound.scaled <= bound.ulp
    inputs = door.make_inputs(module)

    def moved(results, by: float):
        x = np.array(results[0])
        at = int(np.argmax(np.abs(x)))  # there scaled and relative ulp are the same
        x.reshape(-1)[at] += np.abs(x).max() * np.finfo(np.float32).eps * by
        return [x]

    run_with(monkeypatch, lambda results: moved(results, (bound.ulp + bound.scaled) * 0.5))
    door.check(text, inputs, stacks=STACKS, memory=False)
    monkeypatch.undo()
    run_with(monkeypatch, lambda results: moved(results, (bound.ulp + bound.scaled) * 1.5 + 1))
    with pytest.raises(AssertionError, match=re.escape(f"allowed: {bound}")):
        door.check(text, inputs, stacks=STACKS, memory=False)


@pytest.mark.parametrize("dtype", ["f8e5m2", "f8e4m3fn", "bf16", "f16"])
def test_narrow_floats_may_be_one_step_off_and_no_more(dtype: str, monkeypatch: pytest.MonkeyPatch):
    text = one("sine(p)", dtype)
    x = np.array([0.25, 0.5, 1, 1.5]).astype(DType(dtype).numpy)
    run_with(monkeypatch, lambda results: [stepped(results[0], 1, 1)])
    door.check(text, [x], stacks=STACKS, memory=False)
    monkeypatch.undo()
    run_with(monkeypatch, lambda results: [stepped(results[0], 1, 2)])
    with pytest.raises(AssertionError, match="allowed: 1 ulp"):
        door.check(text, [x], stacks=STACKS, memory=False)


def test_movement_and_integers_are_exact():
    text = """HloModule m
ENTRY e {
  p = f32[4,3] parameter(0)
  i = s32[4] parameter(1)
  t = f32[3,4] transpose(p), dimensions={1,0}
  s = f32[12] reshape(t)
  j = s32[4] multiply(i, i)
  k = s32[4] add(j, i)
  ROOT r = (f32[12], s32[4]) tuple(s, k)
}
"""
    assert [str(b) for b in bounds_of(door.parsed(text))] == ["the same bits"] * 2


def test_a_module_of_2000_nested_computations():
    levels = [f"g{n} {{ a = f32[2] parameter(0) ROOT r = f32[2] call(a), to_apply=g{n - 1} }}" for n in range(1, 2000)]
    text = "\n".join(["HloModule m", "g0 { a = f32[2] parameter(0) ROOT r = f32[2] negate(a) }", *levels])
    text += "\nENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] call(p), to_apply=g1999 }"
    (result,) = door.check(text, [np.array([1, -2], np.float32)])
    assert list(result) == [-1, 2]
    assert [str(b) for b in bounds_of(door.parsed(text))] == ["the same bits"]


def test_a_sum_rounded_at_the_edge_of_a_narrower_range_may_be_infinite():
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  a = f32[2] multiply(x, y)
  b = f32[2] add(a, y)
  c = f32[2] add(b, x)
  r = f32[2] reduce-precision(c), exponent_bits=5, mantissa_bits=10
  s = f8e4m3fn[2] convert(c)
  ROOT t = (f32[2], f8e4m3fn[2]) tuple(r, s)
}"""
    reduced, narrow = bounds_of(door.parsed(text))
    assert 65400 < reduced.overflow <= 65504 and 2.0**-14 <= reduced.underflow < 2.0**-13
    assert 380 < narrow.overflow <= 448
    exact = text.replace("add(b, x)", "copy(x)")
    assert all(np.isinf(b.overflow) and not b.underflow for b in bounds_of(door.parsed(exact)))
