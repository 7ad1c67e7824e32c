"""Module → text: both forms, word for word; all printed text reads back with the same bits."""

# ruff: noqa: E501 - tables are read by line

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ...formats.text.parser import parse_module
from ...formats.text.print_literals import literal_to_text
from ...formats.text.printer import print_instruction, print_module, quote
from ...hlo.attributes import Raw
from ...hlo.dtypes import NUMPY, DType
from ...hlo.equality import difference, modules_equal
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Layout, Shape, array, tuple_shape
from ..support.corpus import sample

SHORT = """\
HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0})->(f32[2]{0}, f32[1,3]{1,0})}, \
input_output_alias={ {0}: (0, {}, may-alias) }

FileNames
1 "a.py"

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}, execution_thread="main"

ENTRY e {
  p = f32[2,3]{1,0:T(8,128)E(32)S(1)} parameter(0), metadata={op_name="x" source_line=3}
  z = f32[] constant(-0.5)
  c = s32[2,2] constant({ {1, 2}, {3, 4} })
  t = (pred[], bf16[2], c64[1]) constant(( true, {1, nan}, {(1, -inf)} ))
  s = f32[1,3] slice(p), slice={[0:1], [0:3:2]}
  w = f32[2,3] reduce-window(p, z), window={size=2x1 pad=1_0x0_0}, to_apply=add
  q = f32[3,5] pad(p, z), padding=0_1x-1_2_1
  g = (f32[2], f32[2], f32[2], f32[2], f32[2], /*index=5*/f32[2]) sort(p, p, p, p, p, /*index=5*/p), dimensions={0}, to_apply=add
  k = f32[2] custom-call(p), custom_call_target="a\\"b\\\\", backend_config={"x": {}}, control-predecessors={z, s}
  ROOT r = (f32[2], f32[1,3]) tuple(k, s)
}
"""


def test_short_form_is_printed_as_it_was_read():
    assert print_module(parse_module(SHORT)) == SHORT


def test_long_form():
    module = parse_module(SHORT)
    text = print_module(module, long=True)
    assert "%add (a: f32[], b: f32[]) -> f32[] {" in text
    assert "ENTRY %e (p: f32[2,3]) -> (f32[2], f32[1,3]) {" in text
    assert "  ROOT %r = (f32[2], f32[1,3]) tuple(f32[2] %k, f32[1,3] %s)\n" in text
    assert "to_apply=%add" in text and "control-predecessors={%z, %s}" in text
    assert modules_equal(parse_module(text), module)


def test_one_instruction():
    p = parse_module("ENTRY e { ROOT p = f32[2]{0} parameter(0) }").entry.root
    assert print_instruction(p) == "p = f32[2]{0} parameter(0)"


def test_layout_properties_are_printed_in_xla_s_order():
    module = parse_module("ENTRY e { ROOT p = f32[2]{0:S(3)E(4)T(2)(1)} parameter(0) }")
    assert "f32[2]{0:T(2)(1)E(4)S(3)}" in print_module(module)


@given(st.text())
def test_quoted_strings_read_back(text):
    root = Instruction(
        Op.CUSTOM_CALL, "c", array(DType.F32), (), MappingProxyType({"custom_call_target": text})
    )  # fmt: skip
    module = Module("m", (entry := Computation("e", (root,), root),), entry)
    assert parse_module(print_module(module)).entry.root.attributes["custom_call_target"] == text


def test_quotes():
    assert quote('a"\\\n') == r'"a\"\\\n"'
    assert quote("\x01é\u2028") == r'"\001é\U00002028"'


def test_reserved_words_are_names_behind_a_percent_sign():
    module = parse_module("ENTRY manual { %nan = f32[] parameter(0) ROOT f32 = f32[] negate(%nan) }")
    text = print_module(module)
    assert (
        "ENTRY %manual {" in text and "%nan = f32[] parameter(0)" in text and "ROOT %f32 = f32[] negate(%nan)" in text
    )


# -- constants: any bits of any type ----------------------------------------------------------------------------------
def any_bits(dtype: DType):
    """Arrays of all bit patterns that the type has."""
    numpy = NUMPY[dtype]
    if dtype is DType.PRED:
        return hnp.arrays(np.bool_, hnp.array_shapes(min_dims=0, max_side=4))
    if dtype.bits < 8:
        values = np.arange(1 << dtype.bits, dtype=np.uint8)
        values = values.view(numpy) if dtype.is_float else values.astype(np.int8).astype(numpy)
        return hnp.arrays(
            np.uint8, hnp.array_shapes(min_dims=0, max_side=4), elements=st.integers(0, (1 << dtype.bits) - 1)
        ).map(lambda index: np.asarray(values[index]).reshape(index.shape))
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    return hnp.arrays(
        np.dtype(f"V{numpy.itemsize}"), shapes, elements=st.binary(min_size=numpy.itemsize, max_size=numpy.itemsize)
    ).map(lambda a: np.frombuffer(a.tobytes(), numpy).reshape(a.shape))


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
@given(st.data())
def test_constants_read_back_bit_for_bit(dtype, data):
    value = data.draw(any_bits(dtype))
    literal = Literal(Shape(dtype, value.shape), value)
    text = f"ENTRY e {{ ROOT c = {literal.shape} constant({literal_to_text(literal)}) }}"
    assert parse_module(text).entry.root.literal == canonical(literal), text


