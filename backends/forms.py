"""The forms of a compiled program of which a profile is made: as it is, and with marks around what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..hlo.ir import Module
from ..hlo.later import np
from ..planning.plan import Plan
from ..profiling.recorder import Recording
from ..thunks.kinds import SequentialThunk


class Form(Protocol):
    """An executable whose steps can be timed. host_program: how its kernels are called.

    form_names: kernel → the forms in which it is emitted, where that is known.
    is_recording: whether it has marks; what runs noted since the last call is then what `take_events` returns.
    event_cost: nanoseconds that a mark costs in a row of marks.
    """

    @property
    def thunks(self) -> SequentialThunk: ...

    @property
    def program(self) -> Module: ...

    @property
    def kernels(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def form_names(self) -> Mapping[str, str]: ...

    @property
    def is_planned(self) -> bool: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def host_program(self) -> str: ...

    @property
    def is_recording(self) -> bool: ...

    def execute(self, inputs: Sequence[Any]) -> list[np.ndarray]: ...

    def take_events(self) -> list[Recording]: ...

    def event_cost(self) -> float: ...


@dataclass(frozen=True, eq=False, slots=True)
class Forms:
    """plain: without marks. run: with marks around the whole run. steps: around each step as well. empty, empty_run: as
    plain and run, but without steps; their results are undefined, and their calls take what a call takes by itself.
    """

    plain: Form
    run: Form
    steps: Form
    empty: Form
    empty_run: Form
