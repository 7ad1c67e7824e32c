"""The interface of a program: its allocations, its parameters and results, and what LHLO says of them.

A program is a `func.func` with lhlo.program. A module whose only function is a kernel is a program too, of one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

from ..hlo.errors import Location, VerificationError
from ..hlo.ir import Literal
from ..hlo.records import dataclass
from ..hlo.shapes import Shape, tuple_shape
from ..planning.allocation import POOL_ALIGNMENT, USER_ALIGNMENT, Allocation, AllocationKind, BufferSlice
from .attributes import value_of
from .literals import literal_of
from .memrefs import shape_from_text, shape_of_memref
from .module import LhloModule
from .program import Places, programs, steps_of, uses_of
from .read import location_of

MOST_ALLOCATIONS = 1 << 20
"""The highest index of an allocation: indices that the text leaves out take memory, too."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A program's function and its interface.

    allocations: by index, without gaps. parameters, result: HLO shapes, tuples and tokens included. elsewhere: number
    of a result array → the slice that holds it at the end, for results without an allocation. Numbers of parameters and
    results count arrays, not tokens.
    dynamic: the frontend attributes that describe dynamic dimensions at the border; "" if there are none. file: the
    name in the locations of the program's instructions.
    """

    name: str
    function: ir.Operation
    places: Places
    allocations: tuple[Allocation, ...]
    parameters: tuple[Shape, ...]
    result: Shape
    elsewhere: Mapping[int, BufferSlice]
    dynamic: str
    file: str = "<lhlo>"


def entry_of(lhlo: LhloModule, file: str = "<lhlo>") -> Entry:
    """The interface of a module's program. Raises VerificationError, labelled ENTRY1 to ENTRY7, if it has none."""
    return entry_of_function(_function(lhlo, file), file)


def entry_of_function(function: ir.Operation, file: str = "<lhlo>") -> Entry:
    """The interface of a program. Raises VerificationError."""
    attributes = function.attributes
    places = Places(function)
    allocations = _allocations(function, places)
    named = attributes.get("lhlo.program")
    name = named.value if isinstance(named, ir.StringAttr) else attributes["sym_name"].value
    parameters = _shapes(function, "lhlo.parameters", _given(function, allocations))
    result = _shapes(function, "lhlo.result", _taken(function, allocations))
    whole = result[0] if "lhlo.result" in attributes or len(result) == 1 else tuple_shape(*result)
    rows = value_of(attributes["lhlo.elsewhere"]) if "lhlo.elsewhere" in attributes else ()
    elsewhere = {n: BufferSlice(*place) for n, *place in rows}
    dynamic = attributes["lhlo.dynamic"].value if "lhlo.dynamic" in attributes else ""
    entry = Entry(name, function, places, allocations, parameters, whole, elsewhere, dynamic, file)
    _check(entry)
    return entry


def _function(lhlo: LhloModule, file: str) -> ir.Operation:
    """ENTRY1: a module that is run holds one program, or one kernel and nothing else."""
    found = list(programs(lhlo))
    kernels = [f for f in (o.operation for o in lhlo.module.body.operations) if "lhlo.kernel" in f.attributes]
    if len(found) == 1:
        return found[0]
    if not found and len(kernels) == 1:
        return kernels[0]
    names = ", ".join(f.attributes["sym_name"].value for f in found or kernels) or "none"
    raise VerificationError(
        f"{len(found)} programs and {len(kernels)} kernels ({names}): which of them runs is not said [ENTRY1]",
        location=Location(1, 1, file),
        remedy="mark one func.func with lhlo.program, or keep one kernel",
    )


def broken(function: ir.Operation, label: str, message: str, remedy: str | None = None) -> VerificationError:
    return VerificationError(f"{message} [{label}]", location=location_of(function), remedy=remedy)


