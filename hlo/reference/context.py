"""What a reference function gets besides its operands: a way to run computations, and the world outside the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..ir import Computation, Instruction

Value = Any
"""An array is an np.ndarray in logical order (dynamic dimensions at present size), a tuple a tuple, a token None."""


class Context(Protocol):
    """What the evaluator offers to the rules of opcodes that call computations or reach outside the module."""

    replica: int
    partition: int

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Run a computation once."""
        ...

    def vectorise(self, computation: Computation, arguments: Sequence[np.ndarray]) -> Value:
        """Run a computation of scalars on arrays that broadcast against each other: once an element, or all at once."""
        ...

    def custom_call(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """Run a registered custom-call target."""
        ...

    def random(self) -> np.random.Generator:
        """The source of `rng`, seeded."""
        ...

    def read_infeed(self) -> Value: ...

    def write_outfeed(self, value: Value) -> None: ...

    def channel(self, number: int) -> list[Value]:
        """The values in flight of a send/recv channel, oldest first."""
        ...


Rule = Callable[[Instruction, Sequence[Value], Context], Value]
