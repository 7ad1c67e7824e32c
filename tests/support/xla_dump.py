"""A folder as XLA:CPU writes it, made here: two kernels in XLA's call frame, one in place and one in two parts."""

from __future__ import annotations

from pathlib import Path

from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions
from ...xla_kernels.ir_text import adapted

PREFIX = "module_0001.jit_tiny"

SCHEDULED = """HloModule jit_tiny, is_scheduled=true, entry_computation_layout={(f32[4]{0}, f32[1]{0})->f32[4]{0}}

%sum (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  ROOT %add = f32[4]{0} add(%a, %b)
}

%update (t: f32[4], v: f32[1], n: s32[]) -> f32[4] {
  %t = f32[4]{0} parameter(0)
  %v = f32[1]{0} parameter(1)
  %n = s32[] parameter(2)
  ROOT %dynamic-update-slice = f32[4]{0} dynamic-update-slice(%t, %v, %n)
}

ENTRY %main (x: f32[4], u: f32[1]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %u = f32[1]{0} parameter(1)
  %i = s32[] constant(2)
  %add_fusion = f32[4]{0} fusion(%x, %x), kind=kLoop, calls=%sum, backend_config={"outer_dimension_partitions":["2"]}
  ROOT %update_fusion = f32[4]{0} fusion(%add_fusion, %u, %i), kind=kLoop, calls=%update
}
"""

ASSIGNMENT = """BufferAssignment:
allocation 0: size 16, parameter 0, shape |f32[4]| at ShapeIndex {}:
 value: <1 x @0> (size=16,offset=0): f32[4]{0}
allocation 1: size 4, parameter 1, shape |f32[1]| at ShapeIndex {}:
 value: <2 u @0> (size=4,offset=0): f32[1]{0}
allocation 2: size 4, constant:
 value: <3 i @0> (size=4,offset=0): s32[]
allocation 3: size 16, maybe-live-out:
 value: <4 add_fusion @0> (size=16,offset=0): f32[4]{0}
 value: <5 update_fusion @0> (size=16,offset=0): f32[4]{0}

Total bytes used: 40 (40B)
"""

_HEAD = """source_filename = "{name}"
%XLA_CPU_KernelCallFrame = type {{ ptr, ptr, i64, ptr }}
%XLA_CPU_KernelArg = type {{ ptr, i64 }}
%kernel_dim3 = type {{ i64, i64, i64 }}

; Function Attrs: uwtable
define ptr @{name}(ptr %0) #0 {{
  %args_gep = getelementptr inbounds %XLA_CPU_KernelCallFrame, ptr %0, i32 0, i32 3
  %args = load ptr, ptr %args_gep, align 8, !invariant.load !3
"""

_ARGUMENT = """  %g{n} = getelementptr inbounds %XLA_CPU_KernelArg, ptr %args, i32 {n}, i32 0
  %a{n} = load ptr, ptr %g{n}, align 8, !invariant.load !3, !dereferenceable !{node}
"""

_TAIL = """  ret ptr null
}

attributes #0 = { uwtable denormal_fpenv(preservesign) "frame-pointer"="all" }

!llvm.module.flags = !{!0}
!xla_cpu_memory_region_name = !{!1}

!0 = !{i32 1, !"xla_dylib_index", i64 0}
!1 = !{!"xla_cpu_emitter__loop_fusion_kernel_emitter__hlo_opcode__fusion"}
!3 = !{}
!4 = !{i64 16}
!5 = !{i64 4}
"""

# Each part of the work writes two elements. The factor is 1, as a newer LLVM writes it.
_ADD = """  %id_gep = getelementptr inbounds %XLA_CPU_KernelCallFrame, ptr %0, i32 0, i32 1
  %id = load ptr, ptr %id_gep, align 8
  %x_gep = getelementptr inbounds %kernel_dim3, ptr %id, i32 0, i32 0
  %x = load i64, ptr %x_gep, align 8
  %xa = getelementptr inbounds <2 x float>, ptr %a0, i64 %x
  %xb = getelementptr inbounds <2 x float>, ptr %a1, i64 %x
  %xc = getelementptr inbounds <2 x float>, ptr %a2, i64 %x
  %va = load <2 x float>, ptr %xa, align 8
  %vb = load <2 x float>, ptr %xb, align 8
  %sum = fadd <2 x float> %va, %vb
  %scaled = fmul <2 x float> %sum, splat (float f0x3F800000)
  store <2 x float> %scaled, ptr %xc, align 8
"""

# Writes one element, at a clamped place: the others must be there.
_UPDATE = """  %n = load i32, ptr %a2, align 4
  %low = icmp slt i32 %n, 0
  %least = select i1 %low, i32 0, i32 %n
  %high = icmp sgt i32 %least, 3
  %place = select i1 %high, i32 3, i32 %least
  %wide = sext i32 %place to i64
  %to = getelementptr inbounds float, ptr %a3, i64 %wide
  %v = load float, ptr %a1, align 4
  store float %v, ptr %to, align 4
"""


def _kernel(name: str, sizes: tuple[int, ...], body: str) -> str:
    nodes = {16: 4, 4: 5}
    arguments = "".join(_ARGUMENT.format(n=n, node=nodes[size]) for n, size in enumerate(sizes))
    return _HEAD.format(name=name) + arguments + body + _TAIL


KERNELS = {
    "add_fusion": _kernel("add_fusion", (16, 16, 16), _ADD),
    "update_fusion": _kernel("update_fusion", (16, 4, 4, 16), _UPDATE),
}
"""Symbol → its module's LLVM IR, as a newer LLVM writes it."""


def write_dump(folder: Path, prefix: str = PREFIX) -> Path:
    """Write the dump into a folder, which is made if need be."""
    folder.mkdir(exist_ok=True)
    (folder / f"{prefix}.cpu_after_optimizations.txt").write_text(SCHEDULED)
    (folder / f"{prefix}.cpu_after_optimizations-buffer-assignment.txt").write_text(ASSIGNMENT)
    for name, text in KERNELS.items():
        (folder / f"{prefix}.{name}_kernel_module.ir-no-opt.ll").write_text(text)
        code = compile_object(adapted(text), EmitOptions.host())
        (folder / f"{prefix}.obj-file.{name}_kernel_module.o").write_bytes(code)
    return folder
