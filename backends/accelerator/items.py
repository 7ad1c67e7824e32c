"""How a kernel's steps are shared by work items, and its requests for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...hlo.opcodes import Op
from ...planning.partition import finest_partition
from ...planning.plan import KernelRequest
from .targets import MOST_ITEMS
from .text import Work

MOST_SCRATCH = 64 << 20
"""Bytes of scratch memory of all items of a kernel together; a kernel whose items need more has fewer items."""

FAR = 16
"""Minimum elements in a row whose neighbouring rows have no cache line in common."""

SHARED = frozenset({Op.CONVOLUTION, Op.DOT, Op.REDUCE, Op.TRANSPOSE})
"""Ops whose elements groups of items may compute together."""


def may_be_grouped(request: KernelRequest) -> bool:
    """Whether a stack may have a form of the kernel for groups: only then it is asked."""
    body = request.body
    ops = frozenset((request.instruction.opcode,)) if body is None else body.opcodes
    return not SHARED.isdisjoint(ops)


def forms(request: KernelRequest) -> Iterator[KernelRequest]:
    """The request with steps as small as possible, then as the Plan has it for threads, then without any."""
    finest = finest_partition(request.instruction)
    if finest is not None:
        yield replace(request, partition=finest)
    if request.partition is not None:
        yield request
    yield replace(request, partition=None)


def work_of(request: KernelRequest, ranged: bool) -> Work:
    """The work of a kernel. ranged: its function takes a range of steps."""
    count, partition = len(request.arguments), request.partition
    if not ranged or partition is None:
        return Work(request.name, count)
    each, private = partition.least, 0
    if request.scratch_bytes:
        private = max(64, -(-request.scratch_bytes // 64) * 64)
        items = max(1, MOST_SCRATCH // private)
        steps = math.ceil(partition.extent / items)
        each = max(each, math.ceil(steps / partition.least) * partition.least)
    while -(-partition.extent // each) > MOST_ITEMS:
        each *= 2
    return Work(request.name, count, partition.extent, each, private, _walks(request))


def _walks(request: KernelRequest) -> bool:
    """Whether neighbouring items are far apart in memory: each has a row of its results, or reduces rows."""
    partition, size = request.partition, max(shape.size for shape in request.result_shapes)
    if partition is not None and size >= FAR * partition.extent:
        return True
    body = request.body
    reduces = [i for i in ((request.instruction,) if body is None else body.instructions) if i.opcode is Op.REDUCE]
    return any(
        shape.dims[shape.minor_to_major[0]] >= FAR and shape.minor_to_major[0] in i.dimensions
        for i in reduces
        if (shape := i.operands[0].shape).rank
    )
