"""Checks that passes preserve meaning: compares a module's results before and after passes on given inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluator.evaluator import evaluate
from ..formats.text.printer import print_instruction
from ..hlo.dtypes import FROM_NUMPY
from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Module
from ..passes.fuel import Fuel, limited
from .bounds import Bound, bounds_of
from .comparison import compare_within, disagreeing
from .permitted import BUDGET, Permitted


@dataclass(frozen=True)
class Meaning:
    """The outputs of a module on some inputs, computed by the evaluator, and what else is permitted."""

    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]
    bounds: tuple[Bound, ...]
    permitted: Permitted

    @staticmethod
    def of(module: Module, inputs: Sequence[np.ndarray], budget: float = BUDGET) -> Meaning:
        """Evaluate a module. Raises UnsupportedError and InputError as the evaluator does. budget: as of Permitted."""
        permitted = Permitted(module, inputs, budget=budget)
        return Meaning(tuple(inputs), tuple(evaluate(module, inputs)), bounds_of(module), permitted)

    def change(self, module: Module) -> str | None:
        """Describe the first result that another module changes by more than the float rules permit; None if none.

        Raises InputError where there was no time to find out what they permit.
        """
        try:
            given = evaluate(module, self.inputs)
        except TestbedError as error:
            return f"the evaluator refuses what it made: {error}"
        if len(given) != len(self.outputs):
            return f"{len(given)} results where there were {len(self.outputs)}"
        for n, (before, after, bound) in enumerate(zip(self.outputs, given, self.bounds, strict=True)):
            found = compare_within(after, before, FROM_NUMPY[before.dtype], bound)
            alike = after.shape == before.shape and after.dtype == before.dtype
            if not found.agrees and not (alike and self._permits(n, before, after, bound)):
                where = f", first at {list(found.first_bad_index)}" if found.first_bad_index is not None else ""
                what = f"{found.failures} elements differ{where}; {found.message}"
                return f"result {n}: {what} (at most {found.max_abs:.3g} apart)"
        return None

    def _permits(self, leaf: int, before: np.ndarray, after: np.ndarray, bound: Bound) -> bool:
        places = disagreeing(after, before, FROM_NUMPY[before.dtype], bound)
        answer = self.permitted.permits(leaf, [after], bound, places)
        if answer is None:
            raise InputError(
                f"undecided: result {leaf} differs in {int(places.sum())} elements, and whether the float rules permit "
                f"that was not found out: {self.permitted.skipped}"
            )
        return answer


@dataclass(frozen=True)
class Culprit:
    """A wrong rewrite. number: among the pass's, from 1. difference: instructions removed (-) and added (+)."""

    number: int
    difference: tuple[str, ...]


def find_rewrite(meaning: Meaning, run: Callable[[Module], Module], before: Module, rewrites: int) -> Culprit:
    """Find, by bisection, the first rewrite after which the results differ.

    run: applies a pass that changes the results with `rewrites` rewrites. A pass without fuel counts as one rewrite.
    """

    def after(limit: int) -> Module:
        with limited(Fuel(limit)):
            return run(before)

    low, high = 0, max(rewrites, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meaning.change(after(middle)) is not None else (middle, high)
    old = {print_instruction(i): None for i in (after(low) if low else before).instructions()}
    new = {print_instruction(i): None for i in after(high).instructions()}
    gone = [f"- {line}" for line in old if line not in new]
    return Culprit(high, (*gone, *(f"+ {line}" for line in new if line not in old)))
