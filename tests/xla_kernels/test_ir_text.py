"""LLVM IR text of a newer LLVM: what is adapted, to which bits, and that LLVM then reads it."""

import numpy as np
import pytest

from ...codegen.llvm import parse
from ...xla_kernels.ir_text import adapted, constant

CONSTANTS = [
    ("float", "f0x3D2AAAAB", np.uint32(0x3D2AAAAB)),
    ("float", "1.000000e-03", np.float32(1e-3).view(np.uint32)),
    ("float", "-0.0", np.uint32(0x80000000)),
    ("float", "+inf", np.uint32(0x7F800000)),
    ("float", "-inf", np.uint32(0xFF800000)),
    ("float", "+qnan", np.uint32(0x7FC00000)),
    ("float", "-nan(0x3FFFFF)", np.uint32(0xFFFFFFFF)),
    ("float", "snan(0x1)", np.uint32(0x7F800001)),
    ("float", "f0x00000001", np.uint32(1)),
    ("double", "f0x3FB999999999999A", np.float64(0.1).view(np.uint64)),
    ("double", "2.5", np.float64(2.5).view(np.uint64)),
    ("half", "f0x3C00", np.uint16(0x3C00)),
    ("half", "-inf", np.uint16(0xFC00)),
    ("bfloat", "f0x3F80", np.uint16(0x3F80)),
    ("bfloat", "+qnan", np.uint16(0x7FC0)),
]


@pytest.mark.parametrize(("name", "text", "bits"), CONSTANTS, ids=[f"{n} {t}" for n, t, _ in CONSTANTS])
def test_a_constant_has_the_bits_of_its_type(name, text, bits):
    made = parse(f"@c = constant {name} {constant(name, text)}\n@b = constant i64 0\n")
    folded = parse(
        f"define i{8 * bits.nbytes} @f() {{ %r = bitcast {name} {constant(name, text)} to i{8 * bits.nbytes}\n"
        f"  ret i{8 * bits.nbytes} %r }}\n"
    )
    assert made.get_global_variable("c") is not None
    words = {"float": "float", "double": "double", "half": "half", "bfloat": "bfloat"}
    assert words[name] in str(folded)
    assert _bits(name, constant(name, text)) == int(bits)


def _bits(name: str, written: str) -> int:
    """The bits of a constant as the older LLVM reads it: a float is written as the double of the same value."""
    if name in ("half", "bfloat"):
        return int(written[3:], 16)
    wide = int(written, 16)
    if name == "double":
        return wide
    if wide >> 52 & 0x7FF == 0x7FF:
        return wide >> 63 << 31 | 0xFF << 23 | (wide >> 29 & 0x7FFFFF)
    return int(np.uint64(wide).view(np.float64).astype(np.float32).view(np.uint32))


def test_more_bits_than_the_type_has_are_refused():
    with pytest.raises(ValueError, match="f0x1FFFF has more bits than half"):
        constant("half", "f0x1FFFF")


def test_what_llvm_does_not_read_is_edited_and_the_rest_stays():
    text = """define float @f(float %x, <2 x double> %v) #0 {
  %y = select i1 true, float f0x3F800000, float %x
  %z = fadd <2 x double> %v, <double 1.0, double +inf>
  %w = fmul <2 x double> %z, splat (double f0x3FF0000000000000)
  ret float %y
}
attributes #0 = { denormal_fpenv(float: preservesign|preservesign) memory(none, target_mem0: none) "a"="float 1.5" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"xla_dylib_index", i64 3}
!1 = distinct !{!1, i1 false, !"a domain"}
!2 = distinct !{!2, !1, !"a scope"}
"""
    made = adapted(text)
    assert '!1 = distinct !{!1, !"a domain"}' in made and '!2 = distinct !{!2, !1, !"a scope"}' in made
    assert '"a"="float 1.5"' in made and "denormal_fpenv" not in made and "target_mem" not in made
    assert "xla_dylib_index" not in str(parse(made))
