"""What XLA's float rules leave open in a program on given inputs: results of an oracle that chooses otherwise.

A bound knows the module, not the values: whether partial sums overflow, and what cancellation leaves, depends on the
inputs. Where a result lies beyond its bound, the oracle is therefore run again, and again, with other choices where the
rules leave one:

- A sum (reduction, window, scatter, dot, convolution) has any order, and its products are fused or not. It is off by
  the steps that bounds.py counts, times the magnitudes of its terms. It becomes +inf only where its positive terms
  alone exceed the largest finite number, -inf only where its negative terms do, NaN only where one may meet the other.
  A sum that is 0 has either sign. Products and partial sums that are subnormal may be flushed.
- An op that bounds.py counts as inexact is off by as much as it counts; what it defers is due where it is used.
- A transform, factorisation, solver or batch norm is off by what its steps count in each operand and relative to its
  largest result. A Fourier transform joins elements in any way: where one of them is not finite, or their magnitudes
  together exceed the largest finite number, each part of its results may be NaN or infinite. The variance of a batch
  norm is off relative to the mean square, from which XLA subtracts the square of the mean, and with it what is
  normalised by it.
- A function of a complex number of which a part is NaN: what is not NaN of its result (an infinity, a zero, π/2) has
  either sign, as C leaves it open for some of them.
- A complex power has any direction that a few ulp of its angle, c·arg x + d·log |x|, turn it to. Where the angle is
  large, that is every direction.
- A maximum or minimum passes a subnormal on, or 0: LLVM returns the operand itself beside a constant that is neutral.
- A remainder by a subnormal is NaN, as by 0, or what it is of exact numbers: the C library's fmod decides, which takes
  the bits as they are from glibc 2.38 on.
- Arithmetic takes a subnormal of f16 or bf16 for itself or for 0: code computes with it in f32, where it is a normal
  number, but LLVM folds constants in the narrow type, whose subnormals may be flushed.

A result is permitted if one of the runs has it, or if it lies within the bound of a number between those of the runs.
Infinities, NaN, signs of zeros and integers are permitted only where a run has the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from ..evaluator.evaluator import evaluate
from ..hlo.dtypes import FROM_NUMPY
from ..hlo.errors import TestbedError
from ..hlo.ir import Instruction, Module
from ..hlo.opcodes import Op
from .bounds import Bound, Error, Tolerance, errors_of_each
from .choices import RUNS, Choices
from .comparison import disagreeing
from .feeding import part_feeding

BUDGET = 20.0
"""Seconds that a command spends on these runs; what needs more stays undecided."""


class _Part:
    """What feeds some result leaves, and the results of its runs so far. place: of each leaf in them."""

    def __init__(self, module: Module, leaves: Collection[int]):
        self.module, self.place = part_feeding(module, leaves)
        at_work = (i for i in self.module.instructions() if i.opcode is not Op.PARAMETER)
        shapes = (s for i in at_work for x in (i, *i.operands) for _, s in x.shape.leaves() if s.is_array)
        self.is_open = any(s.dtype.is_float or s.dtype.is_complex for s in shapes)
        """Whether the rules leave anything open: they do of floats only."""
        self.runs: list[list[np.ndarray]] = []
        self.seconds = 0.0

    @cached_property
    def errors(self) -> dict[Instruction, Error]:
        return errors_of_each(self.module)


class Permitted:
    """The results that are permitted for a program on inputs; computed when they are asked for.

    Only the part of the program that feeds the results in question is run, and no more often than the answer needs.

    rounding: False for a program whose arithmetic is exact on these inputs, whatever the order. budget: seconds for
    the runs; where they are over before the answer is known, it stays open. subnormals: some of what is compared ran
    where arithmetic takes subnormals for what they are; so does every other pair of runs.
    """

    def __init__(
        self,
        module: Module,
        inputs: Sequence[np.ndarray],
        *,
        rounding: bool = True,
        budget: float = float("inf"),
        subnormals: bool = False,
    ):
        self.module, self.inputs, self.rounding, self.budget = module, inputs, rounding, budget
        self.subnormals = subnormals
        self.skipped: str | None = None
        """Why an answer stayed open, if one did."""
        self._parts: dict[int, _Part] = {}

    def ask_about(self, leaves: Collection[int]) -> None:
        """Say which leaves will be asked about, so that one part of the program is run for all of them."""
        new = [leaf for leaf in leaves if leaf not in self._parts]
        if new:
            self._parts.update(dict.fromkeys(new, _Part(self.module, new)))

    def permits(
        self, leaf: int, values: Sequence[np.ndarray], bound: Bound | Tolerance, places: np.ndarray
    ) -> bool | None:
        """Whether values of a result leaf are permitted at these places; None if there was no time to find out."""
        self.ask_about([leaf])
        part = self._parts[leaf]
        if not part.is_open:
            return False
        while True:
            done = len(part.runs)
            if done in _ASKED_AFTER and not any((_forbidden(part, leaf, v, bound) & places).any() for v in values):
                return True
            if done == RUNS:
                return False
            if not self._run(part):
                return None

    def forbids(self, leaf: int, value: np.ndarray, bound: Bound | Tolerance) -> np.ndarray:
        """Which elements of a value of a result leaf are not permitted; all, if there was no time to find out."""
        self.ask_about([leaf])
        part = self._parts[leaf]
        while len(part.runs) < RUNS:
            if not self._run(part):
                return np.ones(value.shape, bool)
        return _forbidden(part, leaf, value, bound)

    def _run(self, part: _Part) -> bool:
        """Run a part once more, with the next choices; False if that is not possible, which `skipped` explains."""
        number, start = len(part.runs), time.monotonic()
        spent = sum(p.seconds for p in set(self._parts.values()))
        if spent >= self.budget or (number and spent + part.seconds / number > self.budget):
            self.skipped = self._too_long(part)
            return False
        choices, kept = Choices(part.errors, number, self.rounding), self.subnormals and number // 2 % 2 == 1
        try:
            results = evaluate(part.module, self.inputs, adjust=choices.adjust, flush_subnormals=not kept)
        except TestbedError as error:
            self.skipped = f"the evaluator does not run the program: {error}"
            return False
        part.runs.append(results)
        part.seconds += time.monotonic() - start
        return True

    def _too_long(self, part: _Part) -> str:
        if not part.runs:
            return f"{RUNS} more runs of the evaluator need more than {self.budget:g} s; {MORE_TIME.format('SECONDS')}"
        needed = part.seconds / len(part.runs) * RUNS
        more = MORE_TIME.format(math.ceil(self.budget + 1.5 * needed))
        return f"{RUNS} more runs of the evaluator would take {needed:.0f} s of {self.budget:g} s; {more}"


MORE_TIME = "--patience {} gives them more time"

_ASKED_AFTER = (2, 4, 8, 16, RUNS)
"""After how many runs it is looked whether they permit a result already: what some permit, more do not forbid."""


def _forbidden(part: _Part, leaf: int, value: np.ndarray, bound: Bound | Tolerance) -> np.ndarray:
    """Which elements of a value the runs of a part so far do not permit."""
    found, dtype = [run[part.place[leaf]] for run in part.runs], FROM_NUMPY[value.dtype]
    if dtype.is_float or dtype.is_complex:
        return disagreeing(value, _nearest(value, found), dtype, bound)
    return np.logical_and.reduce([value != other for other in found])


def _nearest(value: np.ndarray, found: Sequence[np.ndarray]) -> np.ndarray:
    """What is nearest to a value, part by part: itself, if it was found, else a number between those found."""
    if value.dtype.kind == "c":
        out = np.empty_like(value)
        out.real = _nearest(value.real, [x.real for x in found])
        out.imag = _nearest(value.imag, [x.imag for x in found])
        return out
    a, values = value.astype(np.float64), np.stack([x.astype(np.float64) for x in found])
    same = (values == a) & (np.signbit(values) == np.signbit(a)) | np.isnan(values) & np.isnan(a)
    finite = np.isfinite(values)
    low, high = values.min(0, initial=np.inf, where=finite), values.max(0, initial=-np.inf, where=finite)
    with np.errstate(all="ignore"):
        inside = np.where(finite.any(0), np.minimum(np.fmax(a, low), high), values[0])
        return np.where(same.any(0), value, inside.astype(value.dtype))
