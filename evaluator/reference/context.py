"""What a reference function gets besides its operands: a way to run computations, and the world outside the module."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...hlo.ir import Computation, Instruction

Value = Any
"""An array is an np.ndarray in logical order (dynamic dimensions at present size), a tuple a tuple, a token None.
What a start has begun and its done waits for is a Pending."""


@dataclass(eq=False)
class Pending:
    """A value that other devices may still have to send. `result` waits for it, once."""

    finish: Callable[[], Value]
    values: tuple[Value, ...] = ()

    def result(self) -> Value:
        if not self.values:
            self.values = (self.finish(),)
        return self.values[0]


class Context(Protocol):
    """What the evaluator offers to the rules of opcodes that call computations or reach outside the module."""

    device: int  # replica · partitions + partition
    rng_state: int  # of rng and rng-get-and-update-state, 128 bits

    @property
    def rng_key(self) -> int:
        """Of rng: the seed and the device, 64 bits."""
        ...

    @property
    def replicas(self) -> int: ...

    @property
    def partitions(self) -> int: ...

    @property
    def name(self) -> str:
        """This device, for messages."""
        ...

    def name_of(self, device: int) -> str: ...

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Run a computation once."""
        ...

    def vectorise(self, computation: Computation, arguments: Sequence[np.ndarray]) -> Value:
        """Run a computation of scalars on arrays that broadcast against each other: once an element, or all at once."""
        ...

    def custom_call(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """Run a registered custom-call target."""
        ...

    def read_infeed(self) -> Value: ...

    def write_outfeed(self, value: Value) -> None: ...

    def meet(self, instruction: Instruction, members: tuple[int, ...], value: Value) -> Pending:
        """Bring a value to the next meeting of a group of devices; pending is the list of what its members bring."""
        ...

    def post(self, address: Hashable, value: Value) -> None:
        """Send a value."""
        ...

    def collect(self, instruction: Instruction, addresses: Sequence[Hashable], what: str) -> Value:
        """Wait for a value at one of some addresses, of which the first counts most."""
        ...


Rule = Callable[[Instruction, Sequence[Value], Context], Value]
