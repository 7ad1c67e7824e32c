"""Buffer assignment, as XLA prints it → where each value lies, and which operands a kernel overwrites there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..hlo.errors import InputError
from ..hlo.ir import Instruction, Module
from ..hlo.opclasses import branches, control_computations
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..hlo.shapes import ShapeIndex
from .kernels import REMAKE, read_text

Slice = tuple[int, int, int]
"""Number of an allocation, offset and size in bytes."""

Slices = Mapping[tuple[str, ShapeIndex], Slice]

_ALLOCATION = re.compile(r"allocation (\d+): size \d+")
_VALUE = re.compile(
    r" *value: <\d+ (?P<name>[^ {]+)(?:\{(?P<index>[\d,]*)\})? (?:\(phi\) )?@\d+>"
    r" \(size=(?P<size>\d+),offset=(?P<at>\d+)\)"
)


def read_slices(path: Path) -> Slices:
    """The slice of each value. Raises InputError for a text of another form."""
    found: dict[tuple[str, ShapeIndex], Slice] = {}
    allocation = -1
    for line in read_text(path).splitlines():
        if header := _ALLOCATION.match(line):
            allocation = int(header[1])
        elif value := _VALUE.match(line):
            index = tuple(map(int, value["index"].split(","))) if value["index"] else ()
            found[value["name"], index] = (allocation, int(value["at"]), int(value["size"]))
        elif line.startswith("Total bytes"):
            break
    if not found:
        raise InputError(f"{path}: no buffer assignment of XLA", remedy=REMAKE)
    return found


@dataclass(frozen=True, eq=False)
class Places:
    """Where the values of a module lie. passed: parameter of a loop's or branch's computation → what it is given."""

    slices: Slices
    passed: Mapping[Instruction, Instruction]

    @staticmethod
    def of(module: Module, slices: Slices) -> Places:
        passed: dict[Instruction, Instruction] = {}
        for computation in control_computations(module):
            for i in computation.instructions:
                passed.update(_passed(i))
        return Places(slices, passed)

    def slice_of(self, i: Instruction, index: ShapeIndex) -> Slice | None:
        """Where a leaf of a value lies; None if the text does not say. What a loop leaves as it is has one place."""
        while (i.name, index) not in self.slices:
            if i.opcode is Op.GET_TUPLE_ELEMENT:
                i, index = i.operands[0], (i.attributes["index"], *index)
            elif i.opcode is Op.TUPLE and index:
                i, index = i.operands[index[0]], index[1:]
            elif i.opcode in (Op.BITCAST, Op.OPT_BARRIER, Op.ADD_DEPENDENCY, Op.WHILE):
                i = i.operands[0]
            elif i.opcode is Op.CALL:
                i = i.called()[0].root
            elif i in self.passed:
                i = self.passed[i]
            else:
                return None
        return self.slices[i.name, index]

    def overwritten(self, i: Instruction) -> tuple[tuple[int, ShapeIndex], ...] | str:
        """(operand, index of the result) pairs that share a slice: the kernel was compiled for that. A text says which
        value has no place.
        """
        places = {index: self.slice_of(i, index) for index, leaf in i.shape.leaves() if leaf.is_array and leaf.size}
        sources = [(n, o, self.slice_of(o, ())) for n, o in enumerate(i.operands) if o.shape.is_array and o.shape.size]
        for name, at in (*((i.name, at) for at in places.values()), *((o.name, at) for _, o, at in sources)):
            if at is None:
                return f"the buffer assignment has no place for {name}"
        return tuple((n, index) for n, _, at in sources for index, place in places.items() if at == place)


def _passed(i: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
    if i.opcode is Op.WHILE:
        yield from ((called.parameters[0], i.operands[0]) for called in i.called())
    elif i.opcode is Op.CONDITIONAL:
        yield from ((b.parameters[0], i.operands[n + 1]) for n, b in enumerate(branches(i)) if b.parameters)
    elif i.opcode is Op.CALL:
        yield from zip(i.called()[0].parameters, i.operands)
