"""What a row's evidence says of each form that its kernels had: of which code, by which method, of how many cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_TEXT = re.compile(r"(\w+) ([\w/-]+): ([0-9a-f]{12}), (.+), (\d+) cases")


@dataclass(frozen=True, slots=True)
class FormEvidence:
    """stack, form: whose code. digest: of its LLVM IR before LLVM's passes, for several processors (gate/code.py).
    method: the weakest by which a kernel of the form was compared: exact, exhaustive, proved (z3), sampled.
    cases: drawn programs with a kernel of the form that were compared.
    """

    stack: str
    form: str
    digest: str
    method: str
    cases: int

    def __str__(self) -> str:
        return f"{self.stack} {self.form}: {self.digest}, {self.method}, {self.cases} cases"

    @staticmethod
    def parse(text: str) -> FormEvidence:
        """The inverse of str. Raises ValueError."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(text)
        return FormEvidence(found[1], found[2], found[3], found[4], int(found[5]))

    @property
    def key(self) -> str:
        return f"{self.stack} {self.form}"


def changed_forms(now: Mapping[str, str], then: Iterable[FormEvidence]) -> list[str]:
    """'STACK FORM' of the forms whose code is another one than the evidence's, or that came or went; sorted.

    now: 'STACK FORM' → digest.
    """
    before = {form.key: form.digest for form in then}
    return sorted(key for key in now.keys() | before.keys() if now.get(key) != before.get(key))
