"""Kernel requests: the task that an instruction gives to an emitter; equal requests are shared."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence

from ..hlo.analysis.leaves import NO_BUFFER
from ..hlo.errors import UnsupportedError, VerificationError
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Instruction
from ..hlo.library.calls import is_foreign
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..hlo.remedies import CHANNELS
from .partition import partition_of
from .plan import Allocation, BufferAssignment, BufferSlice, KernelArgument, KernelRequest, KernelStep

NO_ARGUMENT = NO_BUFFER
"""In KernelRequest.operands and .results: a token, which has no buffer."""

_NOT_C = re.compile(r"\W", re.ASCII)


@dataclass(frozen=True, slots=True)
class Places:
    """The slices of a kernel's operands and result leaves (None for a token), and of its scratch memory."""

    operands: tuple[BufferSlice | None, ...]
    results: tuple[BufferSlice | None, ...]
    scratch: BufferSlice | None = None


class KernelTable:
    """Collects requests. Equal ones (same structure, shapes, layouts, aliasing and alignment) become one.

    taken: names that no kernel gets, because other code that is loaded with the kernels defines them.
    """

    def __init__(self, allocations: Sequence[Allocation], taken: Iterable[str] = ()):
        self.allocations = allocations
        self.requests: dict[Hashable, KernelRequest] = {}
        self._names: set[str] = {*taken}

    def step(self, i: Instruction, places: Places, symbol: str | None = None) -> KernelStep:
        """The step that runs an instruction as a kernel on the given slices.

        symbol: the kernel's name; None makes one from the instruction's name. Raises VerificationError if another
        kernel has this name.
        """
        slices: dict[BufferSlice, int] = {}

        def numbers(given: Sequence[BufferSlice | None]) -> tuple[int, ...]:
            return tuple([NO_ARGUMENT if s is None else slices.setdefault(s, len(slices)) for s in given])

        operands, results, (scratch,) = numbers(places.operands), numbers(places.results), numbers((places.scratch,))
        written = {*results, scratch}
        arguments = tuple(KernelArgument(s, self._alignment(s), n in written) for s, n in slices.items())
        key = (
            instruction_key(i, tuple((o.shape, n) for o, n in zip(i.operands, operands, strict=True))),
            results,
            scratch,
            tuple((a.slice.size, a.alignment, a.written) for a in arguments),
            symbol,
            i.name if is_foreign(i) else None,  # each call site has a state of its own
        )
        request = self.requests.get(key)
        if request is None:
            if symbol is not None and symbol in self._names:
                raise VerificationError(
                    f"two different kernels have the name '{symbol}'",
                    location=i.location,
                    remedy="give each its own name, or none",
                )
            name = symbol or self._name(i)
            self._names.add(name)
            request = KernelRequest(name, i, arguments, operands, results, scratch, partition_of(i))
            self.requests[key] = request
        return KernelStep(i, request, tuple(slices))

    def _alignment(self, piece: BufferSlice) -> int:
        """Alignment of a slice's address in bytes, valid for every run."""
        return piece.alignment(self.allocations[piece.allocation].alignment)

    def _name(self, i: Instruction) -> str:
        """A C identifier from the instruction's name, different from those of other kernels and of libm (`exp`)."""
        stem = f"{_NOT_C.sub('_', i.name)}_kernel"
        if stem[0].isdigit():
            stem = f"k_{stem}"
        name, n = stem, 1
        while name in self._names:
            name, n = f"{stem}_{n}", n + 1
        return name


def places_of(i: Instruction, assignment: BufferAssignment) -> Places:
    """The slices that the buffer assignment gives to an instruction. Raises UnsupportedError for a tuple operand."""
    operands = tuple(_operand(i, o, assignment) for o in i.operands)
    leaves = i.shape.leaves()
    results = tuple(assignment.slice_of(i, index) if shape.is_array else None for index, shape in leaves)
    return Places(operands, results, assignment.scratch.get(i))


def _operand(i: Instruction, operand: Instruction, assignment: BufferAssignment) -> BufferSlice | None:
    if operand.shape.is_tuple:
        if i.opcode in (Op.SEND_DONE, Op.RECV_DONE):
            raise UnsupportedError("plan", i.opcode.value, location=i.location, remedy=CHANNELS)
        raise UnsupportedError(
            "plan",
            f"{i.opcode.value} of a tuple",
            location=i.location,
            remedy="pass the elements of the tuple as operands",
        )
    return assignment.slice_of(operand) if operand.shape.is_array else None
