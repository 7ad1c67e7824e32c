"""A compiled program of a device: arrays to its memory, the thunks on a stream, results back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...codegen.load import LoadedCode
from ...ffi.sites import Sites
from ...hlo.errors import InputError
from ...hlo.ir import Module
from ...planning.plan import Plan
from ...profiling.recorder import Recorder, Recording
from ...thunks.image import Image
from ...thunks.wire.program import Entry as ProgramEntry
from ..base import Executable
from ..device import DeviceMemory, Stream
from ..host.donation import place_aliased
from ..host.files import entry_of
from ..host.signature import Signature
from .calls import DeviceCall, LentQueue
from .contexts import Context
from .device import Device
from .launches import Bases
from .notes import events_of
from .steps import Builder, Entry

HANDLERS = "ffi"
"""The emitter of kernels that call a handler."""

IDLE = 8
"""Contexts that an executable keeps for parallel runs."""


class DeviceExecutable(Executable):
    """A program on a device. Threads may execute it in parallel: each run has its own memory and stream."""

    def __init__(
        self,
        platform_name: str,
        device: Device,
        image: Image,
        program: Module,
        entries: Mapping[str, Entry],
        code: LoadedCode | None,
        calls: Sequence[DeviceCall],
        timings: Mapping[str, float],
        stages: tuple[tuple[str, str], ...] = (),
        plan: Plan | None = None,
        recorder: Recorder | None = None,
    ):
        self.platform_name, self.program, self._plan, self._recorder = platform_name, program, plan, recorder
        self.image, self.thunks = image, image.thunks
        self.kernels = tuple((kernel.symbol, kernel.emitter) for kernel in image.kernels)
        self.timings, self.stages, self.entries = timings, stages, entries
        self._device, self._code, self._border = device, code, image.border
        self._signature = Signature.of(image)
        made = {call.symbol: (call, call.site(platform_name)) for call in calls}
        self._built = Builder(device, entries, code, len(image.allocations), made).build(image.thunks)
        self._idle: list[Context] = []
        on_host = [k.symbol for k in image.kernels if k.emitter == HANDLERS and k.symbol not in made]
        sites = Sites(code, on_host, [site for _, site in made.values()])
        self._sites, self.calls = sites if sites.sites else None, tuple(calls)
        self._constants = self._uploaded()

    def _uploaded(self) -> dict[int, DeviceMemory]:
        """The constants, in the device's memory as long as the program lives."""
        blocks: dict[int, DeviceMemory] = {}
        if not self.image.constants:
            return blocks
        stream = self._device.create_stream()
        try:
            for index, data in self.image.constants.items():
                blocks[index], array = self._device.allocate(len(data)), np.frombuffer(data, np.uint8)
                stream.copy(blocks[index].address, array.ctypes.data, len(data), array)
            stream.synchronize()
        except BaseException:
            with suppress(Exception):
                stream.synchronize()  # the copies that were enqueued use the blocks
            for block in blocks.values():
                self._device.deallocate(block)
            raise
        return blocks

    def serialize(self, key: bytes | None = None) -> bytes:
        """The program as the bytes of a .tbx file, with the device's own code. key: signs them."""
        from .stored import device_code, program_bytes

        device = device_code(self.platform_name, self._device.identity, self.entries, self.calls)
        return program_bytes(self.entry, self.image, self._code, device, key)

    @property
    def entry(self) -> ProgramEntry:
        """How callers know the program, as a file holds it."""
        return entry_of(self.program)

    # -- profiles ------------------------------------------------------------------------------------------------------
    host_program = "interpreted"
    """How kernels are called: each is enqueued by a step."""

    @property
    def is_planned(self) -> bool:
        """Whether it has a plan."""
        return self._plan is not None

    @property
    def plan(self) -> Plan:
        """The plan that it was compiled from. Raises InputError if it was loaded from a file, which has none."""
        if self._plan is None:
            raise InputError("an executable from a file has no plan", remedy="compile the module in this process")
        return self._plan

    def another(self, image: Image, recorder: Recorder | None) -> DeviceExecutable:
        """An executable of the same kernels with other thunks. recorder: takes the events of its profile thunks."""
        rest = (self.entries, self._code, self.calls, {}, (), self._plan, recorder)
        return DeviceExecutable(self.platform_name, self._device, image, self.program, *rest)

    @property
    def form_names(self) -> dict[str, str]:
        """Nothing: kernels for a device's items are not told apart."""
        return {}

    @property
    def is_recording(self) -> bool:
        """Whether runs note when its steps begin and end."""
        return self._recorder is not None

    def take_events(self) -> list[Recording]:
        """What runs noted since the last call, by the device's clock."""
        assert self._recorder is not None
        return self._recorder.take()

    def event_cost(self) -> float:
        """Nothing: a mark is at the beginning or the end of a command, which the device notes."""
        return 0.0

    # -- runs ----------------------------------------------------------------------------------------------------------
    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        *,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        """Run once. Raises InputError.

        Where the host's memory is the device's own, the arrays are used in place, and donated ones may be overwritten.
        Elsewhere they are copied.
        """
        border, signature = self._border, self._signature
        if border is not None:
            inputs = border.padded(inputs)
            outputs = outputs if outputs is None else [*outputs, *[None] * len(border.results)]
        addresses, kept = signature.place_inputs(inputs)
        places, results = signature.place_outputs(outputs)
        if outputs is not None:  # new results overlap nothing
            signature.refuse_overlaps(addresses + places)
        shared = self._device.shares_memory
        if shared and (signature.aliased or donated):
            place_aliased(signature, inputs, donated, addresses, kept, places, results, outputs)
        self._run(addresses, places, shared)
        del kept
        return results if border is None else border.cut(results)

    def _run(self, addresses: Sequence[int], places: Sequence[int], in_place: bool) -> None:
        """in_place: the device reads and writes at the addresses of inputs and results."""
        context = self._take()
        try:
            if in_place:
                self._give_addresses(context, addresses, places)
            else:
                self._copy_inputs(context, addresses)
            self._work(context, places)
        except BaseException:
            context.abandon()
            raise
        self._give_back(context)

    def _work(self, context: Context, places: Sequence[int]) -> None:
        signature, stream, bases = self._signature, context.stream, context.bases
        nowhere = len(self.image.allocations)
        if self._recorder is not None:
            stream.watch()
        self.steps(stream, bases)
        notes = [] if self._recorder is None else stream.watched()
        elsewhere = {number: (slice.allocation, slice.offset) for number, slice in signature.copied}
        rows = zip(signature.outputs, signature.variable[len(signature.inputs) :], places, strict=True)
        for number, (leaf, index, place) in enumerate(rows):
            allocation, offset = elsewhere.get(number, (index, 0))
            if allocation != nowhere and bases[allocation] + offset != place:
                stream.copy(place, bases[allocation] + offset, leaf.bytes)
        stream.synchronize()
        if self._recorder is not None:
            self._recorder.add(*events_of(notes))

    def _give_addresses(self, context: Context, addresses: Sequence[int], places: Sequence[int]) -> None:
        """Let the run use the memory of its inputs and results, but for inputs that kernels cannot take: aliased ones
        are copied to their results, others at a wrong boundary to memory of the context.
        """
        signature, nowhere = self._signature, len(self.image.allocations)
        stream, bases, given = context.stream, context.bases, list(addresses)
        for source, target in signature.aliased:
            if given[source] != places[target]:
                stream.copy(places[target], given[source], signature.inputs[source].bytes)
                given[source] = places[target]
        for leaf, address, index in zip(signature.inputs, given, signature.variable, strict=False):
            if index != nowhere and address % leaf.alignment:
                stream.copy(context.own(index), address, leaf.bytes)
                address = context.own(index)
            bases[index] = address if index != nowhere else bases[index]
        for place, index in zip(places, signature.variable[len(given) :], strict=True):
            bases[index] = place if index != nowhere else bases[index]

    def _copy_inputs(self, context: Context, addresses: Sequence[int]) -> None:
        """Copy the inputs to memory of the context, which has the results, too."""
        signature, nowhere = self._signature, len(self.image.allocations)
        for index in signature.variable:
            if index != nowhere:
                context.bases[index] = context.own(index)
        for leaf, address, index in zip(signature.inputs, addresses, signature.variable, strict=False):
            if index != nowhere:
                context.stream.copy(context.bases[index], address, leaf.bytes)

    def _with_sites(self, go: Callable[[], object], stream: Any, sites: Sites) -> None:
        """Run with the call sites of handlers. What a handler reports ends the run."""
        lent = LentQueue(self._device, stream) if self.calls else None
        try:
            sites.run(go, _end, self._device.ordinal, lent)
        finally:
            if lent is not None:
                lent.end()

    def _take(self) -> Context:
        try:
            return self._idle.pop()
        except IndexError:
            return self._context()

    def _context(self) -> Context:
        context = Context(self._device, self.image, self._built.scratch)
        for index, memory in self._constants.items():
            context.bases[index] = memory.address
        return context

    def context(self, inputs: Sequence[Any] | None = None) -> Context:
        """Memory and a stream for runs of `steps` on these inputs, or on what lies there; for measurements."""
        context = self._context()
        try:
            addresses, kept = ([], []) if inputs is None else self._signature.place_inputs(inputs)
            self._copy_inputs(context, addresses)
            context.stream.synchronize()
            del kept
        except BaseException:
            context.abandon()
            raise
        return context

    def steps(self, stream: Any, bases: Bases) -> None:
        """Enqueue the program's work on memory at these addresses. Control flow waits for what it reads."""
        if self._sites is None:
            self._built.step(stream, bases)
        else:
            self._with_sites(lambda: self._built.step(stream, bases), stream, self._sites)

    def _give_back(self, context: Context) -> None:
        if len(self._idle) < IDLE:
            self._idle.append(context)
        else:
            context.free()

    # -- in a stream ---------------------------------------------------------------------------------------------------
    def execute_async_on_stream(self, stream: Stream, arguments: Sequence[DeviceMemory]) -> list[DeviceMemory]:
        """As in Executable; the blocks are used in place. A program whose control flow the host decides runs when the
        stream has come to it.
        """
        signature, device = self._signature, stream.executor
        leaves, count = signature.inputs, len(signature.inputs)
        if len(arguments) != count:
            what = f"{self.program.name} takes {count} inputs (tuples count by leaf), {len(arguments)} given"
            raise InputError(what, remedy="give a block of memory for each")
        for leaf, memory in zip(leaves, arguments, strict=True):
            if memory.size < leaf.bytes:
                what = f"input {leaf.number}: {leaf.shape} needs {leaf.bytes} bytes, the block has {memory.size}"
                raise InputError(what, remedy="give the block of an array of that shape")
        results = [device.allocate(leaf.bytes) for leaf in signature.outputs]
        given = [memory.address for memory in arguments]
        places = [memory.address for memory in results]
        keep = (self, tuple(arguments), tuple(results))

        def run() -> None:
            self._run(given, places, True)
            assert keep  # the owners of the memory must outlive the run

        stream.enqueue(run)
        return results


def _end(*wanted: object) -> None:
    """The step that called a handler raises what it reported."""
