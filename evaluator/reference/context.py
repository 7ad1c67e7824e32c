"""Context: what a reference function can use besides its operands, e.g. to run computations or to read an infeed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from ...hlo.ir import Computation, Instruction
from ...hlo.records import dataclass

Value = Any
"""The value of an instruction.

An array is an np.ndarray in logical order, where a dynamic dimension has its present size; a tuple is a tuple; a
token is None. A result that a start instruction leaves to its done instruction is a Pending.
"""


@dataclass(eq=False)
class Pending:
    """A value that other devices may still have to send. `result` waits for it and then keeps it."""

    finish: Callable[[], Value]
    values: tuple[Value, ...] = ()

    def result(self) -> Value:
        if not self.values:
            self.values = (self.finish(),)
        return self.values[0]


class Context(Protocol):
    """The part of the evaluator that rules use to call computations, to exchange values and for side effects."""

    device: int  # replica · partitions + partition
    rng_state: int  # the 128-bit counter of rng and rng-get-and-update-state

    @property
    def has_ufuncs(self) -> bool:
        """Whether NumPy's own functions compute what a region of one operation does."""
        ...

    @property
    def rng_key(self) -> int:
        """The 64-bit key of rng: the seed in the lower half, the device in the upper half."""
        ...

    @property
    def replicas(self) -> int: ...

    @property
    def partitions(self) -> int: ...

    @property
    def name(self) -> str:
        """The name of this device, for messages."""
        ...

    def name_of(self, device: int) -> str: ...

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Run a computation once."""
        ...

    def vectorise(self, computation: Computation, arguments: Sequence[np.ndarray]) -> Value:
        """Run a computation of scalars on each element of arrays that broadcast against each other.

        A pointwise computation runs once, on the whole arrays.
        """
        ...

    def custom_call(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """Run the function of a custom call's target."""
        ...

    def read_infeed(self) -> Value: ...

    def write_outfeed(self, value: Value) -> None: ...

    def meet(self, instruction: Instruction, members: tuple[int, ...], value: Value) -> Pending:
        """Bring a value to the next meeting of a group. The result is pending: the values of all members, in order."""
        ...

    def post(self, address: Hashable, value: Value) -> None:
        """Send a value to an address."""
        ...

    def collect(self, instruction: Instruction, addresses: Sequence[Hashable], what: str) -> Value:
        """Wait for a value at any of the addresses; an earlier address has priority. what: the wait, for messages."""
        ...
