"""Addresses of optimised LLVM IR as sums that a device's compiler sees through.

A compiler that makes vectors of work items asks whether neighbouring items read neighbours in memory. Intel's sees this
in a chain of getelementptr in which what changes in a loop comes last, but not in an index that is a sum: then it
gathers, four times as slowly.
"""

from __future__ import annotations

import re

_ADD = re.compile(r"^  (%\S+) = add (?:nuw |nsw )*i64 (\S+), (\S+)$", re.MULTILINE)
_ADDRESS = re.compile(
    r"^  (?P<name>%\S+) = getelementptr (?:inbounds |nuw |nusw )*(?P<type>[^,\n]+), "
    r"(?P<pointer>ptr addrspace\(\d+\)) (?P<base>[%@][^\s,]+), i64 (?P<index>%\S+)$",
    re.MULTILINE,
)
_DEFINED = re.compile(r"^  (%\S+) = ", re.MULTILINE)
_FUNCTION = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)


def with_chains(text: str) -> str:
    """The module with a getelementptr for each term of an index."""
    return _FUNCTION.sub(lambda found: _in_function(found[0]), text)


def _in_function(text: str) -> str:
    sums = {name: (a, b) for name, a, b in _ADD.findall(text)}
    places = {name: place for place, name in enumerate(_DEFINED.findall(text))}
    return _ADDRESS.sub(lambda found: _chain(found, sums, places), text)


def _chain(found: re.Match[str], sums: dict[str, tuple[str, str]], places: dict[str, int]) -> str:
    """places: the order of values in the text, in which a loop's are behind those of what surrounds it."""
    terms = sorted(_terms(found["index"], sums), key=lambda term: places.get(term, -1))
    if len(terms) == 1:
        return found[0]
    lines, base = [], found["base"]
    for number, term in enumerate(terms, 1):
        name = found["name"] if number == len(terms) else f"%to.{found['name'][1:]}.{number}"
        lines.append(f"  {name} = getelementptr {found['type']}, {found['pointer']} {base}, i64 {term}")
        base = name
    return "\n".join(lines)


def _terms(index: str, sums: dict[str, tuple[str, str]]) -> list[str]:
    if index not in sums:
        return [index]
    return [term for part in sums[index] for term in _terms(part, sums)]
