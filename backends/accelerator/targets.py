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
