"""Reads the text form of thunks. An error names the line and the column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ..hlo.dtypes import DType
from ..hlo.errors import Location, ParseError
from ..hlo.shapes import Shape
from ..planning.allocation import BufferSlice
from .kinds import Access, BufferUse, Groups, SequentialThunk, Split, Thunk
from .rows import BLOCKS, BY_WORD, MOST_NESTED, REQUIRED, Field, Kind, Type
from .text import LABEL, NAME

_BLANK = re.compile(r"(?:\s|//[^\n]*)*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_NUMBER = re.compile(r"\d{1,19}(?!\w)")
_SHAPE = re.compile(r"(\w+)\[((?:\d{1,18}(?:,(?=\d)|))*)\]")
_DTYPES = {dtype.value: dtype for dtype in DType}
_PIECE = re.compile(r"[A-Za-z_]\w*|->|\S")


def from_text(text: str, file: str = "<thunks>") -> SequentialThunk:
    """The sequence that `to_text` printed. `//` begins a comment. Raises ParseError with the place."""
    reader = _Reader(text, file)
    start = reader.blank()
    thunk = reader.thunk(0)
    if not isinstance(thunk, SequentialThunk):
        raise reader.error("a program is a sequence", "write it in sequence { … }", start)
    if reader.blank() < len(text):
        raise reader.error(f"nothing may follow the program, found {reader.shown()}")
    return thunk


class _Reader:
    def __init__(self, text: str, file: str):
        self.text, self.file, self.at = text, file, 0

    # -- text ----------------------------------------------------------------------------------------------------------
    def blank(self) -> int:
        """The position behind blanks and comments."""
        found = _BLANK.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return self.at

    def taken(self, pattern: re.Pattern[str], what: str) -> str:
        found = pattern.match(self.text, self.blank())
        if found is None:
            raise self.error(f"expected {what}, found {self.shown()}")
        self.at = found.end()
        return found[0]

    def accept(self, words: str) -> bool:
        """Go behind these words if they come next."""
        before = self.at
        for word in words.split():
            for piece in _PIECE.findall(word):
                found = _PIECE.match(self.text, self.blank())
                if found is None or found[0] != piece:
                    self.at = before
                    return False
                self.at = found.end()
        return True

    def expect(self, words: str) -> None:
        if not self.accept(words):
            raise self.error(f"expected {words.strip()!r}, found {self.shown()}")

    def shown(self) -> str:
        found = re.compile(r"[\w.\-]+|\S").match(self.text, self.blank())
        return repr(found[0]) if found else "the end"

    def error(self, what: str, remedy: str | None = None, at: int | None = None) -> ParseError:
        place = self.blank() if at is None else at
        begin = self.text.rfind("\n", 0, place) + 1
        location = Location(self.text.count("\n", 0, place) + 1, place - begin + 1, self.file)
        return ParseError(what, location=location, remedy=remedy, source=self.text[begin:].partition("\n")[0])

    # -- thunks --------------------------------------------------------------------------------------------------------
    def thunk(self, depth: int) -> Thunk:
        start = self.blank()
        if depth > MOST_NESTED:
            raise self.error(f"thunks nest deeper than {MOST_NESTED}")
        found = NAME.match(self.text, start)
        kind = BY_WORD.get(found[0], BY_WORD[""]) if found else BY_WORD[""]
        self.expect(kind.word)
        values = {f.name: self.field(f) for f in kind.fields if f.type not in BLOCKS}
        values |= self.blocks(kind, depth)
        try:
            return kind.thunk(**values)
        except ValueError as error:
            raise self.error(str(error), at=start) from None

    def field(self, field: Field) -> Any:
        if field.before.strip() and not self.accept(field.before):
            if field.default is not REQUIRED:
                return field.default
            self.expect(field.before)
        return _READ[field.type](self, field)

    def blocks(self, kind: Kind, depth: int) -> dict[str, Any]:
        fields = [f for f in kind.fields if f.type in BLOCKS]
        values: dict[str, Any] = {}
        if not fields:
            return values
        self.expect("{")
        for field in fields:
            if field.type is Type.SEQUENCE:
                values[field.name] = self.sequence(depth)
                continue
            inner = []
            while self.blank() < len(self.text) and self.text[self.at] != "}":
                inner.append(self.sequence(depth) if field.type is Type.SEQUENCES else self.thunk(depth + 1))
            values[field.name] = tuple(inner)
        self.expect("}")
        return values

    def sequence(self, depth: int) -> SequentialThunk:
        start = self.blank()
        if self.text.startswith("}", start):
            raise self.error("expected a sequence, found '}'")
        thunk = self.thunk(depth + 1)
        if not isinstance(thunk, SequentialThunk):
            raise self.error("expected a sequence", "write its thunks in NAME { … }", start)
        return thunk

    # -- values --------------------------------------------------------------------------------------------------------
    def name(self, pattern: re.Pattern[str] = NAME) -> str:
        start = self.blank()
        if not self.text.startswith('"', start):
            return self.taken(pattern, "a name")
        try:
            return str(json.loads(self.taken(_STRING, "a name")))
        except json.JSONDecodeError as error:
            raise self.error(f"not a JSON string: {error.msg}", at=start) from None

    def number(self) -> int:
        return int(self.taken(_NUMBER, "a number"))

    def slice(self) -> BufferSlice:
        start = self.blank()
        allocation = self.number()
        self.expect("[")
        begin = self.number()
        self.expect(":")
        end = self.number()
        self.expect("]")
        if end < begin:
            raise self.error(f"the slice ends at {end}, before it begins", at=start)
        return BufferSlice(allocation, begin, end - begin)

    def flag(self, field: Field) -> bool:
        for word, value in zip(field.words, (True, False)):
            if self.accept(word):
                return value
        raise self.error(f"expected {' or '.join(field.words)}, found {self.shown()}")

    def shape(self) -> Shape:
        start = self.blank()
        found = _SHAPE.fullmatch(self.name())
        dtype = _DTYPES.get(found[1]) if found else None
        if found is None or dtype is None:
            raise self.error('expected the shape of an array, such as "f32[2,3]"', at=start)
        return Shape(dtype, tuple(int(n) for n in found[2].split(",") if n))

    def groups(self) -> Groups:
        groups: list[tuple[int, ...]] = []
        self.expect("{")
        while not self.accept("}"):
            if groups:
                self.expect(",")
            group: list[int] = []
            self.expect("{")
            while not self.accept("}"):
                if group:
                    self.expect(",")
                group.append(self.number())
            groups.append(tuple(group))
        return tuple(groups)

    def split(self) -> Split:
        start = self.blank()
        extent = self.number()
        self.expect("by")
        least = self.number()
        try:
            return Split(extent, least, self.number() if self.accept("private") else 0)
        except ValueError as error:
            raise self.error(str(error), at=start) from None

    def uses(self) -> tuple[BufferUse, ...]:
        self.expect("(")
        found: list[BufferUse] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            access = next((a for a in Access if self.accept(a.value)), None)
            if access is None:
                raise self.error(f"expected read or write, found {self.shown()}")
            found.append(BufferUse(self.slice(), access))
        return tuple(found)


_READ: dict[Type, Callable[[_Reader, Field], Any]] = {
    Type.NAME: lambda reader, field: reader.name(),
    Type.LABEL: lambda reader, field: reader.name(LABEL),
    Type.NUMBER: lambda reader, field: reader.number(),
    Type.FLAG: lambda reader, field: reader.flag(field),
    Type.SHAPE: lambda reader, field: reader.shape(),
    Type.GROUPS: lambda reader, field: reader.groups(),
    Type.SLICE: lambda reader, field: reader.slice(),
    Type.SPLIT: lambda reader, field: reader.split(),
    Type.USES: lambda reader, field: reader.uses(),
}
