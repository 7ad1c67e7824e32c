"""Kernel requests → LHLO → MLIR → LLVM dialect → LLVM IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from ..codegen.options import EmitOptions, EmittedModule, Grouped
from ..lhlo.from_hlo import from_kernels
from ..lhlo.module import LhloModule
from ..planning.partition import Partition
from ..planning.plan import KernelRequest
from . import math_library, pipeline
from .builder import Builder
from .facts import Facts
from .graph import graphs
from .group_kernel import emit_grouped
from .helper import text_of
from .indexing import Misplaced
from .kernel import emit_kernel
from .metadata import annotated
from .support import instructions, missing


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every request. Raises UnsupportedError for the first op without a rule."""
    errors = missing(requests)
    if errors:
        raise errors[0]
    with pipeline.LOCK:
        session = pipeline.session()
        try:
            partitions = {r.name: r.partition for r in requests} if options.ranges else {}
            return _emit(session, from_kernels(requests, session.context), options, partitions)
        except Misplaced as error:
            found = (i for r in requests for i in instructions(r.instruction) if i.name == error.instruction)
            error.location = next((i.location for i in found), None)
            raise


def _emit(
    session: pipeline.Session, lhlo: LhloModule, options: EmitOptions, partitions: Mapping[str, Partition | None]
) -> EmittedModule:
    keep = options.keep_stages
    stages = [("lhlo.mlir", lhlo.to_text())] if keep else []
    with session.context, ir.Location.unknown():
        module = ir.Module.create()
        b = Builder(module, session.types, Facts.of(options))
        b.hints = "loops" in options.metadata
        kernels, told = list(graphs(lhlo)), options.metadata
        ranged, glue, lean, grouped = frozenset[str](), frozenset[str](), frozenset[str](), dict[str, Grouped]()
        if options.group is None:
            emitted = {g.name: emit_kernel(b, g, partitions.get(g.name), told) for g in kernels}
            ranged = frozenset(name for name, kernel in emitted.items() if kernel.ranged)
            glue = frozenset(name for name, kernel in emitted.items() if kernel.glue)
            lean = frozenset(name for name, kernel in emitted.items() if kernel.lean)
        else:
            made = ((g.name, emit_grouped(b, g, options.group)) for g in kernels)
            grouped = {name: found for name, found in made if found is not None}
        if keep:
            stages.append(("mlir", str(module)))
        math_library.expand(b)
        if b.generics:
            pipeline.open_loops(module, session, hinted=b.hinted > 0)
        pipeline.lower(module, session, b.vectors)
        if keep:
            stages.append(("llvm.mlir", str(module)))
        written = {g.name: [argument.written for argument in g.arguments] for g in kernels}
        text = annotated(pipeline.translate(module), told, written)
        helpers = tuple(text_of(helper, session, b.vector_bits) for helper in b.helpers.values())
        return EmittedModule(text, tuple(stages), ranged, grouped=grouped, helpers=helpers, glue=glue, lean=lean)
