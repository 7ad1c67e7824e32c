"""Plan → Image: what the host keeps of a plan for its runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ...formats.program import parameter_leaves, result_leaves
from ...hlo.devices import ONE_DEVICE, Devices
from ...hlo.dynamic_border import DynamicBorder
from ...hlo.errors import Location
from ...hlo.records import replace
from ...planning.allocation import POOL_ALIGNMENT, Allocation
from ...planning.plan import AllocationKind, BufferSlice, KernelRequest, Plan
from ...thunks.image import Image, Kernel, KernelArgument
from ...thunks.kinds import SequentialThunk
from ...thunks.lowering import split_of
from .estimate import estimated_seconds
from .leaves import Leaf


def image_of(
    plan: Plan,
    thunks: SequentialThunk,
    emitters: Mapping[str, str],
    flush_subnormals: bool,
    ranged: Collection[str] = (),
    devices: Devices = ONE_DEVICE,
) -> Image:
    """emitters: name of a kernel → name of the stack that emits it. ranged: names of kernels that take ranges. devices:
    those that the plan is for.
    """
    return Image(
        parameter_leaves(plan.module),
        result_leaves(plan.module),
        plan.assignment.allocations,
        _elsewhere(plan),
        _constants(plan),
        tuple(_kernel(request, emitters[request.name], request.name in ranged) for request in plan.emitted),
        thunks,
        DynamicBorder.of(plan.module),
        flush_subnormals,
        estimated_seconds(plan),
        _largest(plan),
        devices,
    )


def with_kernels(image: Image, requests: Sequence[KernelRequest], emitter: str, ranged: Collection[str]) -> Image:
    """The image with further kernels of a stack."""
    return replace(image, kernels=(*image.kernels, *(_kernel(r, emitter, r.name in ranged) for r in requests)))


def with_memory(image: Image, sizes: Sequence[int]) -> Image:
    """The image with further temporaries of these sizes, in bytes."""
    first = len(image.allocations)
    kind = AllocationKind.TEMPORARY
    more = (Allocation(first + n, kind, size, POOL_ALIGNMENT) for n, size in enumerate(sizes))
    return replace(image, allocations=(*image.allocations, *more))


def _elsewhere(plan: Plan) -> dict[int, BufferSlice]:
    allocations, root = plan.assignment.allocations, plan.module.entry.root
    placed = {a.number for a in allocations if a.kind is AllocationKind.RESULT} | {a.result for a in allocations}
    arrays = [(index, s) for index, s in plan.module.result_shape.leaves() if s.is_array]
    return {
        n: plan.assignment.slices[root, index] for n, (index, s) in enumerate(arrays) if n not in placed and s.bytes
    }


def _constants(plan: Plan) -> dict[int, memoryview]:
    """The bytes of each constant in the layout of its shape."""
    blocks = {}
    for a in plan.assignment.allocations:
        if a.kind is AllocationKind.CONSTANT:
            assert a.literal is not None
            leaf = Leaf("constant", a.index, a.shape or a.literal.shape, a.alignment)
            physical = leaf.allocate_physical()
            np.copyto(leaf.logical(physical), a.literal.array)
            blocks[a.index] = physical.reshape(-1).view(np.uint8).data
    return blocks


def _kernel(request: KernelRequest, emitter: str, ranged: bool) -> Kernel:
    arguments = (KernelArgument(a.slice.size, a.alignment, a.written) for a in request.arguments)
    return Kernel(request.name, emitter, tuple(arguments), split_of(request) if ranged else None)


def _largest(plan: Plan) -> dict[int, tuple[str, Location | None]]:
    """The largest array in each allocation of temporaries, for an error about too little memory."""
    found: dict[int, tuple[int, str, Location | None]] = {}
    temporary = {a.index for a in plan.assignment.allocations if a.kind is AllocationKind.TEMPORARY}
    for (i, _), s in plan.assignment.slices.items():
        if s.allocation in temporary and (s.allocation not in found or s.size > found[s.allocation][0]):
            found[s.allocation] = s.size, f"{i.name}, {i.shape.without_layout()}, of {s.size:,} bytes", i.location
    return {allocation: (text, location) for allocation, (_, text, location) in found.items()}
