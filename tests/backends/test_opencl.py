"""The platform opencl: the conformance suite with each stack, errors in one line, memory, caches."""

import functools

import pytest

from ...backends.conformance import BackendConformance
from ...backends.device import KernelSpec
from ...backends.opencl.library import devices
from ...backends.registry import platform
from ...migration.choose import emit_for
from ...migration.flags import Flags

pytestmark = pytest.mark.skipif(not devices()[0], reason=f"platform opencl: {devices()[1]}")

NEGATED = """
define spir_kernel void @negated(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  br label %next
next:
  %n = phi i64 [ %i, %0 ], [ %m, %next ]
  %a = getelementptr float, ptr addrspace(1) %x, i64 %n
  %v = load float, ptr addrspace(1) %a, align 4
  %w = fneg float %v
  %b = getelementptr float, ptr addrspace(1) %y, i64 %n
  store float %w, ptr addrspace(1) %b, align 4
  %m = add i64 %n, 1
  %more = icmp ult i64 %m, 8
  br i1 %more, label %next, label %end
end:
  ret void
}
declare spir_func i64 @_Z13get_global_idj(i32)
"""


@functools.cache
def _negated() -> KernelSpec:
    from ...backends.accelerator.build import build_device_code
    from ...backends.accelerator.targets import SPIRV

    return KernelSpec("negated", build_device_code(NEGATED, SPIRV, None), 2)


class TestLegacy(BackendConformance):
    platform = "opencl"
    emit_for = staticmethod(emit_for(Flags.parse("legacy")))
    kernel = property(lambda self: _negated())


class TestMlir(BackendConformance):
    platform = "opencl"
    emit_for = staticmethod(emit_for(Flags.parse("mlir")))
    kernel = property(lambda self: _negated())
