"""Which instruction of the scheduled module each of XLA's kernels computes, and why the others have none."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping

from ..hlo.dtypes import DType
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Instruction, Module
from ..hlo.opclasses import CONTROL, FORWARDING, OUTSIDE, control_computations
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from ..hlo.shapes import Shape, ShapeIndex
from .kernels import KernelFiles, XlaKernel
from .slices import Places, Slices

NO_KERNEL = CONTROL | FORWARDING | {Op.PARAMETER, Op.CONSTANT, Op.BITCAST}
"""Ops that move no bytes, or whose computations run by themselves."""

BY_THUNK: Mapping[Op, str] = {
    **dict.fromkeys(OUTSIDE, "it exchanges data with other devices or a host"),
    Op.RNG_GET_AND_UPDATE_STATE: "a thunk of XLA keeps the state",
    Op.DOT: "XLA calls Eigen or oneDNN",
    Op.CONVOLUTION: "XLA calls Eigen or oneDNN",
    Op.COPY: "a thunk of XLA copies the bytes",
    Op.CUSTOM_CALL: "a library computes it",
    Op.FFT: "a library computes it",
    Op.SORT: "a thunk of XLA sorts; only its comparator is compiled",
    Op.TOPK: "a library computes it",
}
"""Ops that XLA:CPU runs without a kernel of its own → who computes them."""

PACKED = "XLA packs its elements of less than a byte, of which our arrays take a byte each"

_PARTITIONS = re.compile(r'"outer_dimension_partitions":\[([^\]]*)\]')


@dataclass(frozen=True, eq=False)
class Match:
    """One instruction and the kernel that computes it. workgroups: calls of the kernel, by the first coordinate.

    overwritten: (operand, index of the result) pairs that share a buffer in XLA's assignment: the code may write the
    result by the operand's pointer, so these must be one.
    """

    instruction: Instruction
    kernel: XlaKernel
    workgroups: int
    overwritten: tuple[tuple[int, ShapeIndex], ...]


@dataclass(frozen=True, eq=False)
class Matches:
    """By instruction: found; refused: those that XLA computes without a kernel, and how; broken: those whose kernel is
    missing or cannot be called, and why. idle: kernels that no instruction has.
    """

    found: Mapping[Instruction, Match]
    refused: Mapping[Instruction, str]
    broken: Mapping[Instruction, str]
    idle: tuple[XlaKernel, ...] = ()
    by_symbol: Mapping[str, Match] = field(default_factory=dict)


def match_kernels(module: Module, files: KernelFiles, slices: Slices | None) -> Matches:
    """Match every kernel of the host program. slices: None if XLA's buffer assignment is missing."""
    found: dict[Instruction, Match] = {}
    refused: dict[Instruction, str] = {}
    broken: dict[Instruction, str] = {}
    inside = _inside_calls(module, files)
    instructions = list(kernels_of(module))
    shared = _shared(instructions, files)
    places = Places.of(module, slices) if slices is not None else None
    for i in instructions:
        kernel = None if is_packed(i) else symbol_of(i, files) or shared.get(_key(i))
        made = "the dump has no kernel of this name" if kernel is None else _matched(i, kernel, files, places)
        if isinstance(made, Match):
            found[i] = made
        elif kernel is None and (how := inside.get(i) or _without_kernel(i)):
            refused[i] = how
        else:
            broken[i] = made
    used = {match.kernel.symbol for match in found.values()}
    idle = tuple(kernel for symbol, kernel in files.kernels.items() if symbol not in used)
    return Matches(found, refused, broken, idle, {match.kernel.symbol: match for match in reversed(found.values())})


def kernels_of(module: Module) -> Iterator[Instruction]:
    """The instructions of the host program that compute something."""
    for computation in control_computations(module):
        yield from (i for i in computation.instructions if i.opcode not in NO_KERNEL)


def symbol_of(i: Instruction, files: KernelFiles) -> XlaKernel | None:
    """The kernel that XLA named after an instruction: a fusion's has its own name, an op's ends with _kernel."""
    return files.kernels.get(i.name) or files.kernels.get(f"{i.name}_kernel")