# --- allocations ----------------------------------------------------------------------------------------------------
def _allocations(function: ir.Operation, places: Places) -> tuple[Allocation, ...]:
    """ENTRY2: every allocation has its own index, at most MOST_ALLOCATIONS. ENTRY3: lhlo.kind is parameter, result or
    temporary.
    """
    kinds = _kinds(function, places)
    found: dict[int, Allocation] = {}
    counts = dict.fromkeys(AllocationKind, 0)
    for number, argument in enumerate(places.arguments):
        attributes, kind = places.given[number], kinds[number][0]
        index, shape = places.index_of(argument), shape_of_memref(str(argument.type))
        place = _integer(attributes, "lhlo.number", counts[kind]) if kind is not AllocationKind.TEMPORARY else -1
        counts[kind] += 1
        becomes = _integer(attributes, "lhlo.result", -1)
        if becomes < 0 and kinds[number][1]:  # read and written: a parameter in place of a result
            becomes = counts[AllocationKind.RESULT]
            counts[AllocationKind.RESULT] += 1
        least = USER_ALIGNMENT if kind is AllocationKind.PARAMETER else POOL_ALIGNMENT
        # no more than what every caller keeps to
        alignment = min(_integer(attributes, "lhlo.alignment", _natural(shape)), least)
        whole = None if kind is AllocationKind.TEMPORARY else shape
        new = Allocation(index, kind, shape.bytes, alignment, place, whole, None, becomes)
        if found.setdefault(index, new) is not new:
            raise broken(function, "ENTRY2", f"two arguments have lhlo.allocation = {index}", "number them apart")
    for symbol, index in places.globals():
        found[index] = _constant(function, symbol, index)
    if max(found, default=-1) > MOST_ALLOCATIONS:
        remedy = f"count from 0, to {MOST_ALLOCATIONS} at most"
        raise broken(function, "ENTRY2", f"an allocation has the index {max(found)}", remedy)
    for index in range(max(found, default=-1) + 1):  # an allocation that the text leaves out holds nothing
        found.setdefault(index, Allocation(index, AllocationKind.TEMPORARY, 0, 1))
    return tuple(found[n] for n in sorted(found))


def _natural(shape: Shape) -> int:
    return max(shape.dtype.component.bytes, 1)


def _integer(attributes: Mapping[str, Any], name: str, default: int) -> int:
    return int(value_of(attributes[name])) if name in attributes else default


def _kinds(function: ir.Operation, places: Places) -> list[tuple[AllocationKind, bool]]:
    """(kind, whether it is both parameter and result) of each argument.

    Without lhlo.kind, an argument that nothing writes is a parameter; one that is read before it is written is a
    parameter that becomes a result; any other is a result.
    """
    block = function.regions[0].blocks[0]
    uses = dict.fromkeys(places.arguments, "")
    for op in steps_of(block):
        for value, written in uses_of(op):
            while not isinstance(value, ir.BlockArgument):
                if value.owner.operation.name != "lhlo.view":
                    break
                value = value.owner.operation.operands[0]
            else:
                access = "w" if written else "r"
                uses[value] += access if access not in uses[value] else ""
    found = []
    for argument, attributes in zip(places.arguments, places.given, strict=True):
        text = value_of(attributes["lhlo.kind"]) if "lhlo.kind" in attributes else None
        if text is None:
            kind, both = _by_use(uses[argument], "lhlo.scratch" in attributes)
        elif text in ("parameter", "result", "temporary"):
            kind, both = AllocationKind(text), False
        else:
            raise broken(function, "ENTRY3", f"lhlo.kind = {text!r}", "write parameter, result or temporary")
        found.append((kind, both))
    return found


def _by_use(uses: str, scratch: bool) -> tuple[AllocationKind, bool]:
    """uses: the letters r and w in the order in which they first occur."""
    if scratch:
        return AllocationKind.TEMPORARY, False
    if "w" not in uses:
        return AllocationKind.PARAMETER, False
    return (AllocationKind.PARAMETER, True) if uses[0] == "r" else (AllocationKind.RESULT, False)


def _constant(function: ir.Operation, symbol: str, index: int) -> Allocation:
    found = ir.SymbolTable(function.parent)[symbol].attributes
    shape = shape_of_memref(str(ir.TypeAttr(found["type"]).value))
    literal: Literal = literal_of(found["initial_value"], shape)
    alignment = min(found["alignment"].value, POOL_ALIGNMENT) if "alignment" in found else POOL_ALIGNMENT
    return Allocation(index, AllocationKind.CONSTANT, shape.bytes, alignment, -1, shape, literal)


