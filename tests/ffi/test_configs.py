"""A backend_config in every form of texts and protos: what it decodes to, and what XLA rejects, in its words."""

from __future__ import annotations

import struct

import pytest

from ...backends.xla import installed
from ...ffi import registry
from ...ffi.abi import HANDLER
from ...ffi.attributes import attributes_of
from ...ffi.description import describe
from ...ffi.refusals import refusal
from ...formats.proto.proto import module_from_proto, module_to_proto
from ...formats.source import load
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.errors import InputError
from ...hlo.ir import Module
from ...hlo.opcodes import Op

SCALAR, ARRAY, STRING, DICTIONARY = 3, 1, 4, 2
DECODED = {
    "{}": (),
    "": (),
    "{a = 5, b = true, c = false}": (
        ("a", (SCALAR, 5, struct.pack("<q", 5).hex())), ("b", (SCALAR, 1, "01")), ("c", (SCALAR, 1, "00")),
    ),
    "{b = -1 : i8, a = 2 : i16, d = 255 : ui8, c = 7 : ui64}": (
        ("a", (SCALAR, 3, "0200")), ("b", (SCALAR, 2, "ff")), ("c", (SCALAR, 9, struct.pack("<Q", 7).hex())),
        ("d", (SCALAR, 6, "ff")),
    ),
    "{a = 1.5 : f32, b = 2.5, c = -0.0 : f32}": (
        ("a", (SCALAR, 11, struct.pack("<f", 1.5).hex())), ("b", (SCALAR, 12, struct.pack("<d", 2.5).hex())),
        ("c", (SCALAR, 11, "00000080")),
    ),
    "{a = 0xFF800000 : f32, b = 0x7FC00001 : f32}": (
        ("a", (SCALAR, 11, "000080ff")), ("b", (SCALAR, 11, "0100c07f")),
    ),
    '{s = "x\\22q\\0A\\FF"}': (("s", (STRING, b'x"q\n\xff'.hex())),),
    "{a = array<i64: 1, -2>, b = array<f32>, c = array<i8: 3>}": (
        ("a", (ARRAY, 5, 2, struct.pack("<2q", 1, -2).hex())), ("b", (ARRAY, 11, 0, "")), ("c", (ARRAY, 2, 1, "03")),
    ),
    "{a = dense<7> : tensor<i32>, b = dense<[[1.0, 2.0]]> : tensor<1x2xf32>, c = dense<5> : tensor<3xui8>}": (
        ("a", (ARRAY, 4, 1, "07000000")), ("b", (ARRAY, 11, 2, struct.pack("<2f", 1, 2).hex())),
        ("c", (ARRAY, 6, 3, "050505")),
    ),
    "{o = {i = {n = 1 : i32}, e = {}}}": (
        ("o", (DICTIONARY, (("e", (DICTIONARY, ())), ("i", (DICTIONARY, (("n", (SCALAR, 4, "01000000")),)))))),
    ),
}  # fmt: skip
REJECTED = {
    "{x = [1, 2]}": "Unsupported attribute type for attribute: x",
    "{x}": "Unsupported attribute type for attribute: x",
    "{x = @symbol}": "Unsupported attribute type for attribute: x",
    "{x = i32}": "Unsupported attribute type for attribute: x",
    "{o = {x = unit}}": "Unsupported attribute type for attribute: x",
    "{x = 1.5 : f16}": "Unsupported float attribute bit width for attribute: x",
    "{x = 1.5 : bf16}": "Unsupported float attribute bit width for attribute: x",
    "{x = 1 : i4}": "Unsupported integer attribute bit width for attribute: x",
    "{x = 1 : i128}": "Unsupported integer attribute bit width for attribute: x",
    "{x = dense<true> : tensor<2xi1>}": "Unsupported array element type for attribute: x",
    "{x = dense<(1.0, 2.0)> : tensor<complex<f32>>}": "Unsupported array element type for attribute: x",
    "{x = array<i1: true>}": "Unsupported array element type for attribute: x",
    "{x = array<f16: 1.0>}": "Unsupported array element type for attribute: x",
    "[1]": "Couldn't parse backend config into a dictionary attribute",
}
"""Configs that XLA rejects, too."""
FATAL = {
    "{x = 1 : i32": "expected '}' in attribute dictionary",
    "{x = 1, x = 2}": "duplicate key 'x' in dictionary attribute",
    "{x = 300 : ui8}": "integer constant out of range for attribute",
    "{x = 1 : f32}": "unexpected decimal integer literal for a floating point value",
    "{x = #foo.bar}": "created with unregistered dialect",
    "{x = 1 : index}": "Unsupported integer attribute bit width",
    "{x = dense<1> : tensor<99999999999xi8>}": "an attribute of more than",
}
"""Configs at which XLA ends its process."""
BEHIND = {f"{{x = 1}}{rest}": f"found trailing characters: '{rest.strip()}'" for rest in ("@", ".", '"', "}", " x")}
BEHIND |= {"{x = {y = 1}} @": "found trailing characters: '@'", "[1]@": "into a dictionary attribute"}
"""Something behind the dictionary. XLA prints an error at the first three, and runs."""
MIXED = '{b = true, f = 1.5 : f32, i = 42 : i32, s = "q\\22", d = dense<[1, 2]> : tensor<2xi64>}'


