"""Which instructions this stack can emit, derived from its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..hlo.dtypes import DType
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Computation, Instruction
from ..hlo.layouts import changes_elements
from ..hlo.opclasses import ELEMENTWISE
from ..hlo.opcodes import Op
from ..planning.plan import KernelRequest
from .core.graph import graph_of
from .kernel import RULES
from .loops.elemental import SCALAR_OPS
from .numerics.elementwise import EMIT
from .numerics.typed import Typed


def missing(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error per missing (opcode, dtype), in order of first use."""
    found: dict[str, UnsupportedError] = {}
    for request in requests:
        for instruction, scalar in _instructions(request):
            if not _is_supported(instruction, scalar):
                error = _error(instruction)
                found.setdefault(error.what, error)
    return list(found.values())


def _instructions(request: KernelRequest) -> Iterable[tuple[Instruction, bool]]:
    """(instruction, whether it is in a region of scalars)."""
    for instruction in graph_of(request).instructions():
        yield instruction, False
        yield from ((inner, True) for region in instruction.called() for inner in _region(region))


def _region(region: Computation) -> Iterable[Instruction]:
    for instruction in region.instructions:
        yield instruction
        for inner in instruction.called():
            yield from _region(inner)


def _is_supported(instruction: Instruction, scalar: bool) -> bool:
    op = instruction.opcode
    if op is Op.BITCAST and changes_elements(instruction):
        return False
    if instruction.shape.is_dynamic or any(not s.is_array for _, s in instruction.shape.leaves()):
        return False
    if op in EMIT:
        return _takes(instruction)
    return (op in SCALAR_OPS and all(s.size == 1 for _, s in instruction.shape.leaves())) if scalar else op in RULES


def _takes(instruction: Instruction) -> bool:
    emit = EMIT[instruction.opcode]
    dtype = instruction.operands[0].shape.dtype
    if isinstance(emit, Typed):
        return emit.supports(dtype)
    return dtype is not DType.OPAQUE


def _error(instruction: Instruction) -> UnsupportedError:
    op = instruction.opcode
    if op is Op.BITCAST:
        types = f"{instruction.operands[0].shape.dtype.value} as {instruction.shape.dtype.value}"
        remedy = "use bitcast-convert, which says how"
        return UnsupportedError("legacy", f"bitcast({types})", remedy=remedy, location=instruction.location)
    dtype = (instruction.operands[0] if instruction.operands else instruction).shape.dtype
    place = (
        "EMIT in legacy/numerics/elementwise.py" if op in ELEMENTWISE else "RULES in the file of legacy for its family"
    )
    remedy = f"extend {op!r} in {place}" if op in EMIT or op in RULES else f"add {op!r} to {place}"
    return UnsupportedError("legacy", f"{op.value}({dtype!r})", remedy=remedy, location=instruction.location)
