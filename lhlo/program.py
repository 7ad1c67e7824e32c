"""Reads programs: their steps, what each reads and writes, and where a program's memrefs are in memory."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from ..hlo.errors import VerificationError
from ..planning.plan import BufferSlice
from .attributes import value_of
from .module import LhloModule
from .read import argument_attributes, location_of, operands, output_count
from .table import OPCODE

_CONSTANT = "constant_"

CONTROL = ("lhlo.while", "lhlo.case", "lhlo.branch")
"""The ops with steps in their regions."""

PROFILER = "!lhlo.profiler"
"""The type of the argument that profile_start and profile_end note their times in."""


def programs(lhlo: LhloModule) -> Iterator[ir.Operation]:
    """The functions that are programs (they have lhlo.program)."""
    for op in lhlo.module.body.operations:
        if op.operation.name == "func.func" and "lhlo.program" in op.operation.attributes:
            yield op.operation


def steps_of(block: ir.Block) -> Iterator[ir.Operation]:
    """The ops of a program. Regions of loops and branches are entered; bodies of fusions are not."""
    for view in block.operations:
        op = view.operation
        yield op
        if op.name in CONTROL:
            for region in op.regions:
                yield from steps_of(region.blocks[0])


def uses_of(op: ir.Operation) -> Iterator[tuple[ir.Value, bool]]:
    """(memref, whether it is written) of a step's memrefs, those that it reads first.

    A loop or conditional reads its predicate or selector; the steps inside it, and scratch memory, are left out.
    """
    if op.name == "memref.copy":
        yield from ((op.operands[0], False), (op.operands[1], True))
    elif op.name in OPCODE:
        values = operands(op)
        first = len(values) - output_count(op)
        yield from ((value, number >= first) for number, value in enumerate(values))
    elif op.name in ("lhlo.while", "lhlo.case"):
        yield op.operands[0], False


def memory_arguments(function: ir.Operation) -> list[ir.BlockArgument]:
    """The arguments that are memory: all but the profiler, which is the last one."""
    return [a for a in function.regions[0].blocks[0].arguments if str(a.type) != PROFILER]


def profiler_of(function: ir.Operation) -> ir.BlockArgument | None:
    """The argument that is the profiler; None if the function takes none."""
    return next((a for a in function.regions[0].blocks[0].arguments if str(a.type) == PROFILER), None)


class Places:
    """Maps each memref of a program to its allocation and offset, through views, arguments and globals."""

    def __init__(self, function: ir.Operation):
        self.function, self.arguments = function, memory_arguments(function)
        self.given = argument_attributes(function, len(self.arguments))[: len(self.arguments)]

    def slice_of(self, value: ir.Value, size: int) -> BufferSlice:
        """The slice of `size` bytes at the start of a memref."""
        offset = 0
        while not isinstance(value, ir.BlockArgument) and (op := value.owner.operation).name == "lhlo.view":
            offset += op.attributes["offset"].value if "offset" in op.attributes else 0
            value = op.operands[0]
        return BufferSlice(self._allocation(value), offset, size)

    def index_of(self, argument: ir.BlockArgument) -> int:
        """The index of the allocation that an argument is."""
        given = self.given[argument.arg_number]
        return value_of(given["lhlo.allocation"]) if "lhlo.allocation" in given else argument.arg_number

    def globals(self) -> Iterator[tuple[str, int]]:
        """(symbol, index of the allocation) of each global that the program reads."""
        for op in self.function.regions[0].blocks[0].operations:
            if op.operation.name == "memref.get_global":
                yield (
                    ir.FlatSymbolRefAttr(op.operation.attributes["name"]).value,
                    self._allocation(op.operation.results[0]),
                )

    def _allocation(self, value: ir.Value) -> int:
        if isinstance(value, ir.BlockArgument):
            return self.index_of(value)
        op = value.owner.operation
        symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value if op.name == "memref.get_global" else ""
        if not symbol.removeprefix(_CONSTANT).isdecimal():
            raise VerificationError(
                f"'{symbol or op.name}' is no memory of a program",
                location=location_of(self.function),
                remedy="use arguments, views of them, and globals named constant_<allocation>",
            )
        return int(symbol.removeprefix(_CONSTANT))
