"""What differs between instruction sets of devices, as a table: address spaces, numbers of items, conventions."""

from __future__ import annotations

from dataclasses import dataclass

from ...codegen.options import GroupShape, Target

GROUP = 256
"""Items of a work group, unless a target says otherwise."""


@dataclass(frozen=True, slots=True)
class DeviceTarget:
    """How LLVM IR says what only devices have. The text of an entry of a kernel is made of it (text.py).

    generic, memory, constants, stack: address spaces of pointers in kernels' bodies, of their arguments, of constant
    arrays, and of what a kernel allocates. kernel, function: calling conventions. item: LLVM IR that gives the number
    of the work item as `%item`, an i64. declarations: of the functions that it calls. assembly: the device takes text.
    group, row_group: items of a work group; of one whose items walk along rows. lanes: items in a row of a launch,
    whose rows lie along y; None: all lie along x. groups: the shape of groups that share a step; None where items
    cannot wait for each other. place: LLVM IR of the number of the group, and of those of the item in it, across and
    down, each as `%number`. barrier: LLVM IR with which the items of a group wait for others; it and `place` call what
    group_declarations declares. chains: addresses are made in steps (addresses.py). sized: what a kernel's head says
    of the items of its groups, {across} by {down}. libm: the device's own compiler knows functions of C's library.
    library: kernels are linked with libdevice, which has them (device_library.py).
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
    group: int = GROUP
    row_group: int = GROUP
    lanes: int | None = None
    groups: GroupShape | None = None
    place: tuple[str, str, str] = ("", "", "")
    barrier: str = ""
    group_declarations: str = ""
    chains: bool = False
    sized: str = ""
    libm: bool = False
    library: bool = False

    @property
    def key(self) -> str:
        """All of it, for keys of caches."""
        return repr(self)


VECTOR_BITS = 32
"""Stacks make scalar code for devices: their compilers make vectors, or none, of neighbouring work items."""

GPU_GROUPS = GroupShape(lanes=GROUP, across=16, down=16, columns=4, rows=4, depth=16, memory=1 << 15)


def _place(step: str, across: str, down: str) -> tuple[str, str, str]:
    """The numbers from functions that give 32 bits."""
    found = [f"  %short = call i32 @{f}()\n  %number = zext i32 %short to i64\n" for f in (step, across, down)]
    return found[0], found[1], found[2]


MOST_ITEMS = 1 << 31
"""Of a launch."""

LANES = 16
"""Items side by side on a CPU that makes a vector of them. Their number and that of the vector are told apart, so that
LLVM finds neighbours behind the quotients by which a kernel knows where its element is; or a vector gathers.
"""


SPIRV = DeviceTarget(
    name="spirv",
    target=Target("spirv64v1.4-unknown-unknown", "", "", VECTOR_BITS),
    generic=4,
    memory=1,
    constants=1,
    stack=0,
    kernel="spir_kernel ",
    function="spir_func ",
    item=f"""\
  %lane = call spir_func noundef range(i64 0, {LANES}) i64 @_Z13get_global_idj(i32 0)
  %vector = call spir_func noundef range(i64 0, {MOST_ITEMS // LANES}) i64 @_Z13get_global_idj(i32 1)
  %before = mul nuw nsw i64 %vector, {LANES}
  %item = add nuw nsw i64 %before, %lane
""",
    declarations="declare spir_func i64 @_Z13get_global_idj(i32)\n",
    chains=True,
    libm=True,
    sized=" !reqd_work_group_size !{{i32 {across}, i32 {down}, i32 1}}",
    lanes=LANES,
    group=1024,  # a CPU runs a group as one loop
    row_group=1,  # a CPU makes vectors of the items of a group, which then gather from rows far apart
    # One vector of a CPU a row: more items are a loop between each two barriers.
    groups=GroupShape(lanes=16, across=16, down=16, columns=4, rows=4, depth=64, memory=1 << 15, vectors=True),
    place=(
        "  %number = call spir_func i64 @_Z12get_group_idj(i32 0)\n",
        "  %number = call spir_func i64 @_Z12get_local_idj(i32 0)\n",
        "  %number = call spir_func i64 @_Z12get_local_idj(i32 1)\n",
    ),
    barrier="call spir_func void @_Z7barrierj(i32 1)",
    group_declarations="declare spir_func i64 @_Z12get_group_idj(i32)\n"
    "declare spir_func i64 @_Z12get_local_idj(i32)\n"
    "declare spir_func void @_Z7barrierj(i32) convergent nounwind\n",
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


_CUDA_PLACE = (
    "llvm.nvvm.read.ptx.sreg.ctaid.x",
    "llvm.nvvm.read.ptx.sreg.tid.x",
    "llvm.nvvm.read.ptx.sreg.tid.y",
)


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
        library=True,
        sized=' "nvvm.reqntid"="{across},{down},1"',
        groups=GPU_GROUPS,
        place=_place(*_CUDA_PLACE),
        barrier="call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
        group_declarations="declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
        + "".join(f"declare i32 @{name}()\n" for name in _CUDA_PLACE),
    )


_HIP_ITEM = f"""\
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %thread = call i32 @llvm.amdgcn.workitem.id.x()
  %wide.group = zext i32 %group to i64
  %wide.thread = zext i32 %thread to i64
  %first = mul nuw nsw i64 %wide.group, {GROUP}
  %item = add nuw nsw i64 %first, %wide.thread
"""


_HIP_PLACE = (
    "llvm.amdgcn.workgroup.id.x",
    "llvm.amdgcn.workitem.id.x",
    "llvm.amdgcn.workitem.id.y",
)


def amdgcn(processor: str) -> DeviceTarget:
    """An ELF object for an AMD GPU, `gfx942` or `gfx1100`. Entries count on groups of GROUP items."""
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
        sized=' "amdgpu-flat-work-group-size"="{items},{items}"',
        groups=GPU_GROUPS,
        place=_place(*_HIP_PLACE),
        barrier='fence syncscope("workgroup") release\n  call void @llvm.amdgcn.s.barrier()\n'
        '  fence syncscope("workgroup") acquire',
        group_declarations="declare void @llvm.amdgcn.s.barrier()\n"
        + "".join(f"declare i32 @{name}()\n" for name in _HIP_PLACE),
    )
