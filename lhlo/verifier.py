"""Checks an LHLO module beyond what IRDL checks. CHECKS maps each op name that LHLO allows to its check.

A broken rule raises VerificationError with the rule's label, the location in the LHLO text and usually a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlir import ir

from ..hlo.errors import Location, TestbedError, VerificationError
from ..planning.scratch import scratch_bytes
from .hlo_rules import check_instruction
from .module import LhloModule
from .profile_rules import MARKS, check_intervals, check_mark, check_profiler
from .program import memory_arguments
from .read import Kernel, argument_attributes, kernels, location_of
from .structure import broken, check_block_end, check_memref, check_op, check_own_attributes, sole_block
from .table import OPCODE
from .to_hlo import Reader

Check = Callable[[ir.Operation], None]


def verify(lhlo: LhloModule, file: str = "<lhlo>") -> None:
    """Check a module. Raises VerificationError for the first broken rule."""
    place = Location(1, 1, file)
    try:
        for op in lhlo.module.body.operations:
            place = location_of(op.operation) or place
            check_top(op.operation)
        for kernel in kernels(lhlo):
            place = location_of(kernel.op) or place
            check_kernel_values(kernel)
    except TestbedError as error:
        at = error.location or place
        raise VerificationError(
            error.message, location=Location(at.line, at.column, file), remedy=error.remedy
        ) from None


def check_top(op: ir.Operation) -> None:
    """TOP1: a module holds only functions and globals."""
    if op.name not in ("func.func", "memref.global"):
        broken(op, "TOP1", f"{op.name} cannot stand at the top of an LHLO module", "put it into a func.func")
    CHECKS[op.name](op)


def _is_text(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.StringAttr)


def _is_unit(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.UnitAttr)


def _is_number(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.IntegerAttr) and -1 <= attribute.value < 2**31


def _is_index(attribute: ir.Attribute) -> bool:
    return _is_number(attribute) and attribute.value >= 0


def _are_texts(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.ArrayAttr) and all(map(_is_text, attribute))


def _are_places(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.ArrayAttr) and all(
        isinstance(a, ir.DenseI64ArrayAttr) and len(a) == 4 and min(a) >= 0 for a in attribute
    )


Kinds = dict[str, tuple[Callable[[ir.Attribute], bool], str]]
"""Name of an attribute → whether it has the right kind, and that kind in words."""

FUNCTION: Kinds = {
    "lhlo.kernel": (_is_unit, "no value"),
    "lhlo.program": (lambda a: _is_unit(a) or _is_text(a), "a string or no value"),
    "lhlo.parameters": (_are_texts, "a list of strings"),
    "lhlo.result": (_is_text, "a string"),
    "lhlo.elsewhere": (_are_places, "a list of array<i64: leaf, allocation, offset, size>"),
    "lhlo.dynamic": (_is_text, "a string"),
}
ARGUMENT: Kinds = {
    "lhlo.alignment": (lambda _: True, "a power of two"),  # FUNC3
    "lhlo.slice": (lambda _: True, "three integers"),
    "lhlo.written": (_is_unit, "no value"),
    "lhlo.scratch": (_is_unit, "no value"),
    "lhlo.allocation": (_is_index, "a number from 0"),
    "lhlo.kind": (_is_text, "a string"),
    "lhlo.number": (_is_number, "a number from 0"),
    "lhlo.result": (_is_number, "a number from 0"),
}


def check_kinds(op: ir.Operation, given: Mapping[str, ir.Attribute], kinds: Kinds) -> None:
    for name, attribute in given.items():
        if name.startswith("lhlo.") and name not in kinds:
            broken(op, "FUNC5", f"{name} is no attribute of LHLO here", f"choose from {', '.join(kinds)}")
        if name in kinds and not kinds[name][0](attribute):
            broken(op, "FUNC5", f"{name} = {attribute}", f"give it {kinds[name][1]}")


def check_function(op: ir.Operation) -> None:
    """FUNC1: one block, no results. FUNC2: arguments are memrefs of HLO arrays. FUNC3: lhlo.alignment is a power of
    two; lhlo.slice is three integers >= 0. FUNC4: the size in lhlo.slice is that of the argument. FUNC5: the
    attributes of a function and its arguments that begin with lhlo. are those of docs/lhlo.md, of the right kinds.
    """
    block = sole_block(op, 0, "FUNC1")
    if len(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).results):
        broken(op, "FUNC1", "an LHLO function has no results", "write results into memref arguments")
    check_profiler(op)
    shapes = [check_memref(op, argument.type, "FUNC2") for argument in memory_arguments(op)]
    check_kinds(op, dict(op.attributes.items()), FUNCTION)
    for shape, given in zip(shapes, argument_attributes(op, len(block.arguments))):
        check_kinds(op, given, ARGUMENT)
        alignment, place = given.get("lhlo.alignment"), given.get("lhlo.slice")
        if alignment is not None and not (
            isinstance(alignment, ir.IntegerAttr) and alignment.value.bit_count() == 1 and alignment.value > 0
        ):
            broken(op, "FUNC3", f"lhlo.alignment = {alignment} is no power of two")
        if place is not None and not (isinstance(place, ir.DenseI64ArrayAttr) and len(place) == 3 and min(place) >= 0):
            broken(op, "FUNC3", f"lhlo.slice = {place} is not array<i64: allocation, offset, size>")
        if place is not None and place[2] != shape.bytes:
            broken(op, "FUNC4", f"lhlo.slice has {place[2]} bytes, its argument {shape} has {shape.bytes}")
    check_steps(block)
    check_intervals(op)


def check_steps(block: ir.Block) -> None:
    """OP1: only LHLO ops, and the ops of memref and func that docs/lhlo.md names, are allowed. ATTR1: LHLO's own
    attributes have their kinds.
    """
    for view in block.operations:
        op = view.operation
        check = CHECKS.get(op.name)
        if check is None:
            broken(op, "OP1", f"{op.name} has no place in LHLO", "docs/lhlo.md lists the ops")
        if op.name != "memref.get_global":  # its name is MLIR's own: the symbol of the global
            check_own_attributes(op)
        check(op)


def check_view(op: ir.Operation) -> None:
    """VIEW1: both sides are memrefs of HLO arrays. VIEW2: offset >= 0, and the viewed bytes are inside the source."""
    source = check_memref(op, op.operands[0].type, "VIEW1")
    result = check_memref(op, op.results[0].type, "VIEW1")
    offset = op.attributes.get("offset")
    start = offset.value if isinstance(offset, ir.IntegerAttr) else 0 if offset is None else -1
    if start < 0 or start + result.bytes > source.bytes:
        broken(
            op,
            "VIEW2",
            f"{result.bytes} bytes at {start} do not lie inside the {source.bytes} bytes of {op.operands[0].type}",
        )


def check_while(op: ir.Operation) -> None:
    """WHILE1: the operand is memref<i1>. WHILE2: both regions hold steps. WHILE3: trip_count is an integer >= 0."""
    if str(op.operands[0].type) != "memref<i1>":
        broken(op, "WHILE1", f"the predicate has type {op.operands[0].type}", "it must be memref<i1>")
    count = op.attributes.get("trip_count")
    if count is not None and not (isinstance(count, ir.IntegerAttr) and count.value >= 0):
        broken(op, "WHILE3", f"trip_count = {count} is no count")
    for region in range(2):
        check_region_of_steps(op, region, "WHILE2")


def check_case(op: ir.Operation) -> None:
    """CASE1: the operand is memref<i1> or memref<i32>. CASE2: the region holds only lhlo.branch ops, two for i1."""
    if str(op.operands[0].type) not in ("memref<i1>", "memref<i32>"):
        broken(op, "CASE1", f"the selector has type {op.operands[0].type}", "it must be memref<i1> or memref<i32>")
    block = sole_block(op, 0, "CASE2")
    check_block_end(op, block, "CASE2")
    branches = [b.operation for b in block.operations][:-1]
    wanted = 2 if str(op.operands[0].type) == "memref<i1>" else None
    if not branches or any(b.name != "lhlo.branch" for b in branches) or len(branches) != (wanted or len(branches)):
        broken(
            op,
            "CASE2",
            f"its region holds {', '.join(b.name for b in branches) or 'nothing'}",
            f"write {'two' if wanted else 'one or more'} lhlo.branch ops",
        )
    for branch in branches:
        check_own_attributes(branch)
        check_region_of_steps(branch, 0, "CASE2")


def check_region_of_steps(op: ir.Operation, region: int, label: str) -> None:
    block = sole_block(op, region, label)
    if len(block.arguments):
        broken(op, label, "regions of steps take no arguments", "use the views of the function")
    check_block_end(op, block, label)
    check_steps(block)


def check_stray_branch(op: ir.Operation) -> None:
    """CASE3: lhlo.branch is allowed only inside lhlo.case."""
    broken(op, "CASE3", "lhlo.branch outside lhlo.case")


def check_stray_alloca(op: ir.Operation) -> None:
    """ALLOC1: temporaries are allowed only in bodies of fusions; a program gets its memory from the caller."""
    broken(op, "ALLOC1", "memref.alloca outside a fusion", "take a memref argument, or a view of one")


def check_step(op: ir.Operation) -> None:
    """Check the structure of an op in a function; check HLO's rules too, unless the kernel is checked as a whole."""
    check_op(op, step=True)
    needed = 0
    if "lhlo.kernel" not in op.parent.attributes:
        instruction = Reader().step(op)
        check_instruction(instruction)
        needed = scratch_bytes(instruction)
    check_step_scratch(op, needed)