@pytest.mark.parametrize("text", DECODED, ids=str)
def test_what_a_config_decodes_to(text: str):
    assert attributes_of(text) == DECODED[text]


@pytest.mark.parametrize("text", [*REJECTED, *FATAL, *BEHIND], ids=str)
def test_what_is_rejected(text: str):
    with pytest.raises(InputError) as error:
        attributes_of(text)
    assert (REJECTED | FATAL | BEHIND)[text] in str(error.value)


def test_comments_and_spaces_are_none():
    assert attributes_of(' {x = 1 : i32 // of one }\n, y = "a } // b"} // end') == attributes_of(
        '{x=1:i32, y="a } // b"}'
    )


@pytest.fixture
def target():
    handler = HANDLER(lambda frame: None)
    registry.register("test.config", handler)
    yield handler
    registry.unregister("test.config")


def program(config: str) -> str:
    return (
        'HloModule m\n\nENTRY e {\n  ROOT r = f32[4]{0} custom-call(), custom_call_target="test.config", '
        f"api_version=API_VERSION_TYPED_FFI, backend_config={config}\n}}\n"
    )


@pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")
@pytest.mark.parametrize("text", REJECTED, ids=str)
def test_xla_says_the_same(text: str, target):
    from ...backends.xla.executable import XlaExecutable

    from_text = parse_module(program(text if text[0] == "{" else f'"{text}"'))
    (call,) = (i for i in from_text.instructions() if i.opcode is Op.CUSTOM_CALL)
    ours = refusal(call)
    assert ours is not None and str(ours).startswith("<string>:4:")
    text_of_theirs = print_module(from_text).replace("test.config", "lapack_spotrf_ffi")  # which XLA knows
    with pytest.raises(Exception) as error:
        XlaExecutable(text_of_theirs).execute([])
    assert REJECTED[text] in str(error.value) and REJECTED[text] in str(ours)


def attributes(module: Module):
    (call,) = (i for i in module.instructions() if i.opcode is Op.CUSTOM_CALL)
    return describe(call).attributes


def test_hlo_text_and_protos_give_the_same():
    quoted = MIXED.replace("\\", "\\\\").replace('"', '\\"')
    modules = [parse_module(program(MIXED)), parse_module(program(f'"{quoted}"'))]
    modules += [module_from_proto(module_to_proto(m)) for m in modules]
    modules += [parse_module(print_module(m)) for m in modules]
    assert [attributes(m) for m in modules] == [attributes_of(MIXED)] * len(modules)


@pytest.mark.skipif(not installed(), reason="needs jaxlib (./testbed setup --xla)")
@pytest.mark.parametrize("form", ["backend_config = {}, api_version = 4 : i32", "mhlo.backend_config = {}"])
def test_stablehlo_gives_the_same(form: str):
    about = form.replace("{}", MIXED)
    text = f"func.func @main() -> tensor<4xf32> {{\n  %0 = stablehlo.custom_call @test.config() {{{about}}} : () -> "
    module = load(text + "tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n", format="stablehlo").module
    assert attributes(module) == attributes_of(MIXED)
