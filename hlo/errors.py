"""Errors that users see: each says what is wrong, where, and the remedy. The CLI prints one line and exits with 2."""

from __future__ import annotations

from .records import dataclass


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

    message: what is wrong; location: the place in a source text, if any; remedy: what the user can do.
    """

    __test__ = False  # pytest would collect it as a test class because of its name

    def __init__(self, message: str, *, location: Location | None = None, remedy: str | None = None):
        self.message, self.location, self.remedy = message, location, remedy
        super().__init__(message)

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{place}{self.message}{remedy}"


class ParseError(TestbedError):
    """Malformed text; it always has a location. source: the line of text that `location` points into."""

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
    """A module, LHLO program or Plan that can be read but breaks a rule."""


class InputError(TestbedError):
    """Wrong inputs for a module: their number, dtype, shape or file."""


class OutOfMemoryError(TestbedError):
    """There is no memory for an array. what: names it, with its shape; size: its bytes."""

    def __init__(self, what: str, size: int, *, location: Location | None = None):
        self.what, self.size = what, size
        amount = f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size:,} bytes"
        remedy = "testbed show MODULE lists the largest arrays; use smaller ones, or fewer processes at once"
        super().__init__(f"out of memory: {what} takes {amount}", location=location, remedy=remedy)


class UnsupportedError(TestbedError):
    """A stage has no row for an opcode (or opcode × dtype).

    stage: 'evaluator', 'legacy', 'mlir_emitters', …; what: 'floor(f32)', the key that reports group by.
    """

    def __init__(self, stage: str, what: str, *, remedy: str | None = None, location: Location | None = None):
        self.stage, self.what = stage, what
        super().__init__(
            f"{stage} has no {_HAS.get(stage, 'emitter')} for {what}",
            location=location,
            remedy=remedy,
        )


_HAS = {"evaluator": "rule", "ffi": "handler", "xla_kernels": "kernel of XLA's"}
"""What a stage lacks, if that is no emitter."""


class CollectiveError(TestbedError):
    """Simulated devices wait for each other forever, or meet at collectives that do not match."""
