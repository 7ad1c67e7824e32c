"""A back end of one's own: a stack machine, written in Python, with memory that nobody else can address.

It runs elementwise programs on f32 arrays. docs/adding-a-backend.md walks through it; run: python examples/stack_machine.py
"""

import math
import struct
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import testbed
from testbed.backends.base import CompileOptions, Compiler, EmitFor, Executable, Platform
from testbed.backends.blocks import Blocks
from testbed.backends.device import (
    AllocatorStatistics,
    BackendError,
    Capability,
    DeviceDescription,
    DeviceMemory,
    MemorySpace,
    Stream,
    StreamExecutor,
    bytes_of,
    check_copy,
)
from testbed.backends.transfers import GenericTransferManager
from testbed.hlo.dtypes import DType
from testbed.hlo.errors import InputError, OutOfMemoryError, UnsupportedError
from testbed.hlo.ir import Instruction, Module
from testbed.hlo.opcodes import Op
from testbed.hlo.shapes import Shape

NAME, MEMORY, ALIGNMENT = "stack", 1 << 20, 16


# --- the machine: memory of 1 MiB, a stack of numbers, and nine instructions ------------------------------------------
class Machine:
    """Runs code: a list of words. `load` and `store` take an address, `push` a number; the others take the stack's."""

    def __init__(self) -> None:
        self.memory = bytearray(MEMORY)

    def run(self, code: Sequence[tuple[str, Any]], base: Sequence[int], offset: int) -> None:
        """base: addresses of the arrays that `load` and `store` name by number. offset: of the element, in bytes."""
        stack: list[float] = []
        for word, argument in code:
            if word == "load":
                stack.append(struct.unpack_from("<f", self.memory, base[argument] + offset)[0])
            elif word == "store":
                struct.pack_into("<f", self.memory, base[argument] + offset, stack.pop())
            elif word == "push":
                stack.append(argument)
            elif word == "pick":  # a copy of a number further down
                stack.append(stack[argument])
            else:
                operands = [stack.pop() for _ in range(ARITY[word])][::-1]
                stack.append(float(np.float32(WORDS[word](*operands))))


def _exponential(x: float) -> float:
    return math.exp(x) if x < 89 else math.inf if x == x else x


WORDS: dict[str, Callable[..., float]] = {
    "negate": lambda x: -x,
    "exponential": _exponential,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
}
ARITY = {"negate": 1, "exponential": 1, "add": 2, "subtract": 2, "multiply": 2}


# --- StreamExecutor: memory and copies --------------------------------------------------------------------------------
class MachineStream(Stream):
    """Work is done when it is given: there is nothing to wait for, and nothing else that a stream can do here."""

    def synchronize(self) -> None:
        pass


@dataclass(frozen=True)
class Owner:
    """Marks the blocks of this device: where the whole block begins."""

    address: int


