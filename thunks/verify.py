"""The verifier of images: what a run relies on. A file is run only after it; a compiler's images pass it, too.

Raises VerificationError, which names the thunk. What kernels do inside is not seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..hlo.devices import MOST_DEVICES, Devices
from ..hlo.dtypes import BY_NAME, DType
from ..hlo.errors import VerificationError
from ..hlo.shapes import Shape
from ..planning.allocation import MOST_MARKS, POOL_ALIGNMENT, Allocation, AllocationKind, BufferSlice
from .image import Image, Kernel
from .kinds import (
    Access,
    BufferUse,
    ChecksumThunk,
    CollectiveDoneThunk,
    CollectiveStartThunk,
    CompareThunk,
    ConditionalThunk,
    CopyThunk,
    DeviceIdThunk,
    FillThunk,
    InfeedThunk,
    KernelThunk,
    Meeting,
    NanThunk,
    Noting,
    OutfeedThunk,
    ProfileThunk,
    SequentialThunk,
    Thunk,
    WhileThunk,
    ZoneThunk,
    children,
)
from .rows import BY_CLASS, MOST_NESTED

LARGEST = 2**62
"""Sizes and offsets are below this, so that sums of two fit 64 bits."""


def verify_image(image: Image) -> None:
    """Check a whole image: its allocations, its signature, its thunks."""
    for number, allocation in enumerate(image.allocations):
        _allocation(number, allocation)
    _signature(image)
    for number, part in image.elsewhere.items():
        _check_slice(part, image.allocations, f"result {number}", write=False)
    for index, block in image.constants.items():
        if not 0 <= index < len(image.allocations) or image.allocations[index].kind is not AllocationKind.CONSTANT:
            raise VerificationError(f"a constant for allocation {index}, which is none")
        if block.nbytes != image.allocations[index].size:
            raise VerificationError(f"constant {index} has {block.nbytes} of {image.allocations[index].size} bytes")
    missing = [
        a.index for a in image.allocations if a.kind is AllocationKind.CONSTANT and a.index not in image.constants
    ]
    if missing:
        raise VerificationError(f"allocation {missing[0]} is a constant without a value")
    verify_thunks(image.thunks, image.allocations, image.kernels)
    if not 1 <= image.devices.count <= MOST_DEVICES or image.devices.replicas < 1:
        raise VerificationError(f"{image.devices}: 1 to {MOST_DEVICES} devices run a program")
    for thunk in image.thunks.walk():
        if isinstance(thunk, CollectiveStartThunk):
            _in_world(thunk, image.devices)


def verify_thunks(root: SequentialThunk, allocations: Sequence[Allocation], kernels: Sequence[Kernel]) -> None:
    """Check a sequence: slices lie in their allocations, nothing read-only is written, kernels get what they take."""
    by_symbol = {kernel.symbol: kernel for kernel in kernels}
    if len(by_symbol) != len(kernels):
        raise VerificationError("two kernels have one symbol")
    begun: set[int] = set()
    checks: set[int] = set()
    for thunk, depth in _walk(root):
        if isinstance(thunk, Noting):
            if not 0 <= thunk.id < MOST_MARKS or thunk.id in checks:
                raise VerificationError(f"check {thunk.name}: the id {thunk.id} is another's, or too large")
            checks.add(thunk.id)
        if isinstance(thunk, SequentialThunk):
            _marks(thunk, begun)
            _pairs(thunk)
            _feeds(thunk)
        if depth > MOST_NESTED:
            raise VerificationError(f"{thunk.name}: thunks nest deeper than {MOST_NESTED}")
        _RULES[type(thunk)](thunk, allocations, by_symbol)


def _walk(root: Thunk) -> Iterator[tuple[Thunk, int]]:
    stack = [(root, 0)]
    while stack:
        thunk, depth = stack.pop()
        yield thunk, depth
        stack.extend((child, depth + 1) for child in reversed(children(thunk)))


# -- allocations -------------------------------------------------------------------------------------------------------
def _allocation(number: int, a: Allocation) -> None:
    if a.index != number:
        raise VerificationError(f"allocation {number} says that it is number {a.index}")
    if not 0 <= a.size < LARGEST:
        raise VerificationError(f"allocation {number} has {a.size} bytes")
    if a.alignment < 1 or a.alignment & a.alignment - 1 or a.alignment > POOL_ALIGNMENT:
        raise VerificationError(f"allocation {number} is aligned to {a.alignment} bytes")
    if a.result >= 0 and a.kind is not AllocationKind.PARAMETER:
        raise VerificationError(f"allocation {number} is no parameter and gives its memory to a result")


def _signature(image: Image) -> None:
    given = _by_leaf(image, AllocationKind.PARAMETER, image.parameters, "parameter")
    taken = _by_leaf(image, AllocationKind.RESULT, image.results, "result")
    for a in given.values():
        if a.result < 0:
            continue
        if a.result >= len(image.results) or a.result in taken:
            raise VerificationError(f"parameter {a.number} shares memory with result {a.result}, which is elsewhere")
        if image.results[a.result].bytes != a.size:
            raise VerificationError(f"parameter {a.number} and result {a.result} differ in size")
        taken[a.result] = a
    for number, shape in enumerate(image.results):
        if number in image.elsewhere and (number in taken or image.elsewhere[number].size != shape.bytes):
            raise VerificationError(f"result {number} is in two places, or its place has another size")
        if shape.bytes and number not in taken and number not in image.elsewhere:
            raise VerificationError(f"result {number} has no place")
    if any(not 0 <= number < len(image.results) for number in image.elsewhere):
        raise VerificationError("a place for a result that the program does not have")
    _border(image)


def _by_leaf(image: Image, kind: AllocationKind, leaves: Sequence[Shape], what: str) -> dict[int, Allocation]:
    found: dict[int, Allocation] = {}
    for a in image.allocations:
        if a.kind is not kind:
            continue
        if not 0 <= a.number < len(leaves) or a.number in found:
            raise VerificationError(f"allocation {a.index} is for {what} {a.number}, which has one or does not exist")
        if leaves[a.number].bytes != a.size or (a.shape is not None and a.shape.bytes != a.size):
            raise VerificationError(f"{what} {a.number} has {leaves[a.number].bytes} bytes, its allocation {a.size}")
        found[a.number] = a
    return found


def _border(image: Image) -> None:
    """Dynamic dimensions: their leaves and those of their sizes exist."""
    border = image.border
    if border is None:
        return
    for dimensions, leaves, most in (
        (border.parameters, image.parameters, len(border.shapes)),
        (border.results, image.results, border.outputs),
    ):
        for d in dimensions:
            if not (0 <= d.leaf < most and 0 <= d.dimension < leaves[d.leaf].rank and 0 <= d.size < len(leaves)):
                raise VerificationError(f"dynamic dimension {d.dimension} of leaf {d.leaf} does not exist")
            if leaves[d.size].bytes != 4 or leaves[d.size].rank:
                raise VerificationError(f"the size of dimension {d.dimension} of leaf {d.leaf} is no s32[]")
    if len(border.shapes) + len(border.parameters) != len(image.parameters) or not (
        0 <= border.outputs <= len(image.results)
    ):
        raise VerificationError("the dynamic dimensions do not fit the number of parameters or results")


# -- thunks ------------------------------------------------------------------------------------------------------------
def _check_slice(part: BufferSlice, allocations: Sequence[Allocation], what: str, *, write: bool) -> Allocation:
    if not 0 <= part.allocation < len(allocations):
        raise VerificationError(f"{what}: allocation {part.allocation} does not exist")
    allocation = allocations[part.allocation]
    if part.offset < 0 or part.size < 0 or part.offset + part.size > allocation.size:
        text = f"{part.allocation}[{part.offset}:{part.offset + part.size}]"
        raise VerificationError(f"{what}: {text} is outside its {allocation.size} bytes")
    if write and allocation.read_only:
        raise VerificationError(f"{what}: writes allocation {part.allocation}, a {allocation.kind.value}")
    return allocation


def _kernel(thunk: KernelThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    name, kernel = f"kernel {thunk.name}", kernels.get(thunk.symbol)
    if kernel is None:
        raise VerificationError(f"{name}: no kernel has the symbol {thunk.symbol!r}")
    if len(kernel.arguments) != len(thunk.arguments):
        raise VerificationError(f"{name}: {thunk.symbol} takes {len(kernel.arguments)}, given {len(thunk.arguments)}")
    for number, (use, wanted) in enumerate(zip(thunk.arguments, kernel.arguments)):
        what, written = f"{name}: argument {number}", use.access is Access.WRITE
        allocation = _check_slice(use.slice, allocations, what, write=written)
        if (use.slice.size, written) != (wanted.size, wanted.written):
            raise VerificationError(f"{what}: {thunk.symbol} takes {wanted.size} bytes {_access(wanted.written)}, "
                                    f"given {use.slice.size} {_access(written)}")  # fmt: skip
        if use.slice.size and use.slice.alignment(allocation.alignment) < wanted.alignment:
            raise VerificationError(f"{what}: not aligned to {wanted.alignment} bytes")
    _apart(thunk.arguments, name)
    _check_split(thunk, kernel)


def _check_split(thunk: KernelThunk, kernel: Kernel) -> None:
    name, split = f"kernel {thunk.name}", thunk.split
    if (split is None) != (kernel.split is None):
        does = "does not take" if kernel.split is None else "takes"
        raise VerificationError(f"{name}: {thunk.symbol} {does} a range of steps")
    if split != kernel.split:
        raise VerificationError(f"{name}: {thunk.symbol} is not split as its function is")
    if split is None:
        return
    if split.extent >= LARGEST:
        raise VerificationError(f"{name}: {split.extent} steps")
    last = thunk.arguments[-1] if thunk.arguments else None
    if split.private and (last is None or last.access is not Access.WRITE or last.slice.size != split.private):
        raise VerificationError(f"{name}: its last argument is no scratch memory of {split.private} bytes")


def _access(written: bool) -> str:
    return "to write" if written else "to read"


def _apart(uses: Sequence[BufferUse], name: str) -> None:
    """No two arguments overlap where one is written: kernels are compiled under the assumption that they do not."""
    ordered = sorted(uses, key=lambda use: use.slice)
    last: dict[tuple[int, bool], int] = {}  # (allocation, written) → the largest end so far
    for use in ordered:
        place, written = use.slice, use.access is Access.WRITE
        if not place.size:
            continue
        ends = [last.get((place.allocation, True), 0), last.get((place.allocation, False), 0) if written else 0]
        if max(ends) > place.offset:
            raise VerificationError(f"{name}: two arguments overlap in allocation {place.allocation}")
        key = place.allocation, written
        last[key] = max(last.get(key, 0), place.offset + place.size)


def _copy(thunk: CopyThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    _check_slice(thunk.source, allocations, f"copy {thunk.name}", write=False)
    _check_slice(thunk.destination, allocations, f"copy {thunk.name}", write=True)


def _while(thunk: WhileThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    _check_slice(thunk.predicate, allocations, f"while {thunk.name}", write=False)
    if thunk.predicate.size != 1:
        raise VerificationError(f"while {thunk.name}: a predicate of {thunk.predicate.size} bytes")


def _conditional(thunk: ConditionalThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    _check_slice(thunk.selector, allocations, f"conditional {thunk.name}", write=False)
    size, count = thunk.selector.size, len(thunk.branches)
    if size != (1 if thunk.selector_is_pred else 4):
        raise VerificationError(f"conditional {thunk.name}: a selector of {size} bytes")
    if count < 1 or (thunk.selector_is_pred and count != 2):
        raise VerificationError(f"conditional {thunk.name}: {count} branches")


def _marks(sequence: SequentialThunk, begun: set[int]) -> None:
    """Profile thunks nest in their sequence, and no two begins have one id. begun: ids so far."""
    opened: list[tuple[int, str]] = []
    for mark in sequence.thunks:
        if not isinstance(mark, ProfileThunk):
            continue
        if mark.begin:
            if not 0 <= mark.id < MOST_MARKS or mark.id in begun:
                raise VerificationError(f"profile {mark.name}: the id {mark.id} is another's, or too large")
            begun.add(mark.id)
            opened.append((mark.id, mark.name))
        elif not opened or opened.pop() != (mark.id, mark.name):
            raise VerificationError(f"profile {mark.name}: ends {mark.id}, which is not the last that began")
    if opened:
        raise VerificationError(f"profile {opened[-1][1]}: {opened[-1][0]} does not end in its sequence")


def _nothing(thunk: Thunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    """What there is to check of it is checked in `verify_thunks`."""


def _device_id(thunk: DeviceIdThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    _check_slice(thunk.destination, allocations, f"device-id {thunk.name}", write=True)
    if thunk.destination.size != 4:
        raise VerificationError(f"device-id {thunk.name}: a number of {thunk.destination.size} bytes")


def _meeting(thunk: Meeting, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    (use,) = thunk.uses
    what = f"{BY_CLASS[type(thunk)].word} {thunk.name}"
    _check_slice(use.slice, allocations, what, write=use.access is Access.WRITE)
    if not isinstance(thunk, InfeedThunk | OutfeedThunk):
        return
    if thunk.shape.bytes != use.slice.size or not thunk.leaf < thunk.leaves:
        size = use.slice.size
        raise VerificationError(f"{what}: leaf {thunk.leaf} of {thunk.leaves}, {thunk.shape}, in {size} bytes")


def _pairs(sequence: SequentialThunk) -> None:
    """Each exchange that starts in a sequence is waited for once, behind its start."""
    started: set[str] = set()
    for thunk in sequence.thunks:
        if isinstance(thunk, CollectiveStartThunk):
            if thunk.name in started:
                raise VerificationError(f"collective-start {thunk.name}: started twice before its done")
            started.add(thunk.name)
        elif isinstance(thunk, CollectiveDoneThunk):
            if thunk.name not in started:
                raise VerificationError(f"collective-done {thunk.name}: its sequence did not start it")
            started.remove(thunk.name)
    if started:
        raise VerificationError(f"collective-start {min(started)}: nobody waits for it in its sequence")


def _feeds(sequence: SequentialThunk) -> None:
    """The leaves of a value follow each other."""
    for kind in (InfeedThunk, OutfeedThunk):
        before = None  # a thunk whose value has more leaves
        for thunk in sequence.thunks:
            if not isinstance(thunk, kind):
                continue
            wanted = (thunk.name, 0, thunk.leaves) if before is None else (before.name, before.leaf + 1, before.leaves)
            if (thunk.name, thunk.leaf, thunk.leaves) != wanted:
                raise _alone(thunk)
            before = thunk if thunk.leaf < thunk.leaves - 1 else None
        if before is not None:
            raise _alone(before)


def _alone(thunk: InfeedThunk | OutfeedThunk) -> VerificationError:
    return VerificationError(
        f"{BY_CLASS[type(thunk)].word} {thunk.name}: leaf {thunk.leaf} of {thunk.leaves} stands alone"
    )


def _in_world(thunk: CollectiveStartThunk, devices: Devices) -> None:
    if any(device >= devices.count for group in thunk.groups for device in group):
        raise VerificationError(f"collective-start {thunk.name}: names a device beyond {devices}")


def _checksum(thunk: ChecksumThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    _check_slice(thunk.slice, allocations, f"checksum {thunk.name}", write=False)


def _nan(thunk: NanThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    dtype = _elements(thunk.dtype, thunk.slice, f"check {thunk.name}")
    from .checks import format_of

    if not format_of(dtype).last:
        raise VerificationError(f"check {thunk.name}: {thunk.dtype} has no NaN")
    _check_slice(thunk.slice, allocations, f"check {thunk.name}", write=False)


def _fill(thunk: FillThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    _check_slice(thunk.slice, allocations, f"fill {thunk.name}", write=True)


def _zone(thunk: ZoneThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    _check_slice(thunk.slice, allocations, f"zone {thunk.name}", write=False)


def _compare(thunk: CompareThunk, allocations: Sequence[Allocation], kernels: Mapping[str, Kernel]) -> None:
    name = f"compare {thunk.name}"
    _elements(thunk.dtype, thunk.left, name)
    if thunk.left.size != thunk.right.size or thunk.flag.size != 1:
        sizes = f"{thunk.left.size} and {thunk.right.size} bytes, {thunk.flag.size} for the flag"
        raise VerificationError(f"{name}: {sizes}")
    if thunk.steps >= LARGEST or thunk.scaled >= LARGEST:
        raise VerificationError(f"{name}: within {thunk.steps} scaled {thunk.scaled}")
    for part in (thunk.left, thunk.right):
        _check_slice(part, allocations, name, write=False)
    _check_slice(thunk.flag, allocations, name, write=True)


def _elements(name: str, part: BufferSlice, where: str) -> DType:
    """The type of a slice's elements."""
    dtype = BY_NAME.get(name)
    if dtype is None or not dtype.is_array or part.size % dtype.bytes:
        raise VerificationError(f"{where}: {part.size} bytes of {name}")
    return dtype


_RULES: dict[type, Callable[[Any, Sequence[Allocation], Mapping[str, Kernel]], None]] = {
    KernelThunk: _kernel,
    CopyThunk: _copy,
    SequentialThunk: _nothing,
    WhileThunk: _while,
    ConditionalThunk: _conditional,
    ProfileThunk: _nothing,
    DeviceIdThunk: _device_id,
    CollectiveStartThunk: _meeting,
    CollectiveDoneThunk: _meeting,
    InfeedThunk: _meeting,
    OutfeedThunk: _meeting,
    ChecksumThunk: _checksum,
    NanThunk: _nan,
    FillThunk: _fill,
    ZoneThunk: _zone,
    CompareThunk: _compare,
}
