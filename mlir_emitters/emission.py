"""Kernel requests → LHLO → MLIR → LLVM dialect → LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Instruction
from ..hlo.opclasses import ELEMENTWISE as ELEMENTWISE_OPS
from ..hlo.opcodes import Op
from ..lhlo.from_hlo import from_kernels
from ..lhlo.module import LhloModule
from ..planning.plan import KernelRequest
from . import math_library, pipeline
from .builder import Builder
from .elementwise import EMIT as ELEMENTWISE
from .kernel import RULES, emit_kernel
from .reader import graphs

STAGE = "mlir_emitters"
TRANSPARENT = frozenset({Op.FUSION, Op.PARAMETER, Op.TUPLE, Op.GET_TUPLE_ELEMENT})
"""Opcodes that need no rule: the reader dissolves them."""


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every request. Raises UnsupportedError for the first op without a rule."""
    missing = unsupported(requests)
    if missing:
        raise missing[0]
    with pipeline.LOCK:
        session = pipeline.session()
        return _emit(session, from_kernels(requests, session.context), options)


def emit_lhlo(lhlo: LhloModule, options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every kernel of an LHLO module."""
    with pipeline.LOCK:
        return _emit(pipeline.session(), lhlo, options)


def _emit(session: pipeline.Session, lhlo: LhloModule, options: EmitOptions) -> EmittedModule:
    keep = options.keep_stages
    stages = [("lhlo.mlir", lhlo.to_text())] if keep else []
    with session.context, ir.Location.unknown():
        module = ir.Module.create()
        features = options.target.features.split(",")
        fused = "+fma" in features or "+neon" in features or options.target.architecture == "aarch64"
        b = Builder(module, session.types, strict=options.strict, fma=fused, vector_bits=options.target.vector_bits)
        for graph in graphs(lhlo):
            emit_kernel(b, graph)
        if keep:
            stages.append(("mlir", str(module)))
        math_library.expand(b)
        pipeline.lower(module, session.passes)
        if keep:
            stages.append(("llvm.mlir", str(module)))
        return EmittedModule(pipeline.translate(module), tuple(stages))


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """Every op (or op × dtype) of the requests that has no rule, each key once."""
    found: dict[str, UnsupportedError] = {}
    for request in requests:
        for instruction in _instructions(request.instruction):
            error = _missing(instruction)
            if error is not None:
                found.setdefault(error.what, error)
    return list(found.values())


def _instructions(root: Instruction) -> Iterator[Instruction]:
    """An instruction and all of the computations that it calls."""
    stack, seen = [root], set()
    while stack:
        instruction = stack.pop()
        yield instruction
        for computation in instruction.called():
            if computation not in seen:
                seen.add(computation)
                stack.extend(computation.instructions)


def _missing(instruction: Instruction) -> UnsupportedError | None:
    op = instruction.opcode
    if op is Op.BITCAST and instruction.shape.size != instruction.operands[0].shape.size:
        types = f"{instruction.operands[0].shape.dtype.value} as {instruction.shape.dtype.value}"
        return UnsupportedError(
            STAGE, f"bitcast({types})", location=instruction.location, remedy="use bitcast-convert, which says how"
        )
    if op in TRANSPARENT or op in RULES:
        return None
    if op not in ELEMENTWISE:
        place = "EMIT in {}/elementwise.py" if op in ELEMENTWISE_OPS else "RULES in the file of {} for its family"
        remedy = f"add Op.{op.name} to {place.format(STAGE)}"
        return UnsupportedError(STAGE, op.value, location=instruction.location, remedy=remedy)
    dtype = instruction.operands[0].shape.dtype
    if ELEMENTWISE[op].function(dtype) is not None:
        return None
    return UnsupportedError(
        STAGE,
        f"{op.value}({dtype.value})",
        location=instruction.location,
        remedy=f"add {dtype.value} to the row of Op.{op.name} in EMIT in {STAGE}/elementwise.py",
    )
