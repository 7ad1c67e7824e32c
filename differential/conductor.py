"""Runs of one program on several stacks: each is compiled once, however often it runs.

What compiles a program, and for how long it may, the caller says; a case with a setting runs through outcome.py, which
judges with the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np

from ..backends.base import MemoryFault
from ..formats.program import Program
from ..hlo.errors import OutOfMemoryError, UnsupportedError
from ..hlo.ir import Module
from ..migration.platforms import keeps_subnormals
from ..migration.stacks import Prepared, Run, run_prepared
from .bounds import Bound, Tolerance
from .doubts import doubted_stacks
from .permitted import Permitted
from .verdict import Verdict, judge

Make = Callable[[Program], Prepared]
"""Compiles a program for a stack or a platform."""

Around = Callable[[str], AbstractContextManager[Callable[[str], object]]]
"""What stands around all that a stack does, by its name. It gives a function that is told each step, 'compiles' and
'runs', and may raise Refused.
"""


class Refused(Exception):
    """A stack is not asked again; the text says why."""


class Conductor:
    """refusals: why a stack did not run; stopped: what the checking mode said of it. Neither is asked again."""

    def __init__(self, program: Program, make: Mapping[str, Make], around: Around) -> None:
        self.program, self.make, self.around = program, make, around
        self.refusals: dict[str, str] = {}
        self.stopped: dict[str, str] = {}
        self._prepared: dict[str, Prepared] = {}

    def runs(self, inputs: Sequence[np.ndarray]) -> dict[str, Run]:
        """The run of each stack that runs, by its name."""
        runs: dict[str, Run] = {}
        for name in self.make:
            if name in self.refusals or name in self.stopped:
                continue
            try:
                with self.around(name) as doing:
                    if name not in self._prepared:
                        doing("compiles")
                        self._prepared[name] = self.make[name](self.program)
                    doing("runs")
                    runs[name] = run_prepared(self._prepared[name], inputs)
            except (UnsupportedError, OutOfMemoryError, Refused) as error:
                self.refusals[name] = str(error)
            except MemoryFault as error:
                self.stopped[name] = str(error)
        return runs


def judged(
    module: Module,
    inputs: Sequence[np.ndarray],
    results: Mapping[str, Sequence[np.ndarray]],
    bounds: Sequence[Bound | Tolerance],
    budget: float,
    stacks: Iterable[str],
    xla_flags: str | None = None,
) -> Verdict:
    """The verdict on two results or more. budget: seconds to find out what else the float rules permit; stacks: those
    whose results are among them; xla_flags: of the stack xla, whose word may be doubted (doubts.py).
    """
    permitted = Permitted(module, inputs, budget=budget, subnormals=any(map(keeps_subnormals, stacks)))
    return judge(results, bounds, permitted, doubted_stacks(module, results, xla_flags))
