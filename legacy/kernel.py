"""Emits one kernel: the function's frame, and in it the forms that were chosen for its results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from llvmlite import ir

from ..codegen.options import EmitOptions, Grouped
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..planning.plan import KernelRequest
from .core.builder import Code
from .core.graph import graph_of
from .core.metadata import annotate
from .core.registers import I64, POINTER
from .core.stack import Scratch
from .core.view import View
from .devices.group import PARAMETERS, Group
from .forms import Choice, Chosen, choose, choose_group
from .loops.elemental import Elemental, ElementRule
from .loops.leaf import Leaf, result_leaves
from .loops.memory import Pointer
from .loops.ranges import Steps
from .movement import indexing, shape
from .products import convolution, dot
from .reductions import reduce, reduce_window
from .sorts import sort


def merge(*tables: Mapping[Op, ElementRule]) -> dict[Op, ElementRule]:
    """Merge tables of rules. An opcode with two rules is an error."""
    merged: dict[Op, ElementRule] = {}
    for table in tables:
        for op, rule in table.items():
            if op in merged:
                raise ValueError(f"{op!r} has two rules in legacy")
            merged[op] = rule
    return merged


RULES: dict[Op, ElementRule] = merge(
    shape.RULES, reduce.RULES, dot.RULES, convolution.RULES, indexing.RULES, reduce_window.RULES, sort.RULES
)
"""Rules of the opcodes that are not elementwise."""


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """What is asked of a kernel: what the choice of its forms reads."""

    request: KernelRequest
    view: View
    leaves: tuple[Leaf, ...]

    @staticmethod
    def of(request: KernelRequest, options: EmitOptions) -> Kernel:
        graph = graph_of(request)
        leaves = result_leaves(request, graph, options.metadata)
        return Kernel(request, View.of(request, graph, options), tuple(leaves))

    def choose(self, options: EmitOptions) -> Choice:
        return choose(self.view, self.leaves, self.request.partition if options.ranges else None)


def emit_kernel(module: ir.Module, request: KernelRequest, options: EmitOptions) -> Choice:
    """Add the kernel's function to the module."""
    kernel = Kernel.of(request, options)
    choice = kernel.choose(options)
    e = begin(module, kernel, options, choice.ranged)
    steps = None
    if choice.ranged:
        assert request.partition is not None
        steps = Steps(request.partition, *e.code.function.args[-2:])
    for part in choice.parts:
        part.form.emit(e, part.results, part.fit.parameters, steps)
    e.code.root.builder.ret_void()
    annotate(e.code.function, [argument.written for argument in request.arguments], options.metadata)
    return choice


def emit_grouped(module: ir.Module, request: KernelRequest, options: EmitOptions) -> tuple[Grouped, Chosen] | None:
    """The same for groups of a device's items; None, and nothing is added, if they cannot compute it."""
    kernel = Kernel.of(request, options)
    assert options.group is not None
    chosen = choose_group(kernel.view, kernel.leaves, options.group)
    if chosen is None:
        return None
    e = begin(module, kernel, options, ranged=False)
    group = Group(e.code, options.group)
    chosen.form.emit(e, chosen.results, chosen.fit.parameters, group)
    e.code.root.builder.ret_void()
    steps, across, down = chosen.fit.parameters.grouped(options.group)
    return Grouped(steps, across, down, group.used), chosen


def begin(module: ir.Module, kernel: Kernel, options: EmitOptions, ranged: bool) -> Elemental:
    """The function of a kernel without its body. ranged: it takes ranges; in groups, it takes their memory."""
    more = PARAMETERS if options.group is not None else [I64] * 2 * ranged
    request, view = kernel.request, kernel.view
    function = _declare(module, request, more, options.metadata)
    code = Code(module, function, view)
    code.hints = "loops" in options.metadata
    pointers = {leaf: Pointer(function.args[argument]) for leaf, argument in view.leaves.items()}
    return Elemental(code, pointers, RULES, Scratch.of(request, function))


def _declare(
    module: ir.Module, request: KernelRequest, more: Sequence[ir.Type], metadata: Collection[str]
) -> ir.Function:
    type_ = ir.FunctionType(ir.VoidType(), [POINTER] * len(request.arguments) + list(more))
    function = ir.Function(module, type_, request.name)
    function.attributes.add("nounwind")
    limits = {"begin": 0, "end": 1} if len(more) == 2 else {"memory": None}
    for (name, least), bound in zip(limits.items(), function.args[len(request.arguments) :], strict=False):
        bound.name = name
        if least is not None and "ranges" in metadata and request.partition is not None:
            set.add(bound.attributes, f"range(i64 {least}, {request.partition.extent + least})")
    for number, (argument, parameter) in enumerate(zip(request.arguments, function.args, strict=False)):
        parameter.name = f"arg{number}"
        if "arguments" not in metadata:
            continue
        for attribute in ("noalias", "captures(none)", "noundef", "nonnull"):
            parameter.add_attribute(attribute)
        if not argument.written:
            set.add(parameter.attributes, "readonly")
        parameter.attributes.align = argument.alignment
        parameter.attributes.dereferenceable = argument.slice.size
    return function
