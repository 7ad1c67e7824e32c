"""What kernels tell LLVM of their memory, added to the text that MLIR makes: memrefs carry none of it.

Text, because an operation that Python visits takes as long as ten lines. Every address comes from one argument, by way
of the descriptors that MLIR makes of memrefs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...hlo.records import dataclass, field

_DEFINE = re.compile(r'^define\b[^@\n]*@(?:"([^"]*)"|([-\w.$]+))\(')
_RESULT = re.compile(r"^  (%\d+) = (?:getelementptr|insertvalue|extractvalue|addrspacecast|alloca) ")
_POINTER = re.compile(r"\bptr (%\d+|@[-\w.$\"]+)")
_VALUE = re.compile(r" (%\d+)")
_ACCESS = re.compile(r"^  (?:%\d+ = load|store) .*?\bptr (%\d+|@[-\w.$\"]+)(?=, align)")


@dataclass(slots=True)
class _Function:
    """bases: a value → the argument, stack array or constant of which it is an address, or a descriptor.

    scopes: an argument → the numbers of its scope, of the list of it, and of the list of all others.
    """

    bases: dict[str, str]
    constant: frozenset[str]
    scopes: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    everything: int = 0


class _Nodes:
    """New metadata nodes, with numbers from the first that a text does not have."""

    def __init__(self, text: str) -> None:
        self.next = max((int(n) for n in re.findall(r"^!(\d+) = ", text, re.MULTILINE)), default=-1) + 1
        self.lines: list[str] = []

    def add(self, operands: str, distinct: bool = False) -> int:
        number, self.next = self.next, self.next + 1
        self.lines.append(f"!{number} = " + (f"distinct !{{!{number}{operands}}}" if distinct else f"!{{{operands}}}"))
        return number


def annotated(text: str, kinds: Collection[str], written: Mapping[str, Sequence[bool]]) -> str:
    """LLVM IR text whose loads and stores have the metadata of these kinds (codegen/metadata.py).

    written: for each kernel, whether it writes each of its first arguments, which are its arrays.
    """
    if not {"scopes", "invariant"} & set(kinds):
        return text
    nodes = _Nodes(text)
    return "\n".join([*_lines(text, kinds, written, nodes), *nodes.lines]) + "\n"


def _lines(text: str, kinds: Collection[str], written: Mapping[str, Sequence[bool]], nodes: _Nodes) -> Iterator[str]:
    here: _Function | None = None
    nothing = nodes.add("") if "invariant" in kinds else 0
    for line in text.splitlines():
        begins = _DEFINE.match(line)
        if begins is not None:
            here = _begin(written.get(begins[1] or begins[2], ()), kinds, nodes)
        elif line == "}":
            here = None
        elif here is not None and here.bases:
            line += _of_line(here, line, nothing)
        yield line


def _begin(written: Sequence[bool], kinds: Collection[str], nodes: _Nodes) -> _Function:
    arrays = {f"%{n}": is_written for n, is_written in enumerate(written)}
    constant = (n for n, is_written in arrays.items() if "invariant" in kinds and not is_written)
    made = _Function({name: name for name in arrays}, frozenset(constant))
    if "scopes" in kinds and len(arrays) > 1:
        domain = nodes.add("", distinct=True)
        scopes = {name: nodes.add(f", !{domain}", distinct=True) for name in arrays}
        for name, scope in scopes.items():
            others = ", ".join(f"!{s}" for other, s in scopes.items() if other != name)
            made.scopes[name] = scope, nodes.add(f"!{scope}"), nodes.add(others)
        made.everything = nodes.add(", ".join(f"!{s}" for s in scopes.values()))
    return made


def _of_line(here: _Function, line: str, nothing: int) -> str:
    """The metadata of a line; notes of which array an address is."""
    made = _RESULT.match(line)
    if made is not None:
        base = _base(here, line[made.end() :], made[1], " = alloca " in line)
        if base is not None:
            here.bases[made[1]] = base
        return ""
    access = _ACCESS.match(line)
    if access is None:
        return ""
    place = access[1]
    base = place if place.startswith("@") else here.bases.get(place)
    if base is None:
        return ""
    found = f", !invariant.load !{nothing}" if base in here.constant and " = load " in line else ""
    if here.scopes and base in here.scopes:
        _, own, others = here.scopes[base]
        return f"{found}, !alias.scope !{own}, !noalias !{others}"
    return f"{found}, !noalias !{here.everything}" if here.scopes else found


def _base(here: _Function, operands: str, name: str, is_stack: bool) -> str | None:
    if is_stack:
        return name
    pointer = _POINTER.search(operands)
    source = pointer[1] if pointer is not None else None
    if source is None:
        value = _VALUE.search(operands)
        source = value[1] if value is not None else None
    if source is None or source.startswith("@"):
        return source
    return here.bases.get(source)
