"""Emits all requested library kernels into one LLVM module."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ...hlo.conventions import CALL_REMEDIES
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.library.calls import lapack_call
from ...hlo.library.lapack import COMPLEX, REAL
from ...hlo.opcodes import Op
from ...planning.plan import KernelRequest
from ..lite_text import module_text
from ..options import EmitOptions, EmittedModule
from .fft import emit_fft, is_supported, takes_ranges
from .frame import Frame
from .lapack import emit_lapack

EMIT: dict[Op, Callable[[Frame], None]] = {
    Op.CHOLESKY: emit_lapack,
    Op.TRIANGULAR_SOLVE: emit_lapack,
    Op.CUSTOM_CALL: emit_lapack,
    Op.FFT: emit_fft,
}


def emit_module(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """The LLVM module of the kernels. Its text depends only on the requests and the options."""
    errors = missing(requests)
    if errors:
        raise errors[0]
    module = ir.Module("library", context=ir.Context())
    module.triple = options.target.triple
    ranged: set[str] = set()
    helpers: dict[str, str] = {}
    for request in requests:
        frame = Frame(module, request, not options.strict, options.ranges and takes_ranges(request))
        EMIT[request.instruction.opcode](frame)
        frame.finish()
        ranged |= {request.name} if frame.range else set()
        helpers |= frame.helpers
    return EmittedModule(module_text(module), ranged=frozenset(ranged), helpers=tuple(helpers.values()))


def missing(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error per op without a routine, in order of first use."""
    found: dict[str, UnsupportedError] = {}
    for request in requests:
        i = request.instruction
        if not (is_supported(i) if i.opcode is Op.FFT else lapack_call(i) is not None):
            error = _error(i)
            found.setdefault(error.what, error)
    return list(found.values())


def _error(i: Instruction) -> UnsupportedError:
    if i.opcode is Op.CUSTOM_CALL:
        target = i.attributes.get("custom_call_target", "")
        names = ", ".join(sorted(REAL.keys() | COMPLEX.keys()))
        remedy = CALL_REMEDIES.get(target) or f"known: lapack_[sdcz]NAME_ffi with NAME one of {names}"
        return UnsupportedError("library", f"custom-call({target})", remedy=remedy, location=i.location)
    types = ", ".join(o.shape.dtype.value for o in i.operands)
    remedy = "convert the operands to one of f32, f64, c64, c128"
    return UnsupportedError("library", f"{i.opcode.value}({types})", remedy=remedy, location=i.location)
