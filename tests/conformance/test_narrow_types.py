"""Narrow floats, which are computed in f32, and sub-byte elements, which take one byte each."""

import numpy as np
import pytest

from ...formats.text.parser import parse_module
from ...hlo.dtypes import BY_NAME, DType
from ...migration import compile_module
from ..support.check import check
from ..support.passes import fill, same

FLOATS = """HloModule m
body {{ p = {k}[4,6]{{0,1}} parameter(0)
  q = {k}[4,6]{{0,1}} parameter(1)
  a = {k}[4,6]{{0,1}} multiply(p, q)
  ROOT s = {k}[4,6]{{0,1}} add(a, q) }}
add {{ p = {k}[] parameter(0)
  q = {k}[] parameter(1)
  ROOT s = {k}[] add(p, q) }}
ENTRY e {{
  p = {k}[4,6]{{0,1}} parameter(0)
  q = {k}[4,6]{{0,1}} parameter(1)
  f = {k}[4,6]{{0,1}} fusion(p, q), kind=kLoop, calls=body
  t = {k}[4,6] tanh(f)
  c = pred[4,6] compare(t, q), direction=LT
  z = {k}[] constant(0)
  r = {k}[4] reduce(t, z), dimensions={{1}}, to_apply=add
  d = {k}[4,4] dot(t, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  ROOT x = ({k}[4,6], pred[4,6], {k}[4], {k}[4,4]) tuple(t, c, r, d)
}}
"""


@pytest.mark.parametrize("kind", ["bf16", "f16", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f32"])
@pytest.mark.parametrize("special", [False, True])
def test_narrow_floats_compute_in_f32(kind, special):
    text = FLOATS.format(k=kind)
    inputs = fill(parse_module(text), 3, special=special)
    after = same(text, inputs, "normalize-floats")
    narrow = {DType[kind.upper()]} - {DType.F32}
    for i in after.instructions():
        assert (
            i.opcode.value not in ("add", "multiply", "tanh", "dot") or not {o.shape.dtype for o in i.operands} & narrow
        )


@pytest.mark.parametrize("kind", ["s4", "u4", "s2", "u2"])
@pytest.mark.parametrize("layout", ["{0}", "{0:E(4)}"])
def test_an_element_narrower_than_a_byte_takes_one(kind, layout):
    """element_size_in_bits does not change buffers: XLA packs such elements only at its interface."""
    text = f"""HloModule m
ENTRY e {{
  p = {kind}[8]{layout} parameter(0)
  q = {kind}[8]{layout} parameter(1)
  s = {kind}[8]{layout} add(p, q)
  w = s32[8] convert(s)
  c = pred[8] compare(s, q), direction=LT
  ROOT t = ({kind}[8]{layout}, s32[8], pred[8]) tuple(s, w, c)
}}
"""
    dtype = BY_NAME[kind]
    low, high = (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1)) if dtype.is_signed else (0, 2**dtype.bits)
    values = np.resize(np.arange(low, high), 8)
    check(text, [values.astype(dtype.numpy), values[::-1].astype(dtype.numpy)])
    program = compile_module(parse_module(text))
    assert [leaf.bytes for leaf in (*program.inputs, *program.outputs)] == [8, 8, 8, 32, 8]


@pytest.mark.parametrize(("narrow", "count"), [("s4", 2), ("u4", 2), ("s2", 4), ("u2", 4)])
def test_bits_lie_low_ones_first(narrow, count):
    text = f"""HloModule m
ENTRY e {{
  p = u8[3] parameter(0)
  b = {narrow}[3,{count}] bitcast-convert(p)
  w = s32[3,{count}] convert(b)
  u = u8[3] bitcast-convert(b)
  ROOT t = (s32[3,{count}], u8[3]) tuple(w, u)
}}
"""
    wide, again = check(text, [np.array([0x1B, 0xE4, 0x80], np.uint8)])
    assert again.tolist() == [0x1B, 0xE4, 0x80]
    assert wide[0].tolist() == {"s4": [-5, 1], "u4": [11, 1], "s2": [-1, -2, 1, 0], "u2": [3, 2, 1, 0]}[narrow]


UNARY = ("abs", "negate", "sign", "not", "popcnt", "count-leading-zeros")
BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "power")
SHIFTS = ("shift-left", "shift-right-arithmetic", "shift-right-logical")


@pytest.mark.parametrize("kind", ["s1", "u1", "s2", "u2", "s4", "u4"])
def test_results_inside_a_kernel_have_as_many_bits_as_those_in_memory(kind):
    """Memory keeps the low bits only, and so hides what an op leaves above them; a conversion shows it."""
    dtype = BY_NAME[kind]
    low, high = (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1)) if dtype.is_signed else (0, 2**dtype.bits)
    left, right = (axis.ravel().astype(dtype.numpy) for axis in np.meshgrid(*[np.arange(low, high)] * 2))
    n, lines, roots = left.size, [], []
    unary = [op for op in UNARY if dtype.is_signed or op not in ("abs", "negate", "sign")]
    for number, op in enumerate((*unary, *BINARY, *SHIFTS)):
        operands = "p" if op in unary else "p, q"
        lines.append(f"  r{number} = {kind}[{n}] {op}({operands})\n  w{number} = s32[{n}] convert(r{number})")
        roots.append(f"w{number}")
    shape = ", ".join([f"s32[{n}]"] * len(roots))
    body = "\n".join(lines)
    check(
        f"""HloModule m
ENTRY e {{
  p = {kind}[{n}] parameter(0)
  q = {kind}[{n}] parameter(1)
{body}
  ROOT t = ({shape}) tuple({", ".join(roots)})
}}
""",
        [left, right],
    )
