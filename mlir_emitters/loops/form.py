"""What a form is: a way to emit a class of shapes. It says whether it fits, and then all that its emission has to know.

Forms stand in one table (forms.py), in the order in which they are asked; choice.py asks them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

from ...codegen.forms import Limit
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.facts import Code
from .view import Subject, View


@dataclass(frozen=True, slots=True)
class Fits:
    """A form's answer if it fits. parameters: what it is emitted with; in_steps: whether its loops can run over the
    steps of the view's partition.
    """

    parameters: Any = None
    in_steps: bool = True
    code: Code = Code()


Answer: TypeAlias = Fits | str
"""The other answer: why a form does not fit, in a line."""


def fitting(found: Any, in_steps: bool = True) -> Answer:
    """The answer with what was found; the reason if that is one."""
    return found if isinstance(found, str) else Fits(found, in_steps)


class Results(Enum):
    """Which results a form is for: any, one, or each output of the root, once."""

    ANY, ONE, EACH = range(3)


@dataclass(frozen=True, slots=True)
class Form:
    """name: family/form; why: what it is for. emit: called with an Elemental, the subject, the parameters, and the
    steps (or the group of a device's items) that compute it. opcode: of the root or the products; None: of any.
    """

    name: str
    why: str
    fits: Callable[[View, Subject], Answer]
    emit: Callable[..., None]
    opcode: Op | None = None
    results: Results = Results.ANY
    limits: tuple[Limit, ...] = ()

    def answer(self, view: View, subject: Subject) -> Answer:
        if self.opcode is not None and (subject.is_nest or subject.node.opcode is not self.opcode):
            return self.other
        if self.results is Results.ONE and len(subject.results) != 1:
            return f"it is for one result, not {len(subject.results)}"
        if self.results is Results.EACH and subject.by_number is None:
            return "not each output is one of the results, once"
        return self.fits(view, subject)

    @property
    def other(self) -> str:
        """Why it does not fit what it is not asked about."""
        return "it is for another root" if self.opcode is None else f"it is for a {self.opcode.value}"


def fewer(count: int, what: str, minimum: int) -> str:
    """A reason: there is less than a minimum."""
    return f"{count:,} {what}, fewer than {minimum:,}"


def more(count: int, what: str, maximum: int) -> str:
    """A reason: there is more than a maximum."""
    return f"{count:,} {what}, more than {maximum:,}"
