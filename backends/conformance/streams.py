"""Tests of streams: order, events, copies, callbacks, timers, kernels, failures."""

from __future__ import annotations

import threading
import time

import numpy as np

from ...hlo.errors import InputError
from ..device import Capability, DeviceMemory, KernelSpec, LaunchDimensions, Stream
from .context import Context, needs, refuses

SECONDS = 30.0
"""The longest time that a test waits for what must happen."""


class StreamChecks(Context):
    def _stream(self) -> Stream:
        return self.executor.create_stream()

    def _block(self, data: np.ndarray) -> DeviceMemory:
        memory = self.executor.allocate(data.nbytes)
        self.executor.synchronous_memcpy_from_host(memory, data)
        return memory

    def _floats(self, memory: DeviceMemory) -> list[float]:
        found = np.zeros(memory.size // 4, np.float32)
        self.executor.synchronous_memcpy_to_host(found, memory)
        return found.tolist()

    def test_an_empty_stream_is_done(self) -> None:
        stream = self._stream()
        stream.synchronize()
        stream.synchronize()
        assert stream.executor is self.executor

    def use_host_callbacks(self) -> None:
        self._stream().enqueue(lambda: None)

    @needs(Capability.HOST_CALLBACKS, "use_host_callbacks")
    def test_work_is_done_in_order_and_the_first_failure_is_raised(self) -> None:
        stream, seen = self._stream(), list[int]()

        def fail() -> None:
            raise InputError("no good")

        for work in (lambda: seen.append(1), fail, lambda: seen.append(2)):
            stream.enqueue(work)
        refused = None
        try:
            stream.synchronize()
        except InputError as error:
            refused = error.message
        assert refused == "no good" and seen == [1, 2]
        stream.synchronize()  # a failure is told once

    @needs(Capability.HOST_CALLBACKS, "use_host_callbacks")
    def test_enqueueing_does_not_wait(self) -> None:
        stream, gate, seen = self._stream(), threading.Event(), list[bool]()
        stream.enqueue(lambda: seen.append(gate.wait(SECONDS)))
        assert not seen
        gate.set()
        stream.synchronize()
        assert seen == [True]

    def use_async_copies(self) -> None:
        memory = self.executor.allocate(4)
        self._stream().memcpy(memory, memory, 4)

    @needs(Capability.ASYNC_COPIES, "use_async_copies")
    def test_copies_in_a_stream(self) -> None:
        data = np.arange(12, dtype=np.float32).reshape(3, 4)
        stream, first, second = self._stream(), self.executor.allocate(48), self.executor.allocate(48)
        result = np.zeros_like(data)
        stream.memcpy_from_host(first, data)
        stream.memcpy(second, first, 48)
        stream.memcpy_to_host(result, second)
        stream.synchronize()
        assert (result == data).all()
        refuses(lambda: stream.memcpy(second, first, 49), "49 bytes")
        refuses(lambda: stream.memcpy_from_host(first, np.zeros(13, np.float32)), "52 bytes")
        refuses(lambda: stream.memcpy_to_host(data.T, first), "gaps")
        stream.synchronize()

    def use_memset(self) -> None:
        self._stream().memset(self.executor.allocate(4), 0)

    @needs(Capability.MEMSET, "use_memset")
    def test_memset(self) -> None:
        stream, memory = self._stream(), self._block(np.zeros(8, np.float32))
        stream.memset(memory.slice(0, 6), 0x7F)
        stream.memset32(memory.slice(8, 16), 0x3F800000)
        stream.synchronize()
        found = np.zeros(32, np.uint8)
        self.executor.synchronous_memcpy_to_host(found, memory)
        assert found[:8].tolist() == [0x7F] * 6 + [0, 0]
        assert found[8:].view(np.float32).tolist() == [1, 1, 1, 1, 0, 0]
        refuses(lambda: stream.memset(memory, 256), "256")
        refuses(lambda: stream.memset32(memory.slice(0, 6), 0), "6 bytes")

    def use_events(self) -> None:
        self._stream().wait_for(self.executor.create_event())

    @needs(Capability.EVENTS, "use_events")
    def test_events_order_streams(self) -> None:
        first, second, event = self._stream(), self._stream(), self.executor.create_event()
        assert event.is_complete  # nothing is recorded yet
        first.record(event)
        second.wait_for(event)
        second.synchronize()
        event.synchronize()
        assert event.is_complete
        second.wait_for(first)
        second.synchronize()

    @needs(Capability.EVENTS, "use_events")
    def test_a_stream_waits_for_another(self) -> None:
        if not self.declares(Capability.HOST_CALLBACKS):
            return
        first, second, event = self._stream(), self._stream(), self.executor.create_event()
        gate, seen = threading.Event(), list[str]()
        first.enqueue(lambda: gate.wait(SECONDS))
        first.enqueue(lambda: seen.append("first"))
        first.record(event)
        second.wait_for(event)
        second.enqueue(lambda: seen.append("second"))
        third = self._stream()
        third.wait_for(second)
        third.enqueue(lambda: seen.append("third"))
        assert not event.is_complete and not seen
        gate.set()
        third.synchronize()
        assert seen == ["first", "second", "third"] and event.is_complete

    def use_timers(self) -> object:
        return self.executor.create_timer(self._stream())

    @needs(Capability.TIMERS, "use_timers")
    def test_a_timer_measures_what_lies_between(self) -> None:
        stream = self._stream()
        timer = self.executor.create_timer(stream)
        refuses(timer.elapsed, "stop")
        begin = time.perf_counter()
        timer.start()
        if self.declares(Capability.HOST_CALLBACKS):
            stream.enqueue(lambda: time.sleep(0.02))
        timer.stop()
        measured, most = timer.elapsed(), time.perf_counter() - begin
        assert 0 <= measured <= most
        assert not self.declares(Capability.HOST_CALLBACKS) or measured >= 0.02

    def use_kernels(self) -> object:
        return self.executor.load_kernel(KernelSpec("none", b"", 0))

    @needs(Capability.KERNELS, "use_kernels")
    def test_a_kernel_runs_in_its_stream(self) -> None:
        assert self.kernel is not None, "set `kernel` in the class of the test: kernels are declared"
        kernel = self.executor.load_kernel(self.kernel)
        assert kernel.name == self.kernel.name and kernel.arguments == 2
        data = np.arange(8, dtype=np.float32)
        stream, source, target = self._stream(), self._block(data), self._block(data * 0)
        dimensions = LaunchDimensions()
        for _ in range(3):
            stream.launch(kernel, dimensions, [source, target])
        stream.synchronize()
        assert self._floats(target) == (-data).tolist() and self._floats(source) == data.tolist()
        refuses(lambda: stream.launch(kernel, dimensions, [source]), "2 blocks of memory", "1 given")
        most = self.executor.description()
        beyond = LaunchDimensions(blocks=(most.blocks[0] + 1, 1, 1))
        refuses(lambda: stream.launch(kernel, beyond, [source, target]), "blocks")
        refuses(lambda: stream.launch(kernel, LaunchDimensions(threads=(1, 0, 1)), [source, target]), "threads")
        stream.synchronize()

    def test_streams_of_eight_threads(self) -> None:
        """Each thread has its own stream and blocks. None sees another's bytes."""
        wrong: list[object] = []

        def work(number: int) -> None:
            try:
                for turn in range(20):
                    data = np.full(257, number * 1000 + turn, np.int32)
                    memory, result = self._block(data), np.zeros_like(data)
                    stream = self._stream()
                    stream.synchronize()
                    self.executor.synchronous_memcpy_to_host(result, memory)
                    self.executor.deallocate(memory)
                    if not (result == data).all():
                        wrong.append((number, turn))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert not wrong and not any(thread.is_alive() for thread in threads)
