"""Kernel requests: the task that an instruction gives to an emitter; equal requests are shared."""

from __future__ import annotations

import re
from collections.abc import Hashable

from ..hlo.errors import UnsupportedError
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Instruction
from .liveness import NO_BUFFER
from .partition import partition_of
from .plan import BufferAssignment, BufferSlice, KernelArgument, KernelRequest, KernelStep

NO_ARGUMENT = NO_BUFFER
"""In KernelRequest.operands and .results: a token, which has no buffer."""

_NOT_C = re.compile(r"\W", re.ASCII)


class KernelTable:
    """Collects requests. Equal ones (same structure, shapes, layouts, aliasing and alignment) become one."""

    def __init__(self, assignment: BufferAssignment):
        self.assignment = assignment
        self.requests: dict[Hashable, KernelRequest] = {}
        self._names: set[str] = set()

    def step(self, i: Instruction) -> KernelStep:
        """The step that runs an instruction as a kernel. Raises UnsupportedError for a tuple operand."""
        slices: dict[BufferSlice, int] = {}
        operands = tuple(self._argument(slices, i, o) for o in i.operands)
        results = []
        for index, shape in i.shape.leaves():
            if shape.is_array:
                results.append(slices.setdefault(self.assignment.slice_of(i, index), len(slices)))
            else:
                results.append(NO_ARGUMENT)
        scratch = NO_ARGUMENT
        if i in self.assignment.scratch:
            scratch = slices.setdefault(self.assignment.scratch[i], len(slices))
        written = {*results, scratch}
        arguments = tuple(KernelArgument(s, self._alignment(s), n in written) for s, n in slices.items())
        key = (
            instruction_key(i, tuple((o.shape, n) for o, n in zip(i.operands, operands))),
            tuple(results),
            scratch,
            tuple((a.slice.size, a.alignment, a.written) for a in arguments),
        )
        request = self.requests.get(key)
        if request is None:
            partition = partition_of(i) if scratch == NO_ARGUMENT else None
            request = KernelRequest(self._name(i), i, arguments, operands, tuple(results), scratch, partition)
            self.requests[key] = request
        return KernelStep(i, request, tuple(slices))

    def _argument(self, slices: dict[BufferSlice, int], i: Instruction, operand: Instruction) -> int:
        if operand.shape.is_tuple:
            raise UnsupportedError(
                "plan",
                f"{i.opcode.value} of a tuple",
                location=i.location,
                remedy="pass the elements of the tuple as operands",
            )
        if not operand.shape.is_array:
            return NO_ARGUMENT
        return slices.setdefault(self.assignment.slice_of(operand), len(slices))

    def _alignment(self, piece: BufferSlice) -> int:
        """Alignment of a slice's address in bytes, valid for every run."""
        return piece.alignment(self.assignment.allocations[piece.allocation].alignment)

    def _name(self, i: Instruction) -> str:
        """A C identifier from the instruction's name, different from those of other kernels and of libm (`exp`)."""
        stem = f"{_NOT_C.sub('_', i.name)}_kernel"
        if stem[0].isdigit():
            stem = f"k_{stem}"
        name, n = stem, 1
        while name in self._names:
            name, n = f"{stem}_{n}", n + 1
        self._names.add(name)
        return name