# --- parameters and results -----------------------------------------------------------------------------------------
def _given(function: ir.Operation, allocations: tuple[Allocation, ...]) -> dict[int, Allocation]:
    leaves = [(a.number, a) for a in allocations if a.kind is AllocationKind.PARAMETER]
    return _one_each(function, "parameter", leaves)


def _taken(function: ir.Operation, allocations: tuple[Allocation, ...]) -> dict[int, Allocation]:
    leaves = [(a.number, a) for a in allocations if a.kind is AllocationKind.RESULT]
    return _one_each(function, "result", leaves + [(a.result, a) for a in allocations if a.result >= 0])


def _one_each(function: ir.Operation, what: str, leaves: list[tuple[int, Allocation]]) -> dict[int, Allocation]:
    """ENTRY7: no two arguments are the same leaf."""
    found: dict[int, Allocation] = {}
    for number, allocation in leaves:
        if found.setdefault(number, allocation) is not allocation:
            raise broken(function, "ENTRY7", f"two arguments are {what} leaf {number}", "number them apart")
    return found


def _shapes(function: ir.Operation, name: str, leaves: Mapping[int, Allocation]) -> tuple[Shape, ...]:
    """ENTRY4: parameters and results are numbered from 0 without gaps, unless lhlo.parameters or lhlo.result give
    their shapes.
    """
    text = value_of(function.attributes[name]) if name in function.attributes else None
    if text is not None:
        try:
            return tuple(map(shape_from_text, text if isinstance(text, tuple) else (text,)))
        except (VerificationError, TypeError) as error:
            raise broken(function, "ENTRY4", f"{name}: {error}", "write HLO shapes") from None
    if sorted(leaves) != list(range(len(leaves))):
        what = name.removeprefix("lhlo.")
        raise broken(function, "ENTRY4", f"its {what} leaves have the numbers {sorted(leaves)}", "count from 0")
    shapes = [leaves[n].shape for n in sorted(leaves)]
    return tuple(s for s in shapes if s is not None)


def _check(entry: Entry) -> None:
    """ENTRY5: the shapes of lhlo.parameters and lhlo.result are those of the arguments. ENTRY6: every result leaf is an
    argument, or lhlo.elsewhere names its slice of an allocation.
    """
    given, taken = _given(entry.function, entry.allocations), _taken(entry.function, entry.allocations)
    parameters = [s for shape in entry.parameters for _, s in shape.leaves() if s.is_array]
    results = [s for _, s in entry.result.leaves() if s.is_array]
    for what, leaves, held in (("parameter", parameters, given), ("result", results, taken)):
        for number, allocation in held.items():
            if allocation.shape is None or not 0 <= number < len(leaves):
                raise broken(entry.function, "ENTRY5", f"there is no {what} leaf {number}")
            if not same_bytes(leaves[number], allocation.shape):
                message = f"{what} leaf {number} is {leaves[number]}, its argument {allocation.shape}"
                raise broken(entry.function, "ENTRY5", message, "write the same shape twice")
    for number, shape in enumerate(results):
        place = entry.elsewhere.get(number)
        if number in taken or (place is None and not shape.bytes):
            continue
        sizes = {a.index: a.size for a in entry.allocations}
        if place is None or place.size != shape.bytes or place.offset + place.size > sizes.get(place.allocation, -1):
            raise broken(
                entry.function,
                "ENTRY6",
                f"result leaf {number} ({shape}) is in no argument and lhlo.elsewhere says {place or 'nothing'} of it",
                "add lhlo.elsewhere = [array<i64: leaf, allocation, offset, size>]",
            )


def same_bytes(a: Shape, b: Shape) -> bool:
    """Whether the arrays of two shapes have the same elements in the same places."""
    return (a.dtype, a.dims, a.strides) == (b.dtype, b.dims, b.strides)
