"""Calls of handlers that are registered for a device's platform: they get its addresses, and enqueue in its queue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...ffi.calls import raise_failed
from ...ffi.description import Description, describe
from ...ffi.refusals import refusal
from ...ffi.registry import find, lookup
from ...ffi.sites import Site
from ...formats.documents import json_of
from ...hlo.errors import InputError, UnsupportedError
from ...hlo.ir import Instruction, Module
from ...hlo.layouts import same_bytes
from ...hlo.library.calls import is_foreign
from ...hlo.library.foreign import aliases, wanted_shapes
from ...hlo.opcodes import Op
from ...passes.building import Builder
from ...passes.expansion import expand_ops
from ...planning.plan import KernelRequest
from ..device import DeviceMemory
from .device import Device, Queue

FRAME_ALIGNMENT = 64
"""Bytes; what a device's blocks are aligned to."""


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """A call on a device, of the kernel `symbol`. operands, results: the number of its argument by leaf; -1 for a leaf
    without data. copied: (operand, result) arguments that the handler sees as one; the first is copied to the second.
    """

    symbol: str
    description: Description
    operands: tuple[int, ...]
    results: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]

    def site(self, platform: str) -> Site:
        """Its call site. Raises UnsupportedError without a handler, CallError for what its stage instantiate says."""
        return Site(self.description, lookup(self.description.target, platform, what=self.description.name))

    @property
    def buffers(self) -> tuple[int, ...]:
        """The arguments that the handler gets."""
        instead = dict(self.copied)
        return (*(instead.get(n, n) for n in self.operands), *self.results)

    def to_bytes(self) -> bytes:
        numbers = {"symbol": self.symbol, "operands": self.operands, "results": self.results, "copied": self.copied}
        return json.dumps([numbers, self.description.to_bytes()[:-1].decode()]).encode()

    @staticmethod
    def of_bytes(data: bytes) -> DeviceCall:
        """What `to_bytes` wrote. Raises InputError for anything else."""
        try:
            numbers, text = json_of(data)
            pairs = tuple((int(a), int(b)) for a, b in numbers["copied"])
            leaves = [tuple(map(int, numbers[name])) for name in ("operands", "results")]
            return DeviceCall(str(numbers["symbol"]), Description.of_bytes(text.encode()), leaves[0], leaves[1], pairs)
        except (ValueError, TypeError, KeyError) as error:
            what = f"a custom call whose description is damaged: {error}"
            raise InputError(what, remedy="compile the module again") from None


def with_layouts(module: Module, platform: str) -> Module:
    """The module with a copy of each operand that lies otherwise than a handler on the device wants it."""

    def laid_out(i: Instruction, b: Builder) -> Instruction | None:
        elsewhere = _elsewhere(i) if is_foreign(i) and find(_target(i), platform) else set()
        if not elsewhere:
            return None
        rows = enumerate(zip(i.operands, wanted_shapes(i), strict=True))
        given = tuple(
            b.op(Op.COPY, shape.with_layout(shape.minor_to_major), o) if n in elsewhere else o for n, (o, shape) in rows
        )
        return b.add(i.replace(operands=given))

    return expand_ops(module, {Op.CUSTOM_CALL: laid_out})


def _elsewhere(i: Instruction) -> set[int]:
    """The operands that lie otherwise than the handler wants them."""
    rows = enumerate(zip(i.operands, wanted_shapes(i), strict=True))
    return {n for n, (o, wanted) in rows if o.shape.is_array and o.shape.size and not same_bytes(o.shape, wanted)}


def calls_of(requests: Iterable[KernelRequest], platform: str) -> Iterator[DeviceCall]:
    """The calls of handlers of the platform. Those of the host's handlers are none of them.

    Raises UnsupportedError for a target without either, and for a call that cannot be made on a device.
    """
    for request in requests:
        i = request.instruction
        if not is_foreign(i) or (find(_target(i), platform) is None and find(_target(i)) is not None):
            continue
        error = refusal(i, platform)
        if error is not None:
            raise error
        if _elsewhere(i):
            what = f"custom-call({_target(i)}) of {i.name} on {platform}, whose operands lie in another layout"
            raise UnsupportedError("ffi", what, remedy="give it row-major operands", location=i.location)
        pairs = [(request.operands[n], request.results[leaf]) for n, leaf in aliases(i).items()]
        copied = tuple((a, b) for a, b in pairs if a != b)
        yield DeviceCall(request.name, describe(i), request.operands, request.results, copied)


def _target(i: Instruction) -> str:
    return str(i.attributes.get("custom_call_target", ""))


class LentQueue:
    """A run's queue and memory, as handlers have them. Memory is given back behind the work that may use it."""

    def __init__(self, device: Device, stream: Queue):
        self.queue = stream.lend()
        self._device, self._stream = device, stream
        self._blocks: dict[int, DeviceMemory] = {}

    def allocate(self, size: int, alignment: int) -> int:
        more = alignment if alignment > FRAME_ALIGNMENT else 0
        block = self._device.allocate(size + more)
        address = block.address + (-block.address % alignment if more else 0)
        self._blocks[address] = block
        return address

    def free(self, address: int) -> None:
        self._stream.keep(self._blocks.pop(address).owner)

    def end(self) -> None:
        """Give back what handlers did not."""
        for address in [*self._blocks]:
            self.free(address)


def enqueue(call: DeviceCall, site: Site, stream: Queue, places: Sequence[tuple[int, int]]) -> None:
    """Let a handler enqueue its work. places: (address, bytes) of each argument of the kernel."""
    for source, to in call.copied:
        if places[source][0] != places[to][0]:
            stream.copy(places[to][0], places[source][0], places[source][1])
    stream.lend()
    with stream.noted():
        site.execute([0 if number < 0 else places[number][0] for number in call.buffers])
    raise_failed()  # what a future was completed with
