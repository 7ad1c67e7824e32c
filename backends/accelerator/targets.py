"""What differs between instruction sets of devices, as a table: address spaces, numbers of items, conventions."""

from __future__ import annotations

from dataclasses import dataclass

from ...codegen.options import Target


@dataclass(frozen=True, slots=True)
class DeviceTarget:
    """How LLVM IR says what only devices have. The text of an entry of a kernel is made of it (text.py).

    generic, memory, constants, stack: address spaces of pointers in kernels' bodies, of their arguments, of constant
    arrays, and of what a kernel allocates. kernel, function: calling conventions. item: LLVM IR that gives the number
    of the work item as `%item`, an i64. declarations: of the functions that it calls. assembly: the device takes text.
    group, row_group: items of a work group; of one whose items walk along rows.
    """

    name: str
    target: Target
    generic: int
    memory: int
    constants: int
    stack: int
    kernel: str
    function: str
    item: str
    declarations: str
    assembly: bool = False
    group: int = 256
    row_group: int = 256

    @property
    def key(self) -> str:
        """All of it, for keys of caches."""
        return repr(self)


VECTOR_BITS = 32
"""Stacks make scalar code for devices: their compilers make vectors, or none, of neighbouring work items."""

SPIRV = DeviceTarget(
    name="spirv",
    target=Target("spirv64v1.4-unknown-unknown", "", "", VECTOR_BITS),
    generic=4,
    memory=1,
    constants=1,
    stack=0,
    kernel="spir_kernel ",
    function="spir_func ",
    item="  %item = call spir_func i64 @_Z13get_global_idj(i32 0)\n",
    declarations="declare spir_func i64 @_Z13get_global_idj(i32)\n",
    row_group=1,  # a CPU makes vectors of the items of a group, which then gather from rows far apart
)

_CUDA_ITEM = """\
  %group = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide.group = zext i32 %group to i64
  %wide.size = zext i32 %size to i64
  %wide.thread = zext i32 %thread to i64
  %first = mul nuw nsw i64 %wide.group, %wide.size
  %item = add nuw nsw i64 %first, %wide.thread
"""


PTX = {"sm_80": "+ptx80", "sm_90": "+ptx80", "sm_100": "+ptx86"}
"""Processor → the least version of PTX for it, which the most drivers read; 8.0 is CUDA 12.0's."""


def nvptx(processor: str) -> DeviceTarget:
    """PTX for a processor of PTX; newer ones run it, too."""
    return DeviceTarget(
        name="nvptx",
        target=Target("nvptx64-nvidia-cuda", processor, PTX[processor], VECTOR_BITS),
        generic=0,
        memory=1,
        constants=1,
        stack=0,
        kernel="ptx_kernel ",
        function="",
        item=_CUDA_ITEM,
        declarations="".join(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()\n" for name in ("ctaid", "ntid", "tid")),
        assembly=True,
    )


_HIP_ITEM = """\
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %thread = call i32 @llvm.amdgcn.workitem.id.x()
  %wide.group = zext i32 %group to i64
  %wide.thread = zext i32 %thread to i64
  %first = mul nuw nsw i64 %wide.group, 256
  %item = add nuw nsw i64 %first, %wide.thread
"""


def amdgcn(processor: str) -> DeviceTarget:
    """An ELF object for an AMD GPU, `gfx942` or `gfx1100`. A group has as many items as `group` says."""
    return DeviceTarget(
        name="amdgcn",
        target=Target("amdgcn-amd-amdhsa", processor, "", VECTOR_BITS),
        generic=0,
        memory=1,
        constants=4,
        stack=5,
        kernel="amdgpu_kernel ",
        function="",
        item=_HIP_ITEM,
        declarations="declare i32 @llvm.amdgcn.workgroup.id.x()\ndeclare i32 @llvm.amdgcn.workitem.id.x()\n",
    )
