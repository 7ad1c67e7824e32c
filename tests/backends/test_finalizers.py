"""The garbage collector may end things of a device within any call of the thread that runs it."""

from __future__ import annotations

import gc
import threading

import pytest

from ...backends.blocks import Blocks
from ...backends.cuda.dialect import CUDA
from ...backends.device import DeviceMemory, LaunchDimensions
from ...backends.rocm.dialect import HIP
from ..support.host_items import host_items
from ..support.recorded import Recorded, negated


class Owner:
    """One that only the garbage collector ends."""

    def __init__(self, *things: object):
        self.things, self.self = things, self


class Collecting(int):
    """A number of bytes that is added while garbage is collected."""

    def __radd__(self, other: int) -> int:
        gc.collect()
        return int(self) + other


def finished(work) -> None:
    """Run work on a thread that may stand still."""
    failures = []

    def run():
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive(), "it stands still"
    assert not failures, failures


def test_an_owner_may_die_while_its_blocks_are_counted():
    blocks = Blocks()
    blocks.reserve(64)
    blocks.add(0x1000, 64, Owner())
    finished(lambda: blocks.reserve(Collecting(32)))
    assert blocks.statistics().bytes_in_use == 32


def test_the_address_of_a_dead_owner_may_be_given_again():
    blocks = Blocks()
    for size in (64, 32):
        blocks.reserve(size)
        blocks.add(0x1000, size, Owner())
        gc.collect()
    blocks.reserve(16)
    blocks.add(0x1000, 16)
    assert blocks.statistics().bytes_in_use == 16
    blocks.remove(DeviceMemory(0x1000, 16))
    assert blocks.statistics().bytes_in_use == 0


@pytest.mark.parametrize("dialect", [CUDA, HIP], ids=["cuda", "hip"])
def test_things_of_devices_may_die_within_any_call(dialect):
    """A collection after each allocation of Python's, with garbage that holds blocks, streams, events and modules."""
    made = Recorded(dialect, host_items())
    executor = made.executor(0)

    kernel = executor.load_kernel(negated())

    def work():
        for _ in range(30):
            stream, memory, event = executor.create_stream(), executor.allocate(64), executor.create_event()
            stream.memset(memory, 1)
            stream.launch(kernel, LaunchDimensions(), [memory, memory])
            stream.record(event)
            Owner(memory, stream, event, executor.load_kernel(negated()))
            stream.synchronize()

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        finished(work)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert (made.library.of("Stream"), made.library.of("Event"), made.library.of("Module")) == (1, 0, 1)


@pytest.mark.parametrize("dialect", [CUDA, HIP], ids=["cuda", "hip"])
def test_a_thread_stays_with_its_device_when_things_of_another_die(dialect):
    made = Recorded(dialect, host_items())
    driver, other = made.executor(0).driver, made.executor(1)
    gc.disable()  # else the owner may die before the device is entered
    try:
        alive = made.library.of("Stream")
        Owner(other.allocate(64), other.create_stream())
        driver.do("use a device", "enter", 0)
        assert made.library.of("Stream") == alive + 1
        gc.collect()
        assert made.library.of("Stream") == alive
        assert driver.device == made.library.entered() == 0
    finally:
        gc.enable()
