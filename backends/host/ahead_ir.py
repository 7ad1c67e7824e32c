"""The function by which C calls a program compiled ahead of time, and its constants, as LLVM IR text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...planning.allocation import POOL_ALIGNMENT, AllocationKind
from ...thunks.host_module import ENTRY
from ...thunks.host_steps import LEFT
from ...thunks.image import Image
from .leaves import Leaf
from .signature import Signature

NEVER = (1 << 63) - 1
"""Iterations until a loop pauses: nobody waits for it here."""

MISALIGNED = 1
"""What the function returns for an address that is not aligned as the header says."""


@dataclass(frozen=True)
class Arena:
    """Where temporaries are in the scratch memory. offsets: bytes by allocation; size: bytes in all."""

    offsets: Mapping[int, int]
    size: int

    @staticmethod
    def of(image: Image) -> Arena:
        offsets, size = {}, 0
        for a in image.allocations:
            if a.kind is AllocationKind.TEMPORARY:
                offsets[a.index] = size
                size += -(-a.size // POOL_ALIGNMENT) * POOL_ALIGNMENT
        return Arena(offsets, size)


def entry_ir(name: str, image: Image, signature: Signature, arena: Arena, loops: int) -> str:
    """`i32 NAME(ptr inputs, ptr outputs, ptr scratch)`: places memory, runs the host program, copies what is elsewhere.

    loops: the number of while loops.
    """
    places = _Places()
    inputs = [places.pointer("inputs", n) for n in range(len(signature.inputs))]
    outputs = [places.pointer("outputs", n) for n in range(len(signature.outputs))]
    leaves = (*signature.inputs, *signature.outputs)
    wrong = places.wrong([*zip((*inputs, *outputs), leaves)], bool(arena.size))
    count = len(image.allocations)
    lines = [*places.lines, f"  br i1 {wrong}, label %misaligned, label %place", "place:"]
    lines += _cleared("%bases", count + 1) + _cleared("%control", LEFT + loops)
    for n, output in signature.aliased:
        size = signature.inputs[n].bytes
        lines.append(
            f"  call void @llvm.memmove.p0.p0.i64(ptr {outputs[output]}, ptr {inputs[n]}, i64 {size}, i1 false)"
        )
    bases = dict(zip(signature.variable, (*inputs, *outputs)))  # of an aliased pair the output, which comes last
    bases |= {index: f"@constant.{index}" for index in image.constants}
    for index, offset in arena.offsets.items():
        lines.append(f"  %arena.{index} = getelementptr i8, ptr %scratch, i64 {offset}")
        bases[index] = f"%arena.{index}"
    for index, place in sorted(bases.items()):
        lines += [f"  %base.{index} = getelementptr i64, ptr %bases, i64 {index}"]
        lines += [f"  store ptr {place}, ptr %base.{index}"]
    for loop in range(loops):
        lines += [f"  %left.{loop} = getelementptr i64, ptr %control, i64 {LEFT + loop}"]
        lines += [f"  store i64 {NEVER}, ptr %left.{loop}"]
    copies = []
    for number, part in signature.copied:
        copies += [f"  %held.{number} = load ptr, ptr %base.{part.allocation}"]
        copies += [f"  %from.{number} = getelementptr i8, ptr %held.{number}, i64 {part.offset}"]
        to, size = outputs[number], part.size
        copies += [f"  call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr %from.{number}, i64 {size}, i1 false)"]
    body = "\n".join([*lines, _RUN.format(entry=ENTRY, before=LEFT - 1, never=NEVER), *copies, "  ret i32 0"])
    head = _HEAD.format(name=name, entry=ENTRY, bases=count + 1, control=LEFT + loops)
    return "\n".join([*_constants(image.constants), head, body, "misaligned:", f"  ret i32 {MISALIGNED}", "}", ""])


_HEAD = """
declare i64 @{entry}(ptr, ptr)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @{name}(ptr %inputs, ptr %outputs, ptr %scratch) {{
  %bases = alloca [{bases} x i64], align 16
  %control = alloca [{control} x i64], align 16"""

_RUN = """  br label %run
run:
  %status = call i64 @{entry}(ptr %bases, ptr %control)
  %paused = icmp sgt i64 %status, 0
  br i1 %paused, label %again, label %done
again:
  %word = add i64 %status, {before}
  %left = getelementptr i64, ptr %control, i64 %word
  store i64 {never}, ptr %left
  br label %run
done:"""


def _cleared(name: str, words: int) -> list[str]:
    return [f"  call void @llvm.memset.p0.i64(ptr align 16 {name}, i8 0, i64 {8 * words}, i1 false)"]


class _Places:
    """Lines that read the caller's pointers and test their alignment."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def pointer(self, array: str, number: int) -> str:
        name = f"%{array}.{number}"
        self.lines.append(f"  {name}.at = getelementptr ptr, ptr %{array}, i64 {number}")
        self.lines.append(f"  {name} = load ptr, ptr {name}.at")
        return name

    def wrong(self, places: Sequence[tuple[str, Leaf]], scratch: bool) -> str:
        """Whether a pointer to bytes is not aligned."""
        tested = [(place, leaf.alignment) for place, leaf in places if leaf.bytes]
        tested += [("%scratch", POOL_ALIGNMENT)] if scratch else []
        sum = "0"
        for number, (place, alignment) in enumerate(tested):
            self.lines.append(f"  %address.{number} = ptrtoint ptr {place} to i64")
            self.lines.append(f"  %low.{number} = and i64 %address.{number}, {alignment - 1}")
            self.lines.append(f"  %lows.{number} = or i64 {sum}, %low.{number}")
            sum = f"%lows.{number}"
        self.lines.append(f"  %wrong = icmp ne i64 {sum}, 0")
        return "%wrong"


def _constants(constants: Mapping[int, memoryview]) -> Iterator[str]:
    for index, block in constants.items():
        text = "".join(_BYTES[byte] for byte in block.tobytes())
        value = f'c"{text}"' if len(block) else "zeroinitializer"
        yield f"@constant.{index} = private constant [{len(block)} x i8] {value}, align {POOL_ALIGNMENT}"


_BYTES = [f"\\{byte:02X}" for byte in range(256)]