def check_step_scratch(op: ir.Operation, needed: int) -> None:
    """SCRATCH1: scratch is three integers >= 0 that name a slice at least as large as the kernel's scratch memory."""
    place = op.attributes.get("scratch")
    if place is None and not needed:
        return
    if not (isinstance(place, ir.DenseI64ArrayAttr) and len(place) == 3 and min(place) >= 0 and place[2] >= needed):
        broken(
            op,
            "SCRATCH1",
            f"its kernel needs {needed} bytes of scratch memory, has scratch = {place}",
            "add scratch = array<i64: allocation, offset, bytes>",
        )


def check_kernel_values(kernel: Kernel) -> None:
    """Check HLO's rules for the one op of a kernel. KERNEL1: views inside a kernel have no offset.

    SCRATCH2: if the op needs scratch memory, the last argument, and no other, has lhlo.scratch. It is a memref<…xi8>
    that no operand or result uses, is aligned to 64 bytes, and has at least as many bytes as the op needs.
    """
    for view in kernel.views:
        if "offset" in view.attributes:
            broken(view, "KERNEL1", "a view inside a kernel has an offset", "pass the place as an argument of its own")
    request = Reader().kernel(kernel)
    check_instruction(request.instruction)
    needed, number = scratch_bytes(request.instruction), request.scratch
    marked = sum("lhlo.scratch" in given for given in kernel.argument_attributes)
    if number < 0 and not needed:
        return
    argument = request.arguments[number]
    fits = number == len(request.arguments) - 1 and argument.slice.size >= needed and argument.alignment >= 64
    used = number in request.operands or number in request.results
    if marked != 1 or not fits or used or not str(kernel.arguments[number].type).endswith("xi8>"):
        broken(
            kernel.op,
            "SCRATCH2",
            f"its kernel needs {needed} bytes of scratch memory",
            f"add a last argument memref<{needed}xi8> with lhlo.scratch, lhlo.written and lhlo.alignment = 64 : i64",
        )


