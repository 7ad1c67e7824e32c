"""What a kernel tells LLVM of its memory: which array each load and store is of, and what it never writes.

Loop hints are in builder.py, attributes of arguments in kernel.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from llvmlite import ir
from llvmlite.ir.instructions import AllocaInstr, GEPInstr, LoadInstr, StoreInstr


def annotate(function: ir.Function, written: Sequence[bool], kinds: Collection[str]) -> None:
    """Add metadata to the loads and stores of a complete function. written: of the arguments that are arrays, which it
    writes; kinds: those of codegen/metadata.py.
    """
    arrays = list(zip(function.args, written, strict=False))
    constant = {id(array) for array, is_written in arrays if not is_written} if "invariant" in kinds else set()
    scopes = _Scopes(function, [array for array, _ in arrays]) if "scopes" in kinds and len(arrays) > 1 else None
    if not constant and scopes is None:
        return
    for instruction, address in _accesses(function):
        base = _base(address)
        if isinstance(instruction, LoadInstr) and id(base) in constant:
            instruction.set_metadata("invariant.load", function.module.add_metadata([]))
        if scopes is not None and base is not None:
            scopes.mark(instruction, base)


def _accesses(function: ir.Function) -> Iterator[tuple[ir.Instruction, ir.Value]]:
    """Loads and stores with their addresses."""
    for block in function.blocks:
        for instruction in block.instructions:
            if isinstance(instruction, LoadInstr):
                yield instruction, instruction.operands[0]
            elif isinstance(instruction, StoreInstr):
                yield instruction, instruction.operands[1]


def _base(address: ir.Value) -> ir.Value | None:
    """The argument, stack array or constant of which an address is a part; None if that depends on the path."""
    while isinstance(address, GEPInstr):
        address = address.pointer
    return address if isinstance(address, (ir.Argument, AllocaInstr, ir.GlobalVariable)) else None


class _Scopes:
    """A scope for each array of a function, in one domain. Arrays of one allocation do not overlap either."""

    def __init__(self, function: ir.Function, arrays: Sequence[ir.Value]):
        self.module = function.module
        domain = self._distinct()
        scopes = {id(array): self._distinct(domain) for array in arrays}
        self.of = {array: self._node(scope) for array, scope in scopes.items()}
        self.others = {
            array: self._node(*(scope for other, scope in scopes.items() if other != array)) for array in scopes
        }
        self.all = self._node(*scopes.values())

    def _node(self, *operands: ir.MDValue) -> ir.MDValue:
        """A node. Module.add_metadata, which looks for an equal one, never returns for nodes that hold themselves."""
        return ir.MDValue(self.module, operands, name=str(len(self.module.metadata)))

    def _distinct(self, *operands: ir.MDValue) -> ir.MDValue:
        """A node that is its own first operand, so that it equals no other."""
        made = self._node()
        made.operands = (made, *operands)
        return made

    def mark(self, instruction: ir.Instruction, base: ir.Value) -> None:
        if id(base) in self.of:
            instruction.set_metadata("alias.scope", self.of[id(base)])
        instruction.set_metadata("noalias", self.others.get(id(base), self.all))
