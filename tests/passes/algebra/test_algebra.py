"""Algebraic rules: each does what its name says, on all values, and does not apply to similar patterns."""

import numpy as np
import pytest

from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ...support.passes import SPECIAL, opcodes, run, same

INTEGERS = np.array([0, 1, -1, 2, 7, -8, 2**31 - 1, -(2**31), 5, 100, -100, 3], np.int32)

HEAD = """HloModule m
top { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
"""


def text_of(kind: str, *lines: str) -> str:
    return HEAD + f"ENTRY e {{ x = {kind}[12] parameter(0)\n" + "\n".join(lines) + " }"


def spread(kind: str, value: str) -> str:
    return f"n = {kind}[] constant({value})\n c = {kind}[12] broadcast(n), dimensions={{}}"


def values_of(kind: str) -> np.ndarray:
    if kind == "pred":
        return np.arange(12) % 2 == 0
    if kind == "u32":
        return INTEGERS.view(np.uint32)
    if kind == "s32":
        return INTEGERS
    floats = np.where(np.abs(SPECIAL) < 1e-38, np.copysign(0, SPECIAL), SPECIAL)  # subnormals flush in one form only
    return floats.astype({"f32": np.float32, "f64": np.float64, "f16": np.float16}[kind])


GONE = [  # (type, constant, op that goes, operands)
    ("f32", "-0", "add", "x, c"), ("f32", "-0", "add", "c, x"), ("s32", "0", "add", "x, c"),
    ("f32", "0", "subtract", "x, c"), ("s32", "0", "subtract", "x, c"), ("s32", "1", "subtract", "x, x"),
    ("f32", "1", "multiply", "x, c"), ("s32", "1", "multiply", "c, x"), ("s32", "0", "multiply", "x, c"),
    ("f32", "1", "divide", "x, c"), ("s32", "1", "divide", "x, c"), ("f32", "8", "divide", "x, c"),
    ("f64", "-0.25", "divide", "x, c"), ("u32", "16", "divide", "x, c"), ("u32", "8", "remainder", "x, c"),
    ("u32", "1", "remainder", "x, c"),
    ("f16", "8", "divide", "x, c"), ("f32", "0", "power", "x, c"), ("f32", "1", "power", "x, c"),
    ("f32", "2", "power", "x, c"), ("f32", "3", "power", "x, c"), ("f32", "-1", "power", "x, c"),
    ("s32", "0", "and", "x, x"), ("pred", "true", "and", "x, c"), ("pred", "false", "and", "c, x"),
    ("pred", "true", "or", "x, c"), ("pred", "false", "or", "x, c"), ("f32", "0", "maximum", "x, x"),
    ("f32", "0", "minimum", "x, x"), ("s32", "0", "shift-left", "x, c"),
    ("s32", "0", "shift-right-arithmetic", "x, c"), ("s32", "0", "shift-right-logical", "x, c"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "constant", "op", "operands"), GONE)
def test_an_operation_with_a_known_operand_goes(kind, constant, op, operands):
    text = text_of(kind, spread(kind, constant), f"ROOT r = {kind}[12] {op}({operands})")
    after = same(text, [values_of(kind)], "algebra", exact=op not in ("power", "divide", "maximum", "minimum"))
    assert op not in {i.opcode.value for i in after.entry.instructions}


STAYS = [
    ("f32", "0", "add", "x, c"), ("f32", "-0", "subtract", "x, c"), ("f32", "0", "multiply", "x, c"),
    ("f32", "0", "subtract", "x, x"), ("f32", "1", "divide", "x, x"), ("f32", "3", "divide", "x, c"),
    ("f32", "1e-38", "divide", "x, c"), ("s32", "4", "divide", "x, c"), ("s32", "4", "remainder", "x, c"),
    ("f32", "0", "divide", "x, c"), ("f32", "0.25", "power", "x, c"), ("u32", "0", "divide", "x, c"),
    ("u32", "6", "divide", "x, c"), ("u32", "0", "remainder", "x, c"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "constant", "op", "operands"), STAYS)