def check_copy(op: ir.Operation) -> None:
    """COPY1: source and target have the same type, a memref of an HLO array."""
    if op.operands[0].type != op.operands[1].type:
        broken(op, "COPY1", f"copies {op.operands[0].type} to {op.operands[1].type}")
    check_memref(op, op.operands[0].type, "COPY1")


def check_global(op: ir.Operation) -> None:
    """GLOBAL1: a global has a dense value and the type of an HLO array."""
    check_memref(op, ir.TypeAttr(op.attributes["type"]).value, "GLOBAL1")
    if "initial_value" not in op.attributes or not isinstance(op.attributes["initial_value"], ir.DenseElementsAttr):
        broken(op, "GLOBAL1", "a global needs a dense value")


def check_nothing(op: ir.Operation) -> None:
    """No check: MLIR's own verifier covers this op."""


CHECKS: dict[str, Check] = {
    "func.func": check_function,
    "func.return": check_nothing,
    "memref.global": check_global,
    "memref.get_global": check_nothing,
    "memref.copy": check_copy,
    "memref.alloca": check_stray_alloca,
    "vector.yield": check_nothing,
    "lhlo.view": check_view,
    "lhlo.while": check_while,
    "lhlo.case": check_case,
    "lhlo.branch": check_stray_branch,
    **dict.fromkeys(MARKS, check_mark),
    **dict.fromkeys(OPCODE, check_step),
}