class MachineExecutor(StreamExecutor):
    def __init__(self, platform: "StackMachine"):
        super().__init__(platform, 0)
        self.machine, self._blocks = Machine(), Blocks()
        self._free, self._lock = {0: MEMORY}, threading.Lock()

    def description(self) -> DeviceDescription:
        return DeviceDescription("stack machine", memory_bytes=MEMORY)

    def allocate(self, size: int, space: MemorySpace = MemorySpace.DEVICE) -> DeviceMemory:
        """The first gap that is large enough."""
        if space is not MemorySpace.DEVICE:
            raise self._refused(Capability.HOST_MEMORY)
        self._blocks.reserve(size)
        room = max(-(-size // ALIGNMENT), 1) * ALIGNMENT
        with self._lock:
            address = next((at for at, gap in sorted(self._free.items()) if gap >= room), None)
            if address is None:
                self._blocks.cancel(size)
                raise OutOfMemoryError("a block", size)
            gap = self._free.pop(address)
            if gap > room:
                self._free[address + room] = gap - room
        self._blocks.add(address, size)
        return DeviceMemory(address, size, Owner(address))

    def deallocate(self, memory: DeviceMemory) -> None:
        self._blocks.remove(memory)
        room = max(-(-memory.size // ALIGNMENT), 1) * ALIGNMENT
        with self._lock:
            gaps = sorted({**self._free, memory.address: room}.items())
            self._free = {}
            for at, gap in gaps:  # neighbouring gaps become one
                last = next(reversed(self._free), None)
                if last is not None and last + self._free[last] == at:
                    self._free[last] += gap
                else:
                    self._free[at] = gap

    def _bytes(self, memory: DeviceMemory) -> memoryview:
        if not isinstance(memory.owner, Owner):
            raise BackendError("a block of another device", remedy="copy it through the host")
        self._blocks.check(memory.owner.address)
        return memoryview(self.machine.memory)[memory.address : memory.address + memory.size]

    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_copy(size, destination.size, source.size)
        self._bytes(destination)[:size] = bytes(self._bytes(source)[:size])

    def synchronous_memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        data = bytes_of(source)
        check_copy(data.size, destination.size, data.size)
        self._bytes(destination)[: data.size] = data.tobytes()

    def synchronous_memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        data = bytes_of(destination)
        check_copy(data.size, data.size, source.size)
        data[:] = np.frombuffer(self._bytes(source)[: data.size], np.uint8)

    def create_stream(self) -> Stream:
        return MachineStream(self)

    def statistics(self) -> AllocatorStatistics:
        return self._blocks.statistics()

    def set_memory_limit(self, limit: int | None) -> None:
        self._blocks.limit(limit)


# --- TransferManager: arrays lie on the device in row-major order, whatever their layout ------------------------------
class MachineTransfers(GenericTransferManager):
    def device_shape(self, shape: Shape) -> Shape:
        return shape.without_layout()


# --- Compiler: HLO → code ---------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Code:
    """The code for one element; parameters and results are arrays of `size` elements, numbered in this order."""

    words: tuple[tuple[str, Any], ...]
    size: int


class MachineCompiler(Compiler[Module]):
    platform_name = NAME

    def __init__(self, device: MachineExecutor):
        self.device = device

    def run_hlo_passes(self, module: Module, options: CompileOptions) -> Module:
        return module

    def compile(self, program: Module, emit_for: EmitFor | None, options: CompileOptions) -> "MachineExecutable":
        return MachineExecutable(program, code_of(program), self.device)


def code_of(module: Module) -> Code:
    """Values stay on the stack, each at the place at which it was made. Raises UnsupportedError."""
    entry, words, places = module.entry, list[tuple[str, Any]](), dict[Instruction, int]()
    sizes = {i.shape.size for i in entry.instructions if i.shape.is_array}
    for i in entry.instructions:
        if i.opcode is Op.TUPLE and i is entry.root:
            continue
        name = i.opcode.value
        if i.shape.dtype is not DType.F32 or len(sizes) != 1 or i.opcode not in (*GIVEN, Op.COPY) and name not in WORDS:
            remedy = "this machine has elementwise f32 arithmetic on arrays of one size"
            raise UnsupportedError(NAME, f"{name}({i.shape.dtype!r})", location=i.location, remedy=remedy)
        if i.opcode is Op.COPY:
            places[i] = places[i.operands[0]]
            continue
        if i.opcode in GIVEN:
            words.append(GIVEN[i.opcode](i))
        else:
            words += [("pick", places[o]) for o in i.operands]
            words.append((name, None))
        places[i] = len(places) - sum(1 for made in places if made.opcode is Op.COPY)
    results = entry.root.operands if entry.root.opcode is Op.TUPLE else (entry.root,)
    for number, i in enumerate(results, len(entry.parameters)):
        words += [("pick", places[i]), ("store", number)]
    return Code(tuple(words), sizes.pop())


def _constant(i: Instruction) -> tuple[str, Any]:
    if i.shape.size != 1:
        raise UnsupportedError(NAME, "constant of several elements", location=i.location, remedy="pass it as an input")
    return "push", float(i.literal.array.reshape(()))


GIVEN = {Op.PARAMETER: lambda i: ("load", i.parameter_number), Op.CONSTANT: _constant}


# --- Executable: inputs to the device, code over all elements, results back -------------------------------------------
class MachineExecutable(Executable):
    platform_name = NAME

    def __init__(self, module: Module, code: Code, device: MachineExecutor):
        self.program, self.code, self.device = module, code, device

    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        *,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        device, transfers = self.device, MachineTransfers(NAME)
        shapes = [shape for _, shape in self.program.result_shape.leaves()]
        given = outputs if outputs is not None else [None] * len(shapes)
        wanted = self.program.parameter_shapes
        if len(inputs) != len(wanted) or len(given) != len(shapes):
            counts = f"{len(inputs)} inputs and {len(given)} outputs"
            raise InputError(f"{counts} for {len(wanted)} parameters and {len(shapes)} results")
        blocks: list[DeviceMemory] = []
        try:
            for x, shape in zip(inputs, wanted, strict=True):
                blocks.append(transfers.transfer_to_device(device, np.asarray(x), shape))
            blocks += [device.allocate(shape.bytes) for shape in shapes]
            for element in range(self.code.size):
                device.machine.run(self.code.words, [b.address for b in blocks], 4 * element)
            found = zip(blocks[len(wanted) :], shapes, given, strict=True)
            return [_kept(transfers.transfer_from_device(device, b, shape), out) for b, shape, out in found]
        finally:
            for block in blocks:
                device.deallocate(block)


def _kept(result: np.ndarray, output: np.ndarray | None) -> np.ndarray:
    """The result, in the caller's array if there is one."""
    if output is None:
        return result
    if output.dtype != result.dtype or output.shape != result.shape:
        raise InputError(f"an output of {output.dtype}{list(output.shape)} for {result.dtype}{list(result.shape)}")
    output[...] = result
    return output


# --- Platform: the four together, and what it has beyond them ---------------------------------------------------------
class StackMachine(Platform):
    name = NAME
    capabilities = frozenset({Capability.STATISTICS, Capability.MEMORY_LIMIT})

    def __init__(self) -> None:
        self._device = MachineExecutor(self)

    def visible_device_count(self) -> int:
        return 1

    def executor(self, ordinal: int = 0) -> MachineExecutor:
        self.check_ordinal(ordinal)
        return self._device

    def compiler(self) -> MachineCompiler:
        return MachineCompiler(self._device)

    def transfer_manager(self) -> MachineTransfers:
        return MachineTransfers(NAME)


if __name__ == "__main__":
    machine = StackMachine()
    text = "ENTRY e {\n  x = f32[3] parameter(0)\n  y = f32[3] multiply(x, x)\n  ROOT r = f32[3] subtract(y, x)\n}\n"
    compiler, options = machine.compiler(), CompileOptions(cache=None)
    executable = compiler.compile(testbed.parse(f"HloModule m\n{text}"), None, options)
    print(*executable.code.words, sep="\n")
    (result,) = executable.execute([np.array([1, 2, 3], np.float32)])
    print(result)
    assert result.tolist() == [0, 2, 6]