def test_what_some_value_forbids_stays(kind, constant, op, operands):
    text = text_of(kind, spread(kind, constant), f"ROOT r = {kind}[12] {op}({operands})")
    assert op in {o.value for o in opcodes(run(text, "algebra"))}


CHAINS = [  # (type, lines, opcode of the root after)
    ("f32", ["a = f32[12] negate(x)", "ROOT r = f32[12] negate(a)"], Op.PARAMETER),
    ("s32", ["a = s32[12] not(x)", "ROOT r = s32[12] not(a)"], Op.PARAMETER),
    ("f32", ["a = f32[12] floor(x)", "ROOT r = f32[12] floor(a)"], Op.FLOOR),
    ("f32", ["a = f32[12] sign(x)", "ROOT r = f32[12] sign(a)"], Op.SIGN),
    ("f32", ["a = f32[12] negate(x)", "ROOT r = f32[12] abs(a)"], Op.ABS),
    ("s32", ["ROOT r = pred[12] compare(x, x), direction=LE"], Op.BROADCAST),
    ("f32", ["ROOT r = pred[12] compare(x, x), direction=EQ"], Op.COMPARE),
    ("u32", [spread("u32", "0"), "ROOT r = pred[12] compare(x, c), direction=LT"], Op.BROADCAST),
    ("s32", [spread("s32", "0"), "ROOT r = pred[12] compare(x, c), direction=LT"], Op.COMPARE),
    ("f32", ["t = pred[] constant(false)", "a = f32[12] tanh(x)", "ROOT r = f32[12] select(t, a, x)"], Op.PARAMETER),
    ("f32", ["t = pred[12] is-finite(x)", "ROOT r = f32[12] select(t, x, x)"], Op.PARAMETER),
    ("f32", ["t = pred[12] is-finite(x)", "u = pred[12] not(t)", "a = f32[12] tanh(x)",
             "ROOT r = f32[12] select(u, a, x)"], Op.SELECT),
    ("f32", ["a = f32[] constant(-1)", "b = f32[] constant(1)", "y = f32[12] clamp(a, x, b)",
             "ROOT r = f32[12] clamp(a, y, b)"], Op.CLAMP),
    ("f32", ["ROOT r = s32[1,3] iota(), iota_dimension=0"], Op.BROADCAST),
    ("f16", ["a = f32[12] convert(x)", "ROOT r = f16[12] convert(a)"], Op.PARAMETER),
    ("f32", ["a = f16[12] convert(x)", "ROOT r = f32[12] convert(a)"], Op.CONVERT),
    ("f32", ["a = f32[2,3,2] reshape(x)", "z = f32[] constant(-inf)",
             "b = f32[2,2] reduce(a, z), dimensions={1}, to_apply=top",
             "ROOT r = f32[2] reduce(b, z), dimensions={1}, to_apply=top"], Op.REDUCE),
    ("f32", ["a = f32[2,0] constant({{},{}})", "b = f32[0,3] constant({})",
             "ROOT r = f32[2,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"], Op.BROADCAST),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "lines", "root"), CHAINS, ids=range(len(CHAINS)))
def test_chains(kind, lines, root):
    text = text_of(kind, *lines)
    after = same(text, [values_of(kind)], "algebra", "dce")
    assert after.entry.root.opcode is root
    before = parse_module(text)
    if root in (Op.FLOOR, Op.SIGN, Op.ABS, Op.CLAMP, Op.REDUCE):
        assert sum(i.opcode is root for i in after.entry.instructions) == 1
        assert len(after.entry.instructions) < len(before.entry.instructions)
    if root is Op.SELECT:
        assert Op.NOT not in opcodes(after)


def test_control_dependencies_keep_an_instruction():
    text = text_of(
        "f32", "a = f32[12] negate(x)", "b = f32[12] negate(a)", "ROOT r = f32[12] abs(x), control-predecessors={b}"
    )
    assert sum(i.opcode is Op.NEGATE for i in run(text, "algebra").entry.instructions) == 2
