"""Values of several members that a loop carries, as a value for each member.

LLVM's SPIR-V back end ends the process at a phi of a struct, such as the descriptor of an array that two turns of a
loop exchange. The optimiser removes the old phis when nothing reads them any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r'%(?:"[^"\n]*"|[-\w.$]+)'
_PHI = re.compile(rf"^  ({_NAME}) = phi (?=[{{\[])(.*)$", re.MULTILINE)
_INSERT = re.compile(rf"^  ({_NAME}) = insertvalue (?=[{{\[])(.*)$", re.MULTILINE)
_EXTRACT = re.compile(rf"^  ({_NAME}) = extractvalue (?=[{{\[])(.*)$", re.MULTILINE)
_FUNCTION = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)
_INCOMING = re.compile(rf"\[ ([^\s,]+), ({_NAME}) \]")
_PLACE = re.compile(r"(.*?), (\d+(?:, \d+)*)")
_NOTHING = frozenset({"poison", "undef"})

Path = tuple[int, ...]


def with_members(text: str) -> str:
    """The module with a phi for each member of a phi of a struct or an array, where it is known what they are."""
    return _FUNCTION.sub(lambda found: _Function(found[0]).text(), text)


class _Function:
    def __init__(self, text: str):
        self._text = text
        self._inserts = {name: _inserted(rest) for name, rest in _INSERT.findall(text)}
        self._phis: dict[str, tuple[str, list[tuple[str, str]]]] = {}
        for name, rest in _PHI.findall(text):
            kind = _type_at(rest)
            self._phis[name] = kind, _INCOMING.findall(rest[len(kind) :])
        while unknown := [name for name in self._phis if not self._is_known(name)]:
            for name in unknown:
                del self._phis[name]

    def _is_known(self, name: str) -> bool:
        kind, incoming = self._phis[name]
        return all(self._member(value, path) is not None for value, _ in incoming for path, _ in _leaves(kind))

    def _member(self, value: str, path: Path) -> str | None:
        """The value of a member; None if nothing says it."""
        while True:
            if value in _NOTHING:
                return value
            if value in self._phis:
                return _name(value, path)
            if value not in self._inserts:
                return None
            base, given, place = self._inserts[value]
            if path[: len(place)] == place:
                if len(place) == len(path):
                    return given
                value, path = given, path[len(place) :]
            else:
                value = base

    def text(self) -> str:
        if not self._phis:
            return self._text
        return _EXTRACT.sub(self._extracted, _PHI.sub(self._split, self._text))

    def _split(self, found: re.Match[str]) -> str:
        """The phi, and those of its members behind it."""
        if found[1] not in self._phis:
            return found[0]
        kind, incoming = self._phis[found[1]]
        lines = [found[0]]
        for path, member in _leaves(kind):
            values = ", ".join(f"[ {self._member(value, path)}, {block} ]" for value, block in incoming)
            lines.append(f"  {_name(found[1], path)} = phi {member} {values}")
        return "\n".join(lines)

    def _extracted(self, found: re.Match[str]) -> str:
        kind = _type_at(found[2])
        read = _PLACE.fullmatch(found[2][len(kind) :].strip())
        assert read is not None
        value, path = read[1], tuple(map(int, read[2].split(", ")))
        member = dict(_leaves(kind)).get(path)
        if value not in self._phis or member is None:
            return found[0]
        name = _name(value, path)
        return f"  {found[1]} = select i1 true, {member} {name}, {member} {name}"


def _name(phi: str, path: Path) -> str:
    return f'%"member.{phi[1:].strip(chr(34))}.{".".join(map(str, path))}"'


def _inserted(rest: str) -> tuple[str, str, Path]:
    """(the value before, the new member, its place), of what follows `insertvalue`."""
    rest = rest[len(_type_at(rest)) :].strip()
    base = _type_at(rest)  # a name, or a constant in brackets
    behind = rest[len(base) :].lstrip(", ")
    found = _PLACE.fullmatch(behind[len(_type_at(behind)) :].strip())
    assert found is not None
    return base, found[1], tuple(map(int, found[2].split(", ")))


def _type_at(text: str) -> str:
    """The type at the beginning of a text; also the name, or the constant, that a text begins with."""
    if text[0] not in "{[":
        found = re.match(r"ptr addrspace\(\d+\)|[^\s,]+", text)
        assert found is not None
        return found[0]
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "{[") - (letter in "}]")
        if not depth:
            return text[: place + 1]
    raise AssertionError("LLVM's text has a type without an end")


def _leaves(kind: str) -> Iterator[tuple[Path, str]]:
    """(path, type) of each member that is no aggregate."""
    for number, member in enumerate(_members(kind)):
        if member[0] in "{[":
            yield from (((number, *path), leaf) for path, leaf in _leaves(member))
        else:
            yield (number,), member


def _members(kind: str) -> list[str]:
    inside = kind[1:-1].strip()
    if kind[0] == "[":
        count, _, member = inside.partition(" x ")
        return [member] * int(count)
    found, rest = [], inside
    while rest:
        found.append(_type_at(rest if rest[0] in "{[" else rest.split(", ")[0]))
        rest = rest[len(found[-1]) :].lstrip(", ")
    return found
