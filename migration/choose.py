"""Kernel request → stack, by the flags; and the table of stacks, imported when one is first asked for."""

from __future__ import annotations

from importlib import import_module

from ..backends.base import EmitFor, Emitter
from ..hlo.dtypes import DType
from ..hlo.ir import Instruction
from ..hlo.library.calls import LIBRARY
from ..hlo.opcodes import Op
from ..planning.plan import KernelRequest
from .flags import DEFAULT, Flags

STACKS: dict[str, str] = {"legacy": "..legacy", "mlir": "..mlir_emitters", "library": "..codegen.library"}
"""Name in flags → room. A stack offers `emit(requests, options)` and `unsupported(requests)`. No flag names `library`:
what a library computes is its kernel on every stack.
"""

STRUCTURE = frozenset({Op.PARAMETER, Op.CONSTANT, Op.TUPLE, Op.GET_TUPLE_ELEMENT})
"""Ops of a fusion's body that need no emitter of their own, so no rule is asked."""


def choose(flags: Flags, request: KernelRequest) -> str:
    """An unnested op goes where its rule says, unless a library computes it; a reduce's or sort's region goes with it.

    A fusion goes to a stack only if all of its ops do; a mixed one stays on the old stack.
    """
    instruction = request.instruction
    if instruction.opcode in LIBRARY:
        return "library"
    stacks = {flags.stack_of(i.opcode, dtypes_of(i)) for i in _members(request)}
    if not stacks:
        stacks = {flags.stack_of(instruction.opcode, dtypes_of(instruction))}
    return stacks.pop() if len(stacks) == 1 else DEFAULT


def _members(request: KernelRequest) -> list[Instruction]:
    if request.body is None:
        return [request.instruction]
    return [i for i in request.body.instructions if i.opcode not in STRUCTURE]


def dtypes_of(instruction: Instruction) -> frozenset[DType]:
    """Element types of the result's leaves and of the operands."""
    shapes = (instruction.shape, *(o.shape for o in instruction.operands))
    return frozenset(leaf.dtype for shape in shapes for _, leaf in shape.leaves())


def emitter(name: str) -> Emitter:
    """A stack by name."""
    room = import_module(STACKS[name], __package__)
    return Emitter(name, room.emit, room.unsupported)


def emit_for(flags: Flags) -> EmitFor:
    """The choice as the back end wants it; stacks that nothing goes to are never imported."""
    loaded: dict[str, Emitter] = {}

    def choose_emitter(request: KernelRequest) -> Emitter:
        name = choose(flags, request)
        if name not in loaded:
            loaded[name] = emitter(name)
        return loaded[name]

    return choose_emitter
