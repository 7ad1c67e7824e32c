"""Draws: a field for a kernel, and its operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ...codegen.field.element import Field
from ...evaluator.elements import Elements
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ..fake_inputs import fake_inputs
from .integers import Integers, redrawn

INTEGERS = 1 << 20
"""Integers below this in magnitude keep their order where a draw has a small twist: the field has them all."""

CROWD = (0, 1, -1, 2)
"""Elements of a crowded draw, besides one at random: they tie, and are zeros and ones of masks and comparisons."""

WIDE, NARROW = 1 << 30, 1 << 12
"""Primes above the first need few draws; those below the second, of types of 8 bits, many: an element that is wrong is
right by chance in one of about 200.
"""


@dataclass(frozen=True)
class Draw:
    """One field and its operands. crowded: these are few different elements."""

    field: Field
    crowded: bool
    integers: Integers
    seed: int

    @property
    def keeps_order(self) -> bool:
        """Whether integers below INTEGERS have the order of their elements, or all integers of the type do."""
        return self.field.twist <= max(1, self.field.prime // (2 * INTEGERS))

    @property
    def elements(self) -> Elements:
        f = self.field
        return Elements(f.prime, f.twist, f.seed, f.lowest, f.mantissa)

    def inputs(self, module: Module) -> list[np.ndarray]:
        """An array for each parameter: elements in place of floats, and integers as for any test."""
        random = np.random.Generator(np.random.PCG64(self.seed))
        leaves = [(p, n, s.dtype) for p in module.entry.parameters for n, s in p.shape.leaves() if s.is_array]
        made = zip(fake_inputs(module, self.seed), leaves, strict=True)
        return [
            redrawn(x, dtype, self.integers, (module, p, n), random)
            if dtype.is_integer
            else self._array(x, dtype, random)
            for x, (p, n, dtype) in made
        ]

    def _array(self, x: np.ndarray, dtype: DType, random: np.random.Generator) -> np.ndarray:
        if dtype.is_complex:
            part = np.zeros(x.shape, dtype.component.numpy)
            real, imaginary = (self._array(part, dtype.component, random) for _ in range(2))
            return (real + 1j * imaginary).astype(dtype.numpy)
        if not dtype.is_float:
            return x
        p = self.field.prime
        if self.crowded:
            few = np.array([*(n % p for n in CROWD), random.integers(p)], np.uint64)
            v = random.choice(few, x.shape)
        else:
            v = random.integers(0, p, x.shape, np.uint64)
        return self.elements.write(np.asarray(v, np.uint64), dtype.numpy)


def draws(instruction: Instruction, seed: int = 0) -> Iterator[Draw]:
    """The draws of a kernel."""
    return draws_of(float_types(instruction), seed)


def draws_of(types: frozenset[DType], seed: int = 0) -> Iterator[Draw]:
    """The draws of what has these float types. The first keeps integers in order; another twist takes all branches of
    comparisons.
    """
    lowest, mantissa, prime = format_of(types)
    random = np.random.Generator(np.random.PCG64([seed, prime]))
    small = int(random.integers(1, max(2, prime // (2 * INTEGERS))))
    middle = int(random.integers(prime // 8, prime // 3))
    functions = int(random.integers(1 << 32))
    first, second = (Field(prime, k, functions, lowest, mantissa) for k in (small, max(middle, 1)))
    yield Draw(first, False, Integers.USUAL, seed)
    yield Draw(second, False, Integers.ANY, seed + 1)
    yield Draw(second, True, Integers.ENDS, seed + 2)
    for more in range(1 if NARROW <= prime < WIDE else 5 if prime < NARROW else 0):
        yield Draw(second if more % 2 else first, False, Integers.USUAL, seed + 3 + more)


def float_types(instruction: Instruction) -> frozenset[DType]:
    """The float types of a kernel, also within it."""
    found = set[DType]()
    left = [instruction]
    while left:
        i = left.pop()
        for shape in (i.shape, *(o.shape for o in i.operands)):
            found.update(leaf.dtype.component for _, leaf in shape.leaves() if leaf.is_array)
        left += [inner for c in i.called() for inner in c.instructions]
    return frozenset(d for d in found if d.is_float)


def format_of(types: Sequence[DType] | frozenset[DType]) -> tuple[int, int, int]:
    """(Lowest exponent, bits of the mantissa, prime) of a field whose elements are normal numbers of all types."""
    lowest, highest, mantissa = -126, 127, 23
    for dtype in types:
        about = ml_dtypes.finfo(dtype.numpy)
        lowest = max(lowest, int(about.minexp))
        top = int(np.frexp(float(about.max))[1]) - 1
        whole = float(about.max) >= (2 - 2.0**-about.nmant) * 2.0**top
        highest, mantissa = min(highest, top if whole else top - 1), min(mantissa, int(about.nmant))
    return lowest, mantissa, _prime_up_to(2 * ((highest - lowest + 1) << mantissa) + 1)


def _prime_up_to(n: int) -> int:
    return next(p for p in range(n, 1, -1) if _is_prime(p))


def _is_prime(n: int) -> bool:
    """Miller and Rabin's test, which is exact below 2**32 for these bases."""
    if n < 2 or any(n % q == 0 for q in (2, 3, 5, 7)):
        return n in (2, 3, 5, 7)
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(
        (x := pow(base, odd, n)) in (1, n - 1) or any((x := x * x % n) == n - 1 for _ in range(twos - 1))
        for base in (2, 3, 5, 7)
    )
