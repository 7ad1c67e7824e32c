"""The disassembler: text of objects, and what their code needs of a processor."""

import dataclasses

import pytest

from ...codegen import disassembly
from ...codegen.disassembly import assembly, lacks
from ...codegen.errors import CodegenError
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target
from ...codegen.targets import target_of

ADD = """
declare float @powf(float, float)
define void @add(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = load <16 x float>, ptr %a, align 64
  %y = load <16 x float>, ptr %b, align 64
  %z = fadd <16 x float> %x, %y
  store <16 x float> %z, ptr %c, align 64
  ret void
}
define float @power(float %a) {
  %r = call float @powf(float %a, float 3.500000e+00)
  ret float %r
}
"""
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
only_x86 = pytest.mark.skipif(Target.machine().architecture != "x86_64", reason="reads code of x86-64")


def of(target):
    return compile_object(ADD, EmitOptions(target))


@only_x86
@pytest.mark.parametrize("made", LEVELS)
@pytest.mark.parametrize("runs", LEVELS)
def test_code_for_a_level_needs_that_level(made, runs):
    why = lacks(of(Target.level(made)), Target.level(runs))
    assert (why == "") == (LEVELS.index(made) <= LEVELS.index(runs)), why
    if why:
        named = "avx512f" if made == "x86-64-v4" else "avx"
        assert why.startswith("it has instructions of avx") and named in why and why.endswith("this machine lacks")


@only_x86
def test_vectors_of_256_bits_with_masks_are_of_avx_512():
    """Their names alone could be of AVX; the encoding shows what they are."""
    masked = """
    define void @f(ptr %a, <8 x i1> %m) {
      call void @llvm.masked.store.v8f32.p0(<8 x float> zeroinitializer, ptr align 32 %a, <8 x i1> %m)
      ret void
    }
    declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, <8 x i1>)
    """
    data = compile_object(masked, EmitOptions(Target.level("x86-64-v4")))
    assert "avx512vl" in lacks(data, Target.level("x86-64-v3")) and "zmm" not in assembly(data)


CODES = [
    ("c5fdfec0", "avx2"),  # vpaddd ymm
    ("c5fc58c0", ""),  # vaddps ymm
    ("c4e2f5a8c2", "fma"),  # vfmadd213pd ymm
    ("c5f992c8", "avx512f"),  # kmovd
    ("62f17c4858c0", "avx512f"),  # vaddps zmm
    ("62f17c0858c0", "avx512vl"),  # vaddps xmm, with an EVEX prefix
    ("62f54c4858c0", "avx512fp16"),  # vaddph zmm
    ("f30fb8c0", "popcnt"),
    ("f3480fbdc0", "lzcnt"),
    ("c4e2fbf6c0", "bmi2"),  # mulx
]


@only_x86
@pytest.mark.parametrize(("code", "feature"), CODES)
def test_encodings_show_features(code, feature):
    data = bytes.fromhex(code)
    disassembler = disassembly._Disassembler("x86_64")
    ((at, size, text),) = disassembler.instructions(data)
    assert (at, size) == (0, len(data)) and text
    found = disassembly._features(disassembly.Code(0, 0, data, text))
    assert feature in found or (not feature and not found - {"avx"}), (text, found)


def test_text_has_labels_places_and_symbols():
    text = assembly(of(Target.machine()))
    assert {"add:", "power:"} <= set(text.splitlines())
    assert any("# powf" in line for line in text.splitlines())
    assert "(no instruction)" not in text


def test_code_of_another_architecture_is_named():
    data = of(target_of("aarch64" if Target.machine().architecture == "x86_64" else "x86_64"))
    here = Target.machine().architecture
    assert lacks(data).startswith("it is for ") and lacks(data).endswith(f"and this is {here}")
    assert "add:" in assembly(data), "it is read, if not run"


@only_x86
def test_bytes_that_are_no_instruction_are_named():
    data = bytearray(of(Target.level("x86-64-v2")))
    section = next(s for s in disassembly.read_object(bytes(data)).sections if s.flags & 4 and s.size)
    data[section.offset] = 0x06  # push es: none in 64 bits
    assert lacks(bytes(data)) == "the bytes at 0x0 of its code are no instruction"
    assert "(no instruction)" in assembly(bytes(data))


def test_a_machine_that_llvm_does_not_know_is_refused():
    data = bytearray(of(Target.machine()))
    data[0x12:0x14] = b"\x99\x99"
    with pytest.raises(CodegenError, match="an object of a machine with the number 39321"):
        lacks(bytes(data))


def test_a_missing_library_is_one_line(monkeypatch):
    monkeypatch.setattr(disassembly, "find_spec", lambda name: None)
    disassembly._library.cache_clear()
    try:
        with pytest.raises(CodegenError, match=r"no libLLVM\.so"):
            assembly(of(Target.machine()))
    finally:
        disassembly._library.cache_clear()


def test_features_are_compared_with_the_machine():
    machine = dataclasses.replace(Target.machine(), features="")
    if machine.architecture == "x86_64":
        assert "avx" in lacks(of(Target.level("x86-64-v3")), machine)
    else:
        assert lacks(of(Target.machine()), machine) == ""