def _shared(instructions: list[Instruction], files: KernelFiles) -> dict[Hashable, XlaKernel]:
    """Structure of an instruction → its kernel: XLA compiles equal fusions once."""
    named = ((i, symbol_of(i, files)) for i in instructions if i.opcode is Op.FUSION)
    return {_key(i): kernel for i, kernel in named if kernel is not None}


def _key(i: Instruction) -> Hashable:
    return instruction_key(i, tuple(o.shape for o in i.operands)) if i.opcode is Op.FUSION else None


def _without_kernel(i: Instruction) -> str:
    """How XLA computes an instruction that has no kernel; '' if it should have one."""
    if i.opcode is Op.FUSION and i.attributes.get("kind") == "kCustom":
        return "a library computes this fusion (kind=kCustom)"
    if is_packed(i):
        return PACKED
    return BY_THUNK.get(i.opcode, "")


def is_packed(i: Instruction) -> bool:
    """Whether an array of the kernel has elements of less than a byte: XLA packs them, our arrays take a byte each."""
    leaves = (leaf for shape in (*(o.shape for o in i.operands), i.shape) for _, leaf in shape.leaves())
    return any(leaf.is_array and leaf.dtype.bits < 8 and leaf.dtype is not DType.PRED for leaf in leaves)


def _inside_calls(module: Module, files: KernelFiles) -> dict[Instruction, str]:
    """The instructions below calls that are one kernel of XLA's each, which has a form of its own."""
    waiting = [
        (called, f"a part of {i.name}, which XLA compiled as one")
        for computation in control_computations(module)
        for i in computation.instructions
        if i.opcode is Op.CALL and symbol_of(i, files) is not None
        for called in i.called()
    ]
    found: dict[Instruction, str] = {}
    for computation, why in waiting:
        for i in computation.instructions:
            found[i] = why
            waiting += [(called, why) for called in i.called() if i.opcode in CONTROL]
    return found


def arguments_of(i: Instruction) -> tuple[Shape, ...]:
    """The arrays in a kernel's call frame: the operands, then the leaves of the result."""
    return tuple(leaf for shape in (*(o.shape for o in i.operands), i.shape) for _, leaf in shape.leaves())


def _matched(i: Instruction, kernel: XlaKernel, files: KernelFiles, places: Places | None) -> Match | str:
    """The match, or why a kernel of the right name cannot be called."""
    reason = _complaint(i, kernel, files)
    if reason is None and places is None:
        reason = "the dump has no buffer assignment"
    if reason is not None or places is None:
        return reason or ""
    overwritten = places.overwritten(i)
    return overwritten if isinstance(overwritten, str) else Match(i, kernel, _workgroups(i), overwritten)


def _complaint(i: Instruction, kernel: XlaKernel, files: KernelFiles) -> str | None:
    """What is wrong with a kernel of the right name; None if nothing is."""
    shapes = arguments_of(i)
    if any(o.shape.is_tuple for o in i.operands) or not all(s.is_array for s in shapes):
        return "it takes or gives a token, or takes a tuple"
    count = max(kernel.sizes, default=-1) + 1
    if count > len(shapes):
        return f"its code takes {count} arguments, and {i.opcode.value} {i.name} has {len(shapes)}"
    for number, size in kernel.sizes.items():
        if size not in (-1, shapes[number].bytes):
            return f"argument {number} has {size} bytes in the code, and {shapes[number]} has {shapes[number].bytes}"
    if kernel.code is None and kernel.ir is None:
        return "the dump has neither its object nor its IR"
    if kernel.code is not None and kernel.code in files.damaged:
        return files.damaged[kernel.code]
    return None


def _workgroups(i: Instruction) -> int:
    config = i.attributes.get("backend_config", "")
    found = _PARTITIONS.search(getattr(config, "text", None) or str(config))
    numbers = re.findall(r"\d+", found[1]) if found else []
    return math.prod(map(int, numbers))
