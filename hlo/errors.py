"""Errors that users meet: each says what, where and the remedy. The CLI prints them on one line and exits 2."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a source text. `line` and `column` count from 1."""

    line: int
    column: int
    file: str = "<string>"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TestbedError(Exception):
    """Base of every error that bad input or an impossible request may cause.

    message: what is wrong; location: where, if it has a place; remedy: what the user may do.
    """

    __test__ = False  # not a pytest class, whatever its name says

    def __init__(self, message: str, *, location: Location | None = None, remedy: str | None = None):
        self.message, self.location, self.remedy = message, location, remedy
        super().__init__(message)

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{place}{self.message}{remedy}"


class ParseError(TestbedError):
    """Malformed text; always located. source: the line of text that `location` points into."""

    def __init__(self, message: str, *, location: Location | None = None, remedy: str | None = None, source: str = ""):
        self.source = source
        super().__init__(message, location=location, remedy=remedy)

    def snippet(self, width: int = 120) -> str:
        """The line and a caret under the column, cut to `width` characters around the caret; '' without a source."""
        if not self.source or self.location is None:
            return ""
        column = self.location.column - 1
        start = max(0, min(column - width // 2, len(self.source) - width))
        line = self.source[start : start + width]
        blanks = "".join("\t" if c == "\t" else " " for c in line[: column - start])
        return f"{line}\n{blanks}^"


class VerificationError(TestbedError):
    """A module that parses but breaks a rule of HLO, LHLO or a plan."""


class InputError(TestbedError):
    """Wrong inputs for a module: their number, dtype, shape or file."""


class UnsupportedError(TestbedError):
    """A stage has no row for an opcode (or opcode × dtype).

    stage: 'evaluator', 'legacy', 'mlir_emitters', …; what: 'floor(f32)', the key that reports group by.
    """

    def __init__(self, stage: str, what: str, *, remedy: str | None = None, location: Location | None = None):
        self.stage, self.what = stage, what
        super().__init__(
            f"{stage} has no emitter for {what}" if stage != "evaluator" else f"evaluator has no rule for {what}",
            location=location,
            remedy=remedy,
        )


class CollectiveError(TestbedError):
    """Devices that wait for each other for ever, or that meet at collectives which do not belong together."""
