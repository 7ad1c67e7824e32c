"""Functions that the kernels of many programs call, each in a module of its own (`EmittedModule.helpers`): their memory
is passed as memrefs of one huge size, with offsets, because memrefs with offsets are no bare pointers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from mlir import ir

from ...codegen.helpers import text_once
from ..core import pipeline
from ..core.builder import Builder, Index, Pointer, Value
from ..core.facts import Facts
from ..core.memory import Place, bytes_of
from ..numerics import math_library

MEMORY_BYTES = 1 << 45
"""Bytes of a function's memrefs: more than any array has."""


class Helper(Protocol):
    """What a function does, apart from its arguments: equal ones have equal texts."""

    @property
    def name(self) -> str: ...

    @property
    def fma(self) -> bool: ...

    def types(self, b: Builder) -> list[ir.Type]: ...

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None: ...


def memory_types(b: Builder, elements: Sequence[ir.Type]) -> list[ir.Type]:
    """The types of parameters that are memory."""
    return b.argument_types([MEMORY_BYTES] * len(elements), list(elements))


def call_helper(b: Builder, helper: Helper, places: Sequence[Pointer], numbers: Sequence[Index], offsets: int) -> None:
    """Call a function with the memory of places, the offsets of the first ones, and numbers. Others have offset 0."""
    memory, given = [], []
    for number, place in enumerate(places):
        held = place if isinstance(place, Place) else Place(place, 0)
        memory.append(_whole(b, held.memref))
        if number < offsets:
            given.append(held.offset)
        elif held.offset != 0:
            raise ValueError(f"{helper.name} takes no offset of memory {number}")
    values = [*memory, *map(b.materialize, (*given, *numbers))]
    # O3 would copy loops around the call for conditions outside them.
    b.external(helper.name, [v.type for v in values], None, passed=("nounwind", "willreturn", "noduplicate"))
    b.helpers[helper.name] = helper
    b.operation("func.call", [], values, {"callee": ir.FlatSymbolRefAttr.get(helper.name)})


def _whole(b: Builder, memref: Value) -> Value:
    """A memref as one of MEMORY_BYTES bytes, the parameters' type."""
    element = ir.MemRefType(memref.type).element_type
    count = MEMORY_BYTES // bytes_of(element)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get([0]),
        "static_sizes": ir.DenseI64ArrayAttr.get([count]),
        "static_strides": ir.DenseI64ArrayAttr.get([1]),
    }
    type = ir.MemRefType.get([count], element)
    make = partial(b.at_entry, "memref.reinterpret_cast", type, [memref], attributes)
    return b.constant_once(("whole", memref), make)


def text_of(helper: Helper, session: pipeline.Session, target: Facts) -> str:
    """LLVM IR of a module with the function. pipeline.LOCK must be held."""
    facts = Facts(target.vector_bits, helper.fma, processor=target.processor)
    return text_once((helper, facts), partial(_text, helper, session, facts))


def _text(helper: Helper, session: pipeline.Session, facts: Facts) -> str:
    with session.context, ir.Location.unknown():
        module = ir.Module.create()
        b = Builder(module, session.types, facts)
        with b.function(helper.name, helper.types(b), [], {}) as parameters:
            helper.emit(b, parameters)
            b.give()
        math_library.expand(b)
        pipeline.lower(module, session, b.vectors)
        return pipeline.translate(module)
