"""Small kernels inside their caller: the bits that they have by themselves, which ones qualify, what others become."""

import ctypes

import numpy as np
import pytest

from ...codegen import inline
from ...codegen.elf import object_symbols
from ...codegen.inline import MOST_LINES, build_with_kernels, inlinable, with_kernels
from ...codegen.load import load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target

HOST = EmitOptions.host()

KERNELS = """
define void @product(ptr noalias align 4 dereferenceable(4) %x, ptr noalias align 4 dereferenceable(4) %y) {
  %a = load float, ptr %x
  %b = load float, ptr %y
  %c = fmul float %a, %b
  store float %c, ptr %x
  ret void
}
define void @difference(ptr noalias align 4 dereferenceable(4) %x, ptr noalias align 4 dereferenceable(4) %y) {
  %a = load float, ptr %x
  %b = load float, ptr %y
  %c = fsub float %a, %b
  store float %c, ptr %x
  ret void
}
"""

CALLER = """
declare void @product(ptr, ptr)
declare void @difference(ptr, ptr)

define void @run(ptr noalias %x, ptr noalias %y, ptr noalias %z) {
  call void @product(ptr %x, ptr %y)
  call void @difference(ptr %x, ptr %z)
  ret void
}
"""
"""x = x * y, rounded, then x - z: fused, it would be the error of the product where z is the rounded product."""


def run(code):
    x = np.float32(1) + np.arange(1, 65, dtype=np.float32) * np.float32(2.0**-14)
    y = x[::-1].copy()
    z = x * y
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.address("run"))
    for n in range(len(x)):
        function(*(a.ctypes.data + 4 * n for a in (x, y, z)))
    return x


def inlined(kernels=KERNELS):
    return load([build_with_kernels(CALLER, inlinable([kernels], HOST), HOST).data])


def test_a_stored_product_is_rounded():
    apart = run(load([compile_object(CALLER, HOST, cache=None), compile_object(KERNELS, HOST, cache=None)]))
    assert (apart == 0).all()
    assert "call void @" not in with_kernels(CALLER, inlinable([KERNELS], HOST), HOST).replace("call void @llvm.", "")
    assert run(inlined()).tobytes() == apart.tobytes()


@pytest.mark.skipif(not Target.host().has_fma, reason="this processor does not round once")
@pytest.mark.parametrize("fenced", [True, False])
def test_fences_keep_the_rounding_whatever_runs_behind(fenced, monkeypatch):
    """All passes once more take the product from a register and remove its store: only the fence rounds it then."""
    if not fenced:
        monkeypatch.setattr(inline, "_with_fences", lambda body, kinds: body)
    again = load([compile_object(with_kernels(CALLER, inlinable([KERNELS], HOST), HOST), HOST, cache=None)])
    assert (run(again) == 0).all() == fenced


TAIL = "\n  ret void\n}"


def small(lines):
    """Whether a kernel with these lines is inlined."""
    kernel = "define void @product(ptr %x, ptr %y) {\n" + lines + TAIL
    caller = "declare void @product(ptr, ptr)\ndefine void @run(ptr %x, ptr %y) {\n"
    caller += "  call void @product(ptr %x, ptr %y)" + TAIL
    return "call void @product" not in with_kernels(caller, inlinable([kernel], HOST), HOST)


LONG = "\n".join(f"  %v{n} = load volatile i32, ptr %x\n  store volatile i32 %v{n}, ptr %y" for n in range(MOST_LINES))


MULTIPLY_ADD = """  %a = load float, ptr %x
  %b = fmul contract float %a, %a
  %c = fadd contract float %a, %b
  store float %c, ptr %y"""


BRANCH = """  %a = load volatile i1, ptr %x
  br i1 %a, label %then, label %end
then:
  store volatile i32 1, ptr %y
  br label %end
end:"""


@pytest.mark.parametrize(
    "lines, wanted",
    [
        ("  %a = load i64, ptr %x\n  %b = mul i64 %a, 3\n  store i64 %b, ptr %y", True),
        ("  %a = load <4 x double>, ptr %x\n  store <4 x double> %a, ptr %y", True),
        ("  %a = load half, ptr %x\n  %b = fadd half %a, %a\n  store half %b, ptr %y", False),
        ("  %a = load float, ptr %x\n  %b = fmul float %a, %a\n  store float %b, ptr %y", True),
        (MULTIPLY_ADD, True),
        (MULTIPLY_ADD.replace("float", "<4 x float>"), True),
        (MULTIPLY_ADD.replace("float", "half").replace("store half %c", "store volatile half %c"), False),
        (LONG, False),
        (BRANCH, False),
    ],
)
def test_which_kernels_are_small(lines, wanted):
    assert small(lines) is wanted


def test_a_kernel_that_is_not_small_stays_an_external_symbol():
    kernels = KERNELS.replace("%c = fsub float %a, %b\n  store", "%c = fsub float %a, %b\n  store volatile")
    built = build_with_kernels(CALLER, inlinable([kernels], HOST), HOST)
    assert object_symbols(built.data).undefined == {"difference"}
    assert (run(load([built.data, compile_object(kernels, HOST, cache=None)])) == 0).all()
