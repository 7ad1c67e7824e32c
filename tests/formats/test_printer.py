"""Module → text: both forms, word for word; all printed text reads back with the same bits."""

# ruff: noqa: E501 - tables are read by line

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ...formats.program import Program
from ...formats.text.names import RESERVED, with_legal_names
from ...formats.text.parser import parse_module
from ...formats.text.print_literals import literal_to_text
from ...formats.text.printer import QUOTED, print_instruction, print_module, quote
from ...hlo.attributes import Raw
from ...hlo.dtypes import NUMPY, DType
from ...hlo.equality import difference, modules_equal
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Layout, Shape, array, tuple_shape
from ...hlo.verify.verifier import verify
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


# -- names -------------------------------------------------------------------------------------------------------------
def test_reserved_words_are_names_behind_a_percent_sign():
    module = parse_module("HloModule %f32 ENTRY manual { %nan = f32[] parameter(0) ROOT ROOT = f32[] negate(%nan) }")
    text = print_module(module)
    assert text == (
        "HloModule %f32\n\nENTRY %manual {\n  %nan = f32[] parameter(0)\n  ROOT %ROOT = f32[] negate(%nan)\n}\n"
    )
    assert modules_equal(parse_module(text), module)


LEGAL = {
    "s1": "s1_",
    "token": "token_",
    "f6e3m2fn": "f6e3m2fn_",
    "tuple": "tuple",
    "s3": "s3",
    "f32.1": "f32.1",
    "F32": "F32",
    "nan": "nan",
    "_": "_",
    "_x": "_x",
    "__x": "a_x",
    "__xla": "a_xla",
    "__xla_x": "__xla_x",
    "a->b": "a-_b",
    "1": "_1",
    "é 1": "a_1",
    "": "_",
    "s1\n": "s1_",
}
"""Name of an instruction → the name that is printed."""


def named(name: str, computation: str = "c", title: str = "m") -> Module:
    """A module with these names, where the instruction is an operand and a control predecessor."""
    parameter = Instruction(Op.PARAMETER, name, array(DType.F32), (), MappingProxyType({"parameter_number": 0}))
    root = Instruction(
        Op.NEGATE, "r", array(DType.F32), (parameter,), MappingProxyType({"control-predecessors": (name,)})
    )
    callee = Computation(computation, (parameter, root), root)
    given = parameter.replace()
    call = Instruction(Op.CALL, "call", array(DType.F32), (given,), MappingProxyType({"to_apply": callee}))
    entry = Computation("e", (given, call), call)
    return Module(title, (callee, entry), entry)


def names_of(module: Module) -> list[str]:
    return [module.name, *(c.name for c in module.computations), *(i.name for i in module.instructions())]


def accepts(text: str) -> bool:
    """Whether XLA's parser takes a text."""
    from jaxlib import _hlo as hlo

    try:
        hlo.hlo_module_from_text(text)
        return True
    except RuntimeError:  # XlaRuntimeError
        return False


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("name", LEGAL)
def test_instructions_are_printed_with_names_that_xla_accepts(name, long):
    module, legal = named(name), LEGAL[name]
    again = parse_module(print_module(module, long=long))
    assert names_of(again) == ["m", "c", "e", legal, "r", legal, "call"]
    assert modules_equal(again, with_legal_names(module))
    assert (with_legal_names(module) is module) == (name == legal)
    assert verify(again) is None


def test_computations_and_modules_may_be_called_like_types_but_need_letters():
    assert with_legal_names(module := named("x", "s1", "__x")) is module
    module = named("x", "1 é", "jit(f)")
    assert names_of(parse_module(print_module(module)))[:3] == ["jit_f_", "_1__", "e"]


def test_a_new_name_is_not_that_of_another_instruction():
    text = """ENTRY e {{ {0} = f32[] parameter(0)
      {1} = f32[] negate({0}) {2} = f32[] add({0}, {1}) ROOT r = f32[] add({2}, {0}) }}"""
    again = parse_module(print_module(parse_module(text.format("%s1", "%s1_", "%s1_.1"))))
    assert modules_equal(again, parse_module(text.format("s1_.2", "s1_", "s1_.1")))


@pytest.mark.parametrize("name", ["a", "_", "%a", "__xla_x"])
def test_xla_gets_the_text_as_it_was_given(name):
    text = f"HloModule m\n\nENTRY e {{\n  ROOT {name} = f32[] parameter(0) // all\n}}\n"
    assert Program("m", text, parse_module(text)).text_for_xla is text


@pytest.mark.parametrize("name", ["%s1", "__x", "nan"])
def test_xla_gets_other_names_for_those_that_it_refuses(name):
    module = parse_module(f"ENTRY e {{ ROOT {name} = f32[] parameter(0) }}")
    assert Program("m", "", module).text_for_xla == print_module(module)


@pytest.mark.xla
@pytest.mark.parametrize("long", [False, True])
def test_xla_reads_every_printed_name_and_refuses_what_is_replaced(long):
    hlo = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib")
    words = {*LEGAL, *RESERVED, *(f"{word}_" for word in RESERVED), *(str(op) for op in Op), *QUOTED}
    for name in sorted(words):
        for module in (named(name), named("x", name or "c", name or "m")):
            hlo.hlo_module_from_text(print_module(module, long=long))
        given = f"HloModule m ENTRY e {{ %{name} = f32[] parameter(0) ROOT r = f32[] negate(%{name}) }}"
        module = named(name)
        assert (with_legal_names(module) is module) == accepts(given), name


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
