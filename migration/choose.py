"""Chooses the stack of a kernel request by the flags. ROOMS names their rooms, imported on first use."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from ..backends.base import EmitFor, Emitter
from ..hlo.dtypes import DType
from ..hlo.ir import Instruction
from ..hlo.library.calls import LIBRARY, is_foreign, is_sealed
from ..hlo.opcodes import Op
from ..hlo.records import replace
from ..planning.plan import KernelRequest
from .flags import OLD, SHADOW, STACK_NAMES, XLA_SHADOWS, XLA_STACKS, FlagError, Flags
from .names import HOST
from .units import pairs_of

ROOMS: dict[str, str] = {
    "legacy": "..legacy",
    "mlir": "..mlir_emitters",
    "library": "..codegen.library",
    "c": "..backends.c",
    "ffi": "..ffi",
}
"""Name → room. A stack offers `emit(requests, options)` and `unsupported(requests)`. No flag names the last two: a
call of a library, or of a handler, is the same kernel on every stack.
"""

STRUCTURE = frozenset({Op.PARAMETER, Op.CONSTANT, Op.TUPLE, Op.GET_TUPLE_ELEMENT})
"""Ops of a fusion's body that no stack emits by themselves, so the flags do not apply to them."""


def choose(flags: Flags, request: KernelRequest, platform: str = HOST) -> str:
    """The stack of a request on a platform. An unnested op follows the flags unless a library computes it; its region
    follows the op.

    A fusion uses a stack only if all ops of its body do. If they differ, it uses the legacy stack; it is in shadow if
    some of its ops are and none is on legacy alone. A sealed kernel is XLA's; one that XLA has no code for, or not all
    of whose ops are XLA's by the flags, is as if these named no stack of XLA's.
    """
    instruction = request.instruction
    if is_sealed(instruction):
        return flags.xla
    if instruction.opcode in LIBRARY:
        return "ffi" if is_foreign(instruction) else "library"
    stacks = stacks_of(flags, instruction, platform) - {flags.xla} or {OLD}
    if len(stacks) == 1:
        return stacks.pop()
    return SHADOW if stacks == {SHADOW, "mlir"} else OLD


def pair_of(flags: Flags, request: KernelRequest) -> tuple[str, str]:
    """The stacks of a request that runs on two: whose results count, and whose are compared with them."""
    return XLA_SHADOWS.get(choose(flags, request), (OLD, STACK_NAMES[1]))


def stacks_of(flags: Flags, instruction: Instruction, platform: str = HOST) -> set[str]:
    """The stacks that the flags give to an unnested op, or to the ops of a fusion's body."""
    members = _members(instruction) or [instruction]
    return {flags.stack_of(i.opcode, dtypes_of(i), platform) for i in members}


def _members(instruction: Instruction) -> list[Instruction]:
    if instruction.opcode is not Op.FUSION:
        return [instruction]
    return [i for i in instruction.called()[0].instructions if i.opcode not in STRUCTURE]


def needs(request: KernelRequest) -> tuple[str, ...]:
    """The rows of the ledger that a kernel needs, sorted; none if a library computes it."""
    if request.instruction.opcode in LIBRARY:
        return ()
    pairs = {pair for i in _members(request.instruction) for pair in pairs_of(i.opcode, dtypes_of(i))}
    return tuple(sorted(f"{unit}.{name}.{HOST}" for unit, name in pairs))


def dtypes_of(instruction: Instruction) -> frozenset[DType]:
    """Element types of an instruction's operands and of the leaves of its result."""
    shapes = (instruction.shape, *(o.shape for o in instruction.operands))
    return frozenset(leaf.dtype for shape in shapes for _, leaf in shape.leaves())


def present() -> tuple[str, ...]:
    """The stacks that flags may name and whose rooms this package has: legacy/ may be removed one day."""
    return tuple(name for name in STACK_NAMES if name in ROOMS and find_spec(ROOMS[name], __package__) is not None)


def emitter(name: str) -> Emitter:
    """A stack by its name in ROOMS. Raises FlagError if its room is not there any more."""
    assert name not in XLA_STACKS and name not in XLA_SHADOWS, "these depend on the program: emit_for is given them"
    if name == SHADOW:
        return replace(emitter(OLD), shadow=replace(emitter("mlir"), name=SHADOW))
    room = _imported(name, ROOMS[name])
    return Emitter(name, room.emit, room.unsupported, language=getattr(room, "LANGUAGE", "llvm"))


def table(name: str, file: str) -> ModuleType:
    """A file of a stack's room, such as `numerics.elementwise` with its rows. Raises FlagError as `emitter` does."""
    return _imported(name, f"{ROOMS[name]}.{file}")


def _imported(name: str, path: str) -> ModuleType:
    if find_spec(ROOMS[name], __package__) is None:
        raise FlagError(
            f"this testbed has no {name} emitters: they are removed", remedy=f"use --emitters {', '.join(present())}"
        )
    return import_module(path, __package__)


def emit_for(flags: Flags, xla: Emitter | None = None, beside: Emitter | None = None, platform: str = HOST) -> EmitFor:
    """The flags as the function that a back end takes. A stack without kernels is never imported. xla: of the sealed
    kernels. beside: XLA's, as the shadow of kernels of ours. platform: that the kernels are for.
    """
    loaded: dict[str, Emitter] = {} if xla is None else {flags.xla: xla}

    def choose_emitter(request: KernelRequest) -> Emitter:
        name = choose(flags, request, platform)
        if name not in loaded:
            is_pair = beside is not None and name in XLA_SHADOWS
            loaded[name] = replace(emitter(XLA_SHADOWS[name][0]), shadow=beside) if is_pair else emitter(name)
        return loaded[name]

    return choose_emitter


def emit_first(flags: Flags, names: Collection[str], others: Flags) -> EmitFor:
    """The flags for the kernels of these names, and other flags for the rest: which kernel is wrong, by bisection."""
    first, rest = emit_for(flags), emit_for(others)
    return lambda request: (first if request.name in names else rest)(request)
