"""Kernel requests → LHLO → MLIR → LLVM dialect → LLVM IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from ..codegen.field.element import emitting
from ..codegen.forms import ChosenForms
from ..codegen.options import EmitOptions, EmittedModule, Grouped
from ..lhlo.from_hlo import from_kernels
from ..lhlo.module import LhloModule
from ..planning.partition import Partition
from ..planning.plan import KernelRequest
from .choice import Choice, choose, choose_for_group
from .core import pipeline
from .core.builder import Builder
from .core.facts import Facts
from .core.graph import graphs
from .core.metadata import annotated
from .group_kernel import emit_grouped
from .kernel import emit_kernel
from .loops.helper import text_of
from .loops.view import View
from .movement.indexing import Misplaced
from .numerics import math_library
from .support import instructions, missing


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every request. Raises UnsupportedError for the first op without a rule."""
    errors = missing(requests)
    if errors:
        raise errors[0]
    with pipeline.LOCK, emitting(options.exact):
        session = pipeline.session()
        try:
            partitions = {r.name: r.partition for r in requests} if options.ranges else {}
            return _emit(session, from_kernels(requests, session.context), options, partitions)
        except Misplaced as error:
            found = (i for r in requests for i in instructions(r.instruction) if i.name == error.instruction)
            error.location = next((i.location for i in found), None)
            raise


def forms_of(request: KernelRequest, options: EmitOptions) -> ChosenForms | None:
    """The forms in which a request would be emitted; None if groups shall compute it, and cannot."""
    errors = missing([request])
    if errors:
        raise errors[0]
    partition = request.partition if options.ranges else None
    with pipeline.LOCK:
        session = pipeline.session()
        (graph,) = graphs(from_kernels([request], session.context))
    view = View.of(graph, Facts.of(options), partition, options.group)
    if options.group is None:
        return choose(view).told(view)
    part = choose_for_group(view)
    return None if part is None else Choice((part,), False, "full").told(view)


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
        choices, grouped = dict[str, Choice](), dict[str, Grouped]()
        forms = dict[str, ChosenForms]()
        for graph in kernels:
            partition = partitions.get(graph.name)
            view = View.of(graph, b.facts, partition, options.group)
            if options.group is None:
                choices[graph.name] = choice = choose(view)
                emit_kernel(b, graph, choice, partition, told)
                forms[graph.name] = choice.told(view)
            elif (part := choose_for_group(view)) is not None:
                grouped[graph.name] = emit_grouped(b, graph, part, options.group)
                forms[graph.name] = Choice((part,), False, "full").told(view)
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
        helpers = tuple(text_of(helper, session, b.facts) for helper in b.helpers.values())
        return EmittedModule(
            text,
            tuple(stages),
            frozenset(name for name, choice in choices.items() if choice.ranged),
            grouped=grouped,
            helpers=helpers,
            glue=frozenset(name for name, choice in choices.items() if choice.passes == "glue"),
            lean=frozenset(name for name, choice in choices.items() if choice.passes == "lean"),
            forms=forms,
        )
