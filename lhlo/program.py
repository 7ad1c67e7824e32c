"""Reads programs: which op runs as which kernel, and where a program's memrefs are in memory."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from ..hlo.errors import VerificationError
from ..planning.plan import BufferSlice
from .attributes import value_of
from .module import LhloModule
from .read import argument_attributes, location_of
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


def program_kernels(function: ir.Operation) -> dict[str, ir.Operation]:
    """Kernel symbol → the first op in text order that runs as this kernel."""
    found: dict[str, ir.Operation] = {}
    for op in steps_of(function.regions[0].blocks[0]):
        if op.name in OPCODE:
            name = op.attributes["kernel"].value if "kernel" in op.attributes else f"kernel_{len(found)}"
            found.setdefault(name, op)
    return found


def steps_of(block: ir.Block) -> Iterator[ir.Operation]:
    """The ops of a program. Regions of loops and branches are entered; bodies of fusions are not."""
    for view in block.operations:
        op = view.operation
        yield op
        if op.name in CONTROL:
            for region in op.regions:
                yield from steps_of(region.blocks[0])


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
        self.alignments: dict[int, int] = {}

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
            given = self.given[value.arg_number]
            number = self.index_of(value)
            self.alignments[number] = value_of(given["lhlo.alignment"]) if "lhlo.alignment" in given else 1
            return number
        op = value.owner.operation
        symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value if op.name == "memref.get_global" else ""
        if not symbol.removeprefix(_CONSTANT).isdecimal():
            raise VerificationError(
                f"'{symbol or op.name}' is no memory of a program",
                location=location_of(self.function),
                remedy="use arguments, views of them, and globals named constant_<allocation>",
            )
        number = int(symbol.removeprefix(_CONSTANT))
        self.alignments[number] = self._global_alignment(symbol)
        return number

    def scratch(self, place: tuple[int, int, int]) -> BufferSlice:
        """The slice that the `scratch` attribute of an op names."""
        for number, given in enumerate(self.given):
            if (value_of(given["lhlo.allocation"]) if "lhlo.allocation" in given else number) == place[0]:
                self._allocation(self.arguments[number])
                return BufferSlice(*place)
        raise VerificationError(
            f"scratch memory lies in allocation {place[0]}, which is no argument of the program",
            location=location_of(self.function),
            remedy="name one of the arguments by its lhlo.allocation",
        )

    def _global_alignment(self, symbol: str) -> int:
        found = ir.SymbolTable(self.function.parent)[symbol].attributes
        return found["alignment"].value if "alignment" in found else 1

    def alignment(self, place: BufferSlice) -> int:
        """The alignment of a slice's address, in bytes."""
        return place.alignment(self.alignments[place.allocation])
