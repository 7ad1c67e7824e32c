"""Addresses of optimised LLVM IR as sums that a device's compiler sees through.

A compiler that makes vectors of work items asks whether neighbouring items read neighbours in memory. Intel's sees this
in a chain of getelementptr in which what changes in a loop comes last, but not in an index that is a sum: then it
gathers, four times as slowly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ADD = re.compile(r"^  (%\S+) = (?:add (?:nuw |nsw )*|or disjoint )i64 (\S+), (\S+)$", re.MULTILINE)
_SCALED = re.compile(r"^  (%\S+) = (mul|shl) (?:nuw |nsw )*i64 (%\S+), (\d+)$", re.MULTILINE)
_ADDRESS = re.compile(
    r"^  (?P<name>%\S+) = getelementptr (?:inbounds |nuw |nusw )*(?P<type>[^,\n]+), "
    r"(?P<pointer>ptr addrspace\(\d+\)) (?P<base>[%@][^\s,]+), i64 (?P<index>%\S+|-?\d+)$",
    re.MULTILINE,
)
_DEFINED = re.compile(r"^  (%\S+) = ", re.MULTILINE)
_FUNCTION = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)


_ANY_ADDRESS = re.compile(
    r"^  (%\S+) = getelementptr (?:inbounds |nuw |nusw )*([^,\n]+), ptr addrspace\(\d+\) ([%@][^\s,]+), i64 (\S+)$",
    re.MULTILINE,
)
_BYTES = {"half": 2, "bfloat": 2, "i16": 2, "float": 4, "i32": 4, "double": 8, "i64": 8}

Term = tuple[str, int]
"""(A value, or a number, what it is multiplied by)."""


def with_chains(text: str, prefix: str = "to") -> str:
    """The module with a getelementptr for each term of an index; of a multiple of a sum, the terms' multiples.

    prefix: of the names of new values.
    """
    return _FUNCTION.sub(lambda found: _Function(found[0], prefix).text(), text)


class _Function:
    """places: the order of values in the text, in which a loop's are behind those of what surrounds it. addresses: name
    → (type, base).
    """

    def __init__(self, text: str, prefix: str):
        self._text, self._prefix = text, prefix
        self._sums = {name: (a, b) for name, a, b in _ADD.findall(text)}
        self._scaled = {
            name: (value, 1 << int(number) if op == "shl" else int(number))
            for name, op, value, number in _SCALED.findall(text)
        }
        self._places = {name: place for place, name in enumerate(_DEFINED.findall(text))}
        self._addresses = {name: (type_, base, index) for name, type_, base, index in _ANY_ADDRESS.findall(text)}

    def text(self) -> str:
        return _ADDRESS.sub(self._chain, self._text)

    def _chain(self, found: re.Match[str]) -> str:
        type_, terms = self._in_elements(found["type"], found["base"], found["index"])
        base = found["base"]
        while base in self._addresses and not any(value.startswith("%") for value, _ in terms):
            before, inner, index = self._addresses[base]
            kind, more = self._in_elements(before, inner, index)
            if kind != type_:
                break
            base, terms = inner, [*more, *terms]
        if base == found["base"] and len(terms) == 1 and type_ == found["type"]:
            return found[0]
        terms.sort(key=lambda term: self._places.get(term[0], -1 if term[0].startswith("%") else -2))
        lines = list[str]()
        for number, (value, factor) in enumerate(terms, 1):
            name = found["name"] if number == len(terms) else f"%{self._prefix}.{found['name'][1:]}.{number}"
            if factor != 1:
                scaled = f"%{self._prefix}.{found['name'][1:]}.{number}.times"
                lines.append(f"  {scaled} = mul i64 {value}, {factor}")
                value = scaled
            lines.append(f"  {name} = getelementptr {type_}, {found['pointer']} {base}, i64 {value}")
            base = name
        return "\n".join(lines)

    def _in_elements(self, type_: str, base: str, index: str) -> tuple[str, list[Term]]:
        """(The type that an address counts in, the terms). Bytes behind the address of an element are counted in such
        elements: a compiler that knows how far neighbours are apart loses it in a sum of elements and bytes.
        """
        if type_ == "i8" and (element := self._element(base)) in _BYTES:
            terms = list(self._terms(index, 1, True))
            size = _BYTES[element]
            if all((factor if value.startswith("%") else int(value) * factor) % size == 0 for value, factor in terms):
                return element, [
                    (v, f // size) if v.startswith("%") else (str(int(v) * f // size), 1) for v, f in terms
                ]
        return type_, list(self._terms(index, 1, False))

    def _element(self, address: str) -> str:
        type_ = "i8"
        while type_ == "i8" and address in self._addresses:
            type_, address, _ = self._addresses[address]
        return type_

    def _terms(self, value: str, factor: int, whole: bool) -> Iterator[Term]:
        """whole: the factors are wanted, also of what is no sum."""
        while value in self._scaled and (whole or self._scaled[value][0] in self._sums):
            value, more = self._scaled[value]
            factor *= more
        if value not in self._sums:
            yield value, factor
            return
        for part in self._sums[value]:
            yield from self._terms(part, factor, whole)
