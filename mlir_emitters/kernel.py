"""Emits one kernel: its function, and the parts that were chosen for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mlir import ir

from ..hlo.opcodes import Op
from ..planning.partition import Partition
from .choice import Choice
from .core.builder import Builder
from .core.elements import raw_type
from .core.graph import KernelGraph
from .loops.elemental import Elemental, ElementRule
from .loops.ranges import Steps
from .loops.scratch import Scratch
from .movement import indexing, shape
from .numerics.elementwise import EMIT
from .products import convolution, dot
from .reductions import reduce, reduce_window
from .sorts import sort


def merge(*tables: Mapping[Op, ElementRule]) -> dict[Op, ElementRule]:
    """Merge the tables of all families. An opcode in two tables is an error."""
    result: dict[Op, ElementRule] = {}
    for table in tables:
        twice = result.keys() & table.keys()
        if twice or table.keys() & EMIT.keys():
            raise ValueError(f"two rules for {sorted(op.value for op in twice or table.keys() & EMIT.keys())}")
        result |= table
    return result


RULES: dict[Op, ElementRule] = merge(
    shape.RULES, reduce.RULES, dot.RULES, convolution.RULES, indexing.RULES, reduce_window.RULES, sort.RULES
)


def emit_kernel(
    b: Builder, graph: KernelGraph, choice: Choice, partition: Partition | None, metadata: Collection[str] = ()
) -> None:
    """Emit the function `void name(ptr noalias …)` of a kernel.

    metadata: those of codegen/metadata.py that its arguments have.
    """
    t, ranged = b.types, choice.ranged
    count = len(graph.arguments)
    given = argument_attributes(b, graph, 2 if ranged else 0)
    if "arguments" not in metadata:
        given = [ir.DictAttr.get({})] * len(given)
    if partition is not None and ranged and "ranges" in metadata:
        given[count:] = [_limited(least, partition.extent + least) for least in (0, 1)]
    attributes: dict[str, ir.Attribute] = {"arg_attrs": ir.ArrayAttr.get(given)}
    types = b.argument_types([a.size for a in graph.arguments], held_types(b, graph))
    with b.function(graph.name, types + [t.i64] * (2 if ranged else 0), [], attributes) as parameters:
        pointers = parameters[:count]
        steps = Steps(partition, *parameters[count:]) if partition is not None and ranged else None
        offered = graph.scratch >= 0
        scratch = Scratch(pointers[graph.scratch], graph.arguments[graph.scratch].size) if offered else Scratch()
        e = Elemental(b, pointers, RULES, scratch)
        for part in choice.parts:
            part.form.emit(e, part.subject, part.fits.parameters, steps)
        b.give()


def held_types(b: Builder, graph: KernelGraph) -> list[ir.Type | None]:
    """The type that all accesses of each argument have; None for an argument of several, or of none."""
    found: list[set[ir.Type]] = [set() for _ in graph.arguments]
    for buffer in (*graph.operands, *graph.results):
        found[buffer.argument].add(raw_type(b.types, buffer.dtype))
    return [types.pop() if len(types) == 1 else None for types in found]


def argument_attributes(b: Builder, graph: KernelGraph, more: int) -> list[ir.DictAttr]:
    """The attributes of a kernel's arguments, and of a number of further ones without any."""
    given = [_argument_attributes(b, a.alignment, a.size, a.written) for a in graph.arguments]
    return given + [ir.DictAttr.get({})] * more


def _argument_attributes(b: Builder, alignment: int, size: int, written: bool) -> ir.DictAttr:
    i64 = b.types.i64
    entries: dict[str, ir.Attribute] = {
        "llvm.noalias": b.types.unit,
        "llvm.nonnull": b.types.unit,
        "llvm.noundef": b.types.unit,
        "llvm.align": ir.IntegerAttr.get(i64, alignment),
    }
    if size:
        entries["llvm.dereferenceable"] = ir.IntegerAttr.get(i64, size)
    if not written:
        entries["llvm.readonly"] = b.types.unit
    return ir.DictAttr.get(entries)


def _limited(least: int, end: int) -> ir.DictAttr:
    """The attributes of an i64 argument in [least, end)."""
    return ir.DictAttr.get({"llvm.range": ir.Attribute.parse(f"#llvm.constant_range<i64, {least}, {end}>")})
