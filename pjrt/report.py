"""What a process of JAX ran on this platform, for `testbed jax`: each kernel's stack and form, its calls and times."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..formats.whole_files import write_whole
from ..profiling.facts import Known, facts_of
from .compile import Compiled

REPORT_VARIABLE = "TESTBED_JAX_REPORT"
"""Names the file that the report is written to when the process ends."""


class Report:
    """The rows of programs that the framework has dropped, and of those that it still holds. Written once."""

    def __init__(self, path: Path):
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.programs = 0
        self.shadows: dict[str, Any] = {"kernels": 0, "differing": {}, "findings": []}

    def take(self, compiled: Compiled) -> None:
        """Note the kernels of a program that has run for the last time."""
        self.programs += 1
        self.rows += rows_of(compiled)

    def write(self, held: Iterable[Compiled]) -> None:
        for compiled in held:
            self.take(compiled)
        text = json.dumps({"programs": self.programs, "kernels": self.rows, "shadows": self.shadows})
        write_whole(self.path, lambda file: file.write(text.encode()))


def rows_of(compiled: Compiled) -> list[dict[str, Any]]:
    """The steps of a program that run kernels, or its kernels where no times were noted: calls and times are None."""
    executable = compiled.executable
    if not executable.has_profile:
        forms = executable.form_names
        kernels = executable.kernels
        return [_row(compiled, name, stack, forms.get(name, ""), "", None, None) for name, stack in kernels]
    steps = facts_of(executable.plan, dict(executable.kernels), executable.program.attributes, executable.form_names)
    known, found = Known(steps), []
    for step in executable.profile().rows:
        facts = known.take(step.name, step.what)
        if step.what == "kernel" and facts is not None:
            source = step.source or step.op_name
            found.append(_row(compiled, step.name, facts.stack, facts.form, source, step.calls, step.total))
    return found


def _row(
    compiled: Compiled, kernel: str, stack: str, form: str, source: str, calls: int | None, nanoseconds: float | None
) -> dict[str, Any]:
    times = {"calls": calls, "nanoseconds": nanoseconds}
    return {"program": compiled.name, "kernel": kernel, "stack": stack, "form": form, "source": source, **times}
