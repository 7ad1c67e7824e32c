"""The kernels of a program by the stack that emits them, and what is refused before anything is emitted."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.errors import UnsupportedError
from ...hlo.opcodes import Op
from ...hlo.opset import Family, opcodes
from ...hlo.records import dataclass
from ...hlo.remedies import CHANNELS
from ...planning.plan import KernelRequest
from ..base import EmitFor, Emitter

QUEUES = frozenset(opcodes([Family.IO]))


@dataclass(frozen=True, eq=False)
class Part:
    """The kernels of one stack."""

    emitter: Emitter
    requests: tuple[KernelRequest, ...]


def by_stack(kernels: Sequence[KernelRequest], emit_for: EmitFor) -> list[Part]:
    parts: dict[str, tuple[Emitter, list[KernelRequest]]] = {}
    for request in kernels:
        emitter = emit_for(request)
        parts.setdefault(emitter.name, (emitter, []))[1].append(request)
    return [Part(emitter, tuple(requests)) for emitter, requests in parts.values()]


def refuse_queues(kernels: Sequence[KernelRequest]) -> None:
    """Refuse ops that exchange data with the host during a run: an executable here has no host beside it."""
    for i in (request.instruction for request in kernels):
        if i.opcode in QUEUES:
            remedy = "pass values as parameters and results, or evaluate(module, inputs, infeed=[…], outfeed=[])"
            remedy = CHANNELS if i.opcode in (Op.SEND, Op.RECV) else remedy
            raise UnsupportedError("host", i.opcode.value, location=i.location, remedy=remedy)


def refuse_unsupported(parts: Sequence[Part]) -> None:
    missing = [error for part in parts for error in part.emitter.unsupported(part.requests)]
    if not missing:
        return
    first, others = missing[0], sorted({str(e.message) for e in missing} - {missing[0].message})
    if isinstance(first, UnsupportedError) and others:
        remedy = f"{first.remedy or 'add it'}; also missing: {', '.join(others)}"
        raise UnsupportedError(first.stage, first.what, remedy=remedy, location=first.location)
    raise first
