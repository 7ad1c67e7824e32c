"""A module that the evaluator runs, behind the interface of a compiled program."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ...evaluator.evaluator import evaluate, evaluate_replicated
from ...formats.text.printer import print_module
from ...hlo.devices import ONE_DEVICE, Devices
from ...hlo.errors import InputError
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ..base import Executable
from ..device import DeviceMemory, Stream
from .device import InterpreterStreamExecutor

MAGIC = b"testbed interpreter 1\n"


class InterpreterExecutable(Executable):
    """A module that the evaluator runs. Threads may call it at the same time; feeds are in the order of the runs."""

    platform_name = "interpreter"

    def __init__(self, module: Module, devices: Devices = ONE_DEVICE):
        self.module = self.program = module
        self._devices = devices
        self._in: list[deque[Any]] = [deque() for _ in range(devices.count)]
        self._out: list[deque[Any]] = [deque() for _ in range(devices.count)]
        self._written, self._reading = threading.Condition(), threading.Lock()
        self._reads = Op.INFEED in module.opcodes

    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        *,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        results = self._run(inputs, 0)
        if outputs is None:
            return results
        if len(outputs) != len(results):
            raise InputError(f"the program returns {len(results)} outputs, given {len(outputs)} arrays for them")
        bounds = [s.dims for _, s in self.module.result_shape.leaves() if s.is_array]
        given = enumerate(zip(outputs, results, bounds, strict=True))
        return [r if o is None else _written(o, r, bound, n) for n, (o, r, bound) in given]

    def _run(self, inputs: Sequence[Any], device: int) -> list[np.ndarray]:
        if self._devices.count > 1:
            remedy = "call execute_replicated(inputs of each device)"
            raise InputError(f"{self.module.name} was compiled for {self._devices}", remedy=remedy)
        fed: list[Any] = []
        given = [np.asarray(x) for x in inputs]
        if not self._reads:
            results = evaluate(self.module, given, outfeed=fed)
        else:
            with self._reading:  # another run goes on with the values behind those of this one
                results = self._run_fed(given, device, fed)
        self._give(device, fed)
        return results

    def _run_fed(self, inputs: list[np.ndarray], device: int, fed: list[Any]) -> list[np.ndarray]:
        """Run on the values of the infeed. Those that were read are taken away, also if the run fails."""
        queue, read = self._in[device], [0]

        def counting(instruction: Instruction, run: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*arguments: Any) -> Any:
                value = run(*arguments)
                read[0] += 1
                return value

            return counted if instruction.opcode is Op.INFEED else run

        try:
            return evaluate(self.module, inputs, infeed=list(queue), outfeed=fed, adjust=counting)
        finally:
            for _ in range(read[0]):
                queue.popleft()

    def execute_replicated(self, inputs: Sequence[Sequence[Any]]) -> list[list[np.ndarray]]:
        """Run once on all devices that the program was compiled for; the results of each. It empties the infeeds."""
        count = self._devices.count
        given = [[np.asarray(x) for x in leaves] for leaves in inputs]
        fed: list[list[Any]] = [[] for _ in range(count)]
        feeds = [[queue.popleft() for _ in range(len(queue))] for queue in self._in]
        replicas, partitions = self._devices.replicas, self._devices.partitions
        results = evaluate_replicated(
            self.module, given, replicas=replicas, partitions=partitions, infeeds=feeds, outfeeds=fed
        )
        for device, values in enumerate(fed):
            self._give(device, values)
        return results

    def execute_async_on_stream(self, stream: Stream, arguments: Sequence[DeviceMemory]) -> list[DeviceMemory]:
        device = stream.executor
        assert isinstance(device, InterpreterStreamExecutor)
        shapes = [leaf for shape in self.module.parameter_shapes for _, leaf in shape.leaves() if leaf.is_array]
        if len(arguments) != len(shapes):
            what = f"{self.module.name} takes {len(shapes)} inputs (tuples count by leaf), {len(arguments)} given"
            raise InputError(what, remedy="give a block of memory for each")
        for number, (memory, shape) in enumerate(zip(arguments, shapes, strict=True)):
            if memory.size < shape.bytes:
                raise InputError(f"input {number}: {shape} needs {shape.bytes} bytes, the block has {memory.size}")
        leaves = [leaf for _, leaf in self.module.result_shape.leaves() if leaf.is_array]
        results = [device.allocate(leaf.bytes) for leaf in leaves]

        def run() -> None:
            inputs = [device.read(m, s) for m, s in zip(arguments, shapes, strict=True)]
            for memory, shape, array in zip(results, leaves, self._run(inputs, 0), strict=True):
                device.write(memory, shape, array)

        stream.enqueue(run)
        return results

    def serialize(self, key: bytes | None = None) -> bytes:
        """The module as HLO text, with a check of its bytes. The trees of a program from JAX are not in it."""
        text = print_module(self.module).encode()
        return MAGIC + _sum(text, key) + text

    # -- feeds ---------------------------------------------------------------------------------------------------------
    def infeed(self, *leaves: Any, device: int = 0) -> None:
        value = [np.array(leaf, order="C") for leaf in leaves]
        forms = [
            [shape for _, shape in i.shape.leaves() if shape.is_array]
            for i in self.module.instructions()
            if i.opcode is Op.INFEED
        ]
        if not any(_fits(value, form) for form in forms):
            takes = " or ".join("(" + ", ".join(str(s.without_layout()) for s in form) + ")" for form in forms)
            given = ", ".join(f"{v.dtype}{list(v.shape)}" for v in value)
            raise InputError(f"the infeed of {self.module.name} takes {takes or 'no value'}, given ({given})")
        self._in[self._device(device)].append(value[0] if len(value) == 1 else tuple(value))

    def outfeed(self, device: int = 0, timeout: float = 0.0) -> list[np.ndarray]:
        end, queue = time.monotonic() + timeout, self._out[self._device(device)]
        with self._written:
            while not queue:
                if not self._written.wait(max(end - time.monotonic(), 0)) and time.monotonic() >= end:
                    raise InputError(f"the outfeed of {self.module.name} is empty", remedy="run the program first")
            return list(_flat(queue.popleft()))

    def _device(self, device: int) -> int:
        if not 0 <= device < self._devices.count:
            raise InputError(f"{self.module.name} has no device {device}", remedy=f"it runs on {self._devices}")
        return device

    def _give(self, device: int, values: Sequence[Any]) -> None:
        with self._written:
            self._out[device].extend(values)
            self._written.notify_all()


def _flat(value: Any) -> list[np.ndarray]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, tuple) else [value]


def _fits(value: Sequence[np.ndarray], form: Sequence[Any]) -> bool:
    """Whether a value has the shapes of a form."""
    if len(value) != len(form):
        return False
    return all(v.dtype == s.dtype.numpy and v.shape == s.dims for v, s in zip(value, form, strict=True))


def _sum(text: bytes, key: bytes | None) -> bytes:
    digest = hashlib.sha256(text) if key is None else hmac.new(key, text, hashlib.sha256)
    return digest.digest()


def read_serialized(data: bytes, key: bytes | None) -> str:
    """The text in `InterpreterExecutable.serialize`. Raises InputError for anything else."""
    start = len(MAGIC) + hashlib.sha256().digest_size
    text = data[start:]
    if not data.startswith(MAGIC) or not hmac.compare_digest(data[len(MAGIC) : start], _sum(text, key)):
        raise InputError(
            "not a program of the interpreter, damaged, or signed with another key",
            remedy="give the bytes of Executable.serialize, and its key",
        )
    return text.decode()


def _written(output: np.ndarray, result: np.ndarray, bound: tuple[int, ...], number: int) -> np.ndarray:
    """Copy the result into the caller's array. Returns the part of the array that holds it."""
    if output.dtype != result.dtype or output.shape != bound:
        raise InputError(
            f"output {number}: expected {result.dtype}{list(bound)}, given {output.dtype}{list(output.shape)}",
            remedy="give an array of that dtype and shape",
        )
    part = output[tuple(slice(0, n) for n in result.shape)]
    part[...] = result
    return output if part.shape == bound else np.ascontiguousarray(part)
