"""One round of a hunt: Hypothesis' engine draws tasks until one is a new finding, and shrinks that."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import ExampleDatabase, InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import Flaky
from hypothesis.internal.conjecture.data import ConjectureData, ConjectureResult
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.internal.escalation import InterestingOrigin

from ..generate.source import choices_of
from ..generate.strategy import Drawn
from ..outcome import Outcome
from .cause import Cause, ended, units_in
from .task import Orders, Task, draw_task

Judge = Callable[[Task], Outcome]
KEY = b"tasks"

SHRINK_SECONDS = 60.0
"""How long a finding is made smaller at most; then the smallest one is kept."""


class Found(Exception):
    """Marks what Hypothesis shrinks."""


class _Over(BaseException):
    """The time for drawing or shrinking is over."""


@dataclass(frozen=True)
class Catch:
    """The smallest task of a finding so far. size: the number of its choices."""

    task: Task
    outcome: Outcome
    size: int


@dataclass
class Round:
    """Draws tasks and keeps the smallest one of the first new finding. stop: says when to end."""

    orders: Orders
    judge: Judge
    known: Sequence[Cause]
    stop: Callable[[], bool]
    on_smaller: Callable[[Catch], None] = lambda catch: None
    shrink_seconds: float = SHRINK_SECONDS
    caught: Catch | None = None
    explained: list[Cause] = field(default_factory=list)
    _since: float = 0.0
    _over: bool = False

    def run(self, examples: int, seed: int, database: ExampleDatabase | None = None) -> Catch | None:
        """Draw `examples` tasks at most. database: keeps what went wrong, for the next round."""
        self._run(settings(_QUIET, max_examples=examples, database=database), seed)
        return self.caught

    def shrink(self, blob: str) -> Catch | None:
        """Make the task of a blob smaller; None if it is no finding now."""
        kept = InMemoryExampleDatabase()
        _, choices = choices_of(blob)
        # One choice too many: what comes from the database exactly, Hypothesis takes for already shrunk.
        kept.save(KEY, choices_to_bytes([*choices, 0]))
        self._run(settings(_QUIET, database=kept, phases=(Phase.reuse, Phase.shrink)), 0)
        return self.caught

    def _run(self, how: settings, seed: int) -> None:
        key = KEY if how.database is not None else None
        try:
            _Runner(self._try, settings=how, random=Random(seed), database_key=key).run()
        except (_Over, Flaky):
            if not self._over:  # Hypothesis takes an early end for a strategy that changes its mind
                raise

    def _try(self, data: ConjectureData) -> None:
        if self.stop() or (self.caught and time.monotonic() - self._since > self.shrink_seconds):
            self._over = True
            raise _Over
        source = Drawn(data)
        task = draw_task(source, self.orders)
        outcome = self.judge(task)
        if self._is_new(task, outcome):
            if self.caught is None:
                self._since = time.monotonic()
            size = len(source.drawn)
            if self.caught is None or size <= self.caught.size:
                self.caught = Catch(task, outcome, size)
                self.on_smaller(self.caught)
            data.mark_interesting(_ORIGIN)

    def _is_new(self, task: Task, outcome: Outcome) -> bool:
        """Whether it is the finding that is being shrunk, or any new one before there is one."""
        if not outcome.is_finding:
            return False
        if self.caught is not None:
            return ended(outcome) == ended(self.caught.outcome)
        same = [cause for cause in self.known if cause.explains(outcome, units_in(task.case.module))]
        self.explained += same[:1]
        return not same


class _Runner(ConjectureRunner):
    """Hypothesis' engine without its mutations, which repeat parts of a test case: five of six tasks would be copies of
    one another, and rare combinations of opcode, type and size would take as many times longer to meet.
    """

    def generate_mutations_from(self, data: ConjectureData | ConjectureResult) -> None:
        """Nothing."""


_ORIGIN = InterestingOrigin(Found, __file__, 0, (), ())
_QUIET = settings(
    deadline=None,
    verbosity=Verbosity.quiet,
    suppress_health_check=list(HealthCheck),
    derandomize=False,
    print_blob=False,
    phases=(Phase.reuse, Phase.generate, Phase.shrink),
)