def canonical(literal: Literal) -> Literal:
    """Replace all NaNs by one in types that have several NaNs with the same text."""
    value = literal.array.copy()
    if literal.shape.dtype in (DType.F8E8M0FNU, DType.F8E4M3B11FNUZ, DType.F8E5M2FNUZ, DType.F8E4M3FNUZ):
        value[np.isnan(value.astype(np.float32))] = np.nan
    return Literal(literal.shape, value)


def test_special_constants():
    assert literal_to_text(Literal(array(DType.F32, 3), None)) == "{...}"
    big = Literal(array(DType.F32, 1000, 1000), np.broadcast_to(np.float32(0), (1000, 1000)))
    assert literal_to_text(big) == "0"
    assert literal_to_text(Literal(tuple_shape(), ())) == "()"
    assert literal_to_text(Literal(array(DType.F32, 0, 3), np.zeros((0, 3), np.float32))) == "{}"
    assert literal_to_text(Literal(array(DType.F32, 2, 0), np.zeros((2, 0), np.float32))) == "{ {}, {} }"


# -- shapes -----------------------------------------------------------------------------------------------------------
@st.composite
def shapes(draw, depth: int = 2):
    if depth and draw(st.booleans()):
        return tuple_shape(*draw(st.lists(shapes(depth - 1), max_size=7)))
    dims = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    dynamic = draw(st.just(()) | st.tuples(*[st.booleans()] * len(dims)))
    layout = None
    if dims and draw(st.booleans()):
        tiles = tuple(map(tuple, draw(st.lists(st.lists(st.integers(-1, 9), min_size=1, max_size=3), max_size=2))))
        order = tuple(draw(st.permutations(range(len(dims)))))
        layout = Layout(
            order, tiles, draw(st.integers(0, 9)), draw(st.sampled_from(["", "E(4)", "L(2)#(u8)", "SC(0:1,2)"]))
        )
    return Shape(draw(st.sampled_from(list(NUMPY))), dims, layout, dynamic if any(dynamic) else ())


@given(shapes())
def test_shapes_read_back(shape):
    p = Instruction(Op.PARAMETER, "p", shape, (), MappingProxyType({"parameter_number": 0}))
    module = Module("m", (entry := Computation("e", (p,), p),), entry)
    assert parse_module(print_module(module)).entry.root.shape == shape


# -- equality ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("HloModule m", "HloModule n", "module names"),
        ("is_scheduled=true", "is_scheduled=false", "'is_scheduled' of module"),
        ("is_scheduled=true, ", "", "on one side only"),
        ("add {", "sum {", "computation names"),
        ("ENTRY ", "", None),
        ("  z = ", "  y = f32[] parameter(1)\n  z = ", "instructions"),
        ("constant(-0.5)", "constant(0.5)", "'literal' of z"),
        ("add(a, b)", "add(b, a)", "operands of r"),
        ("add(a, b)", "multiply(a, b)", "r (add) and r (multiply)"),
        ("s = f32[1,3] slice", "s = f32[1,3]{1,0} slice", "shapes"),
        ("ROOT r = f32[] add(a, b)", "ROOT b2 = f32[] add(a, b)", "r (add) and b2 (add)"),
        ("source_line=3", "source_line=4", "'metadata' of p"),
    ],
)
def test_difference_says_what_differs(old, new, said):
    text = SHORT.replace("to_apply=sum", "to_apply=add")
    changed = text.replace(old, new, 1)
    if old == "add {":
        changed = changed.replace("to_apply=add", "to_apply=sum")
    left, right = parse_module(text), parse_module(changed)
    found = difference(left, right)
    assert found is None if said is None else found is not None and said in found
    assert modules_equal(left, right) == (said is None)
    assert modules_equal(left, left)


def test_raw_text_is_kept_to_the_letter():
    text = 'ENTRY e { ROOT p = f32[] parameter(0), sharding={ maximal  device=0 }, origin="a,  b" }'
    root = parse_module(text).entry.root
    assert root.attributes["origin"] == Raw('"a,  b"')
    assert 'sharding={ maximal  device=0 }, origin="a,  b"' in print_instruction(root)


# -- XLA's own parser -------------------------------------------------------------------------------------------------
OTHERWISE = {
    "send",  # XLA derives the shapes of send and recv and ignores what the text says, right or wrong
    "recv",
    "{...}",  # XLA fills elided constants with numbers of its own
    "-0,",  # XLA prints minus zero as -0, and reads -0 as the integer 0
    "-0)",
}


@pytest.mark.xla
@pytest.mark.parametrize(
    ("pattern", "count"), [("parse_only/*.hlo", 120), ("xla_modules/*.hlo", 60), ("jax_programs/*/*.hlo", 10)]
)
def test_xla_reads_what_we_print_as_what_we_read(pattern, count):
    hlo = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib")
    for path in sample(pattern, count, seed=1):
        text = path.read_text()
        if any(word in text for word in OTHERWISE):
            continue
        module = parse_module(text)
        expected = hlo.hlo_module_from_text(text).to_string()
        for long in (False, True):
            assert hlo.hlo_module_from_text(print_module(module, long=long)).to_string() == expected, path.name
