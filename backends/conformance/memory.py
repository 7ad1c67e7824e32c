"""Tests of a device's memory: blocks, copies, spaces, limits, statistics, peers."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np

from ..device import Capability, DeviceMemory, MemorySpace
from .context import Context, needs, refuses

SIZES = (0, 1, 3, 64, 4097)


class MemoryChecks(Context):
    def _filled(self, size: int, seed: int = 0) -> tuple[DeviceMemory, np.ndarray]:
        """A block with random bytes, and these."""
        data = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
        memory = self.executor.allocate(size)
        self.executor.synchronous_memcpy_from_host(memory, data)
        return memory, data

    def _bytes(self, memory: DeviceMemory, size: int | None = None) -> np.ndarray:
        found = np.zeros(memory.size if size is None else size, np.uint8)
        self.executor.synchronous_memcpy_to_host(found, memory)
        return found

    def test_a_block_keeps_what_is_copied_to_it(self) -> None:
        for size in SIZES:
            memory, data = self._filled(size, size)
            assert memory.size == size and memory.ordinal == 0 and memory.space is MemorySpace.DEVICE
            assert (self._bytes(memory) == data).all()
            self.executor.deallocate(memory)

    def test_blocks_in_use_are_apart(self) -> None:
        blocks = [self._filled(100, seed) for seed in range(20)]
        spans = sorted((m.address, m.address + m.size) for m, _ in blocks)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert all((self._bytes(memory) == data).all() for memory, data in blocks)
        for memory, _ in blocks:
            self.executor.deallocate(memory)

    def test_copies_between_blocks(self) -> None:
        source, data = self._filled(100)
        target, before = self._filled(120, 1)
        self.executor.synchronous_memcpy(target, source, 60)
        assert (self._bytes(target) == [*data[:60], *before[60:]]).all()
        self.executor.synchronous_memcpy(target.slice(100, 20), source.slice(7, 20), 20)
        assert (self._bytes(target)[100:] == data[7:27]).all()

    def test_wrong_sizes_are_refused(self) -> None:
        block, data = self._filled(8)
        other = self.executor.allocate(9)
        refuses(lambda: self.executor.allocate(-1), "-1 bytes")
        refuses(lambda: self.executor.synchronous_memcpy(other, block, 9), "9 bytes", "8")
        refuses(lambda: self.executor.synchronous_memcpy(block, other, -1), "-1 bytes")
        refuses(lambda: self.executor.synchronous_memcpy_from_host(block, np.zeros(9, np.uint8)), "9 bytes")
        refuses(lambda: self.executor.synchronous_memcpy_to_host(np.zeros(9, np.uint8), block), "9 bytes")
        refuses(lambda: self.executor.synchronous_memcpy_from_host(other, np.zeros(8, np.uint8)[::2]), "gaps")
        refuses(lambda: block.slice(4, 5), "block of 8")
        assert (self._bytes(block) == data).all()

    def test_a_block_is_given_back_once(self) -> None:
        memory, _ = self._filled(16)
        self.executor.deallocate(memory)
        refuses(lambda: self.executor.deallocate(memory), "no block")

    def test_a_device_that_does_not_exist(self) -> None:
        count = self.device_platform.visible_device_count()
        assert count >= 1 and self.device_platform.unavailable() is None
        refuses(lambda: self.device_platform.executor(count), self.device_platform.name, str(count))
        refuses(lambda: self.device_platform.executor(-1), "-1")
        assert self.device_platform.executor(0) is self.device_platform.executor(0)

    def test_the_device_is_described(self) -> None:
        about = self.executor.description()
        assert about.name and about.cores >= 1
        assert min(*about.blocks, *about.threads_per_block) >= 1
        assert about.memory_bytes is None or about.memory_bytes > 0

    def use_host_memory(self) -> object:
        return self.executor.host_view(self.executor.allocate(1, MemorySpace.HOST))

    @needs(Capability.HOST_MEMORY, "use_host_memory")
    def test_memory_that_the_host_sees(self) -> None:
        memory, data = self._filled(33)
        shared = self.executor.allocate(33, MemorySpace.HOST)
        assert shared.space is MemorySpace.HOST
        self.executor.synchronous_memcpy(shared, memory, 33)
        view = self.executor.host_view(shared)
        assert (view == data).all()
        view[5] ^= 255
        self.executor.synchronous_memcpy(memory, shared, 33)
        assert self._bytes(memory)[5] == data[5] ^ 255
        assert (self.executor.host_view(shared.slice(5, 2)) == view[5:7]).all()

    def use_statistics(self) -> object:
        return self.executor.statistics()

    @needs(Capability.STATISTICS, "use_statistics")
    def test_statistics_count_blocks(self) -> None:
        gc.collect()
        before = self.executor.statistics()
        block, dropped = self.executor.allocate(1000), self.executor.allocate(100_000)
        during = self.executor.statistics()
        assert during.bytes_in_use - before.bytes_in_use == 101_000
        assert during.allocations - before.allocations == 2
        assert during.largest_allocation >= 100_000 and during.peak_bytes_in_use >= during.bytes_in_use
        self.executor.deallocate(block)
        assert self.executor.statistics().bytes_in_use == during.bytes_in_use - 1000
        self.executor.deallocate(dropped)
        assert self.executor.statistics().bytes_in_use == before.bytes_in_use

    def use_memory_limit(self) -> None:
        self.executor.set_memory_limit(None)

    @needs(Capability.MEMORY_LIMIT, "use_memory_limit")
    def test_an_allocation_past_the_limit_is_refused(self) -> None:
        gc.collect()
        used = self.executor.statistics().bytes_in_use if self.declares(Capability.STATISTICS) else 0
        self.executor.set_memory_limit(used + 1000)
        try:
            first = self.executor.allocate(600)
            refuses(lambda: self.executor.allocate(600), "600 bytes", str(used + 1000))
            self.executor.deallocate(first)
            self.executor.deallocate(self.executor.allocate(1000))
            refuses(lambda: self.executor.set_memory_limit(-1), "-1")
        finally:
            self.executor.set_memory_limit(None)
        self.executor.deallocate(self.executor.allocate(2000))

    def use_peer_copies(self) -> None:
        memory = self.executor.allocate(4)
        self.executor.memcpy_from_peer(memory, self.executor, memory, 4)

    @needs(Capability.PEER_COPIES, "use_peer_copies")
    def test_copies_between_devices(self) -> None:
        """With one device, within it."""
        number = min(1, self.device_platform.visible_device_count() - 1)
        other = self.device_platform.executor(number)
        assert (other is self.executor) == (number == 0)
        source, data = self._filled(50)
        target = other.allocate(60)
        assert target.ordinal == number
        other.memcpy_from_peer(target, self.executor, source, 50)
        found = np.zeros(50, np.uint8)
        other.synchronous_memcpy_to_host(found, target)
        assert (found == data).all()
        refuses(lambda: other.memcpy_from_peer(target, self.executor, source, 51), "51 bytes")
        if number:
            refuses(lambda: self.executor.synchronous_memcpy(source, target, 50))
