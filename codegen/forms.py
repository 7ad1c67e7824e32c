"""What a stack says of the form that it gave a kernel, as plain values: for reports, coverage and evidence.

A form is a way to emit a class of shapes. Each stack has a table of its own forms, which it alone reads to decide; this
is only what it tells others.
"""

from __future__ import annotations

from typing import TypeAlias

from ..hlo.records import dataclass

Parameters: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of what a form was given besides the kernel: tile, panel, depth, lanes …"""


@dataclass(frozen=True, slots=True)
class Limit:
    """A number that bounds where a form fits, from below or from above. measure: what is compared, with its unit:
    'rows', 'bytes of B'; `value` fits, and the next integer on the other side does not.
    """

    name: str
    measure: str
    value: int


@dataclass(frozen=True, slots=True)
class Declined:
    """A form that was asked before the one that was chosen. reason: one line."""

    form: str
    reason: str


@dataclass(frozen=True, slots=True)
class Part:
    """How the loops of some results of a kernel are emitted. results: their numbers in the kernel's results."""

    form: str
    results: tuple[int, ...]
    parameters: Parameters = ()
    declined: tuple[Declined, ...] = ()


@dataclass(frozen=True, slots=True)
class ChosenForms:
    """The forms of one kernel. ranged: whether it takes ranges of its partition; passes: the list of LLVM's passes that
    it wants ('full', 'lean', 'glue', see EmitOptions).
    """

    parts: tuple[Part, ...]
    ranged: bool
    passes: str

    @property
    def names(self) -> tuple[str, ...]:
        """The forms' names, each once, in order."""
        return tuple(dict.fromkeys(part.form for part in self.parts))


@dataclass(frozen=True, slots=True)
class FormInfo:
    """A row of a stack's table of forms, for reports. why: what it is for, in a line; limits: what bounds it.
    for_devices: of kernels that groups of a device's items compute.
    """

    name: str
    why: str
    limits: tuple[Limit, ...] = ()
    for_devices: bool = False
