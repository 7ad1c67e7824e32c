"""What programs are to be drawn for after a change: the opcodes and forms to whose code the changed files belong.

`./testbed fuzz --since REV` asks. A file of a stack belongs to the opcodes whose rules it holds, and to the forms whose
`fits` and `emit` need it; one of the evaluator to the opcodes whose rules it holds. What all programs go through has no
opcode of its own: then programs are drawn for everything.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from .dependencies import PACKAGE, ROOT, Checkout
from .selection import EVERYTHING, STACKS, SelectionError, _within, changed_since

TABLES = {
    "legacy": ("legacy.kernel.RULES", "legacy.numerics.elementwise.EMIT"),
    "mlir_emitters": ("mlir_emitters.kernel.RULES", "mlir_emitters.numerics.elementwise.EMIT"),
    "evaluator": ("evaluator.rules.RULES",),
}
"""Room → its tables by opcode, whose rows are functions, or hold them."""

NO_CODE = tuple(
    f"{room}/"
    for room in (
        *("benchmarks", "cli", "differential", "display", "examples", "ffi", "pjrt", "profiling", "tests"),
        *("tools", "xla_kernels"),
    )
)
"""Rooms that drawn programs do not go through."""

GENERATOR = "differential/generate/"

OPCODES = {
    "concatenate": ("concatenate",),
    "convolution": ("convolution",),
    "dot": ("dot",),
    "nest/blocks": ("transpose",),
    "nest/channels": ("slice", "transpose"),
    "nest/tiles": ("transpose",),
    "padded": ("pad",),
    "reduce": ("reduce",),
    "regions": ("concatenate", "pad"),
    "repeated": ("broadcast",),
    "rows": ("reduce", "exponential", "divide"),
    "scatter": ("scatter",),
    "sort": ("sort",),
    "update": ("dynamic-update-slice",),
    "window": ("reduce-window",),
}
"""Form, or family of forms → the opcodes whose kernels have it. Of one without a row, any kernel may be."""

DEVICES = ("groups", "nest/elements")
"""Forms that no kernel of the host has."""


Function: TypeAlias = FunctionType
Table: TypeAlias = Mapping[str, Sequence[Function]]
"""Opcode or form → its functions."""


@dataclass
class Wanted:
    """ops, forms: what changed; (room, form) of forms. why: a line for each file that says something.
    everything: whether programs are to be drawn for all opcodes.
    """

    ops: set[str] = field(default_factory=set)
    forms: set[tuple[str, str]] = field(default_factory=set)
    why: list[str] = field(default_factory=list)
    everything: bool = False


def wanted_since(revision: str, root: Path = ROOT) -> Wanted:
    """What changed since a revision, or since this branch left it. Without that revision: everything."""
    try:
        changed = changed_since(root, revision)
    except SelectionError as error:
        reason = str(error).removeprefix("--changed: ").partition(";")[0]
        return Wanted(everything=True, why=[f"everything: what changed since {revision} is not known: {reason}"])
    return wanted_of(Checkout(root), changed)


def wanted_of(checkout: Checkout, changed: Iterable[str]) -> Wanted:
    """changed: paths relative to the checkout."""
    found, owners = Wanted(), Owners(checkout)
    for file in sorted(changed):
        room = file.partition("/")[0]
        if EVERYTHING.fullmatch(file):
            _take_all(found, f"{file}: all kernels may depend on what is installed")
        elif not file.endswith(".py") or "/" not in file:
            continue
        elif file.startswith(GENERATOR):
            _take_all(found, f"{file}: programs are drawn in another way")
        elif file.startswith(NO_CODE):
            continue
        elif room in TABLES:
            _take(found, owners, file, room)
        else:
            _take_all(found, f"{file}: all programs go through {room}/")
    if not found.why:
        _take_all(found, "no file changed that programs go through")
    return found


def _take_all(found: Wanted, why: str) -> None:
    found.everything = True
    found.why.append(f"everything: {why}")


def _take(found: Wanted, owners: Owners, file: str, room: str) -> None:
    owned = owners.of(file, room)
    if owned is None:
        _take_all(found, f"{file}: all of {room}/ may depend on it")
        return
    ops, forms = owned
    by_form = {form: ops_of_form(form) for form in forms if not form.startswith(DEVICES)}
    loose = sorted(form for form, of in by_form.items() if not of)
    if loose:
        _take_all(found, f"{file}: any kernel may have the form {loose[0]}")
    ops |= {op for of in by_form.values() for op in of}
    found.ops |= ops
    found.forms |= {(room, form) for form in by_form}
    if not by_form and not ops:
        found.why.append(f"{file}: forms of devices only, which are not drawn")
        return
    what = [f"forms {', '.join(sorted(by_form))}"] if by_form else []
    found.why.append(f"{file}: {'; '.join([*what, ', '.join(sorted(ops))])}")


def ops_of_form(form: str) -> tuple[str, ...]:
    return OPCODES.get(form) or OPCODES.get(form.partition("/")[0], ())


class Owners:
    """Which opcodes and forms a file of a room with tables belongs to."""

    def __init__(self, checkout: Checkout):
        self.checkout = checkout
        self._tables: dict[str, Table] = {}

    def of(self, file: str, room: str) -> tuple[set[str], set[str]] | None:
        """(Opcodes, forms): those with a function in the file; where there are none, those that need it. None if no
        row of one of the tables needs it, or most of them do.
        """
        tables = [self._rules(room), self._forms(room) if room in STACKS else {}]
        held = [{row for row, functions in t.items() if file in map(self._file, functions)} for t in tables]
        needing = [{row for row, fs in t.items() if file in self._needed(fs, room, t)} for t in tables]
        found = [own or needs for own, needs in zip(held, needing, strict=True)]
        common = [2 * len(rows) > len(table) > 0 for rows, table in zip(found, tables, strict=True)]
        if held[0]:
            return held[0], set() if common[1] else found[1]
        return None if any(common) or not any(found) else (found[0], found[1])

    def _needed(self, functions: Sequence[Function], room: str, table: Table) -> set[str]:
        """What the files that these functions name need of the room; where a file is about one opcode or one family of
        forms alone, all that it needs.
        """
        homes = set(map(self._file, functions))
        others = {row.partition("/")[0] for row, held in table.items() if homes & set(map(self._file, held))}
        if len(others) == 1:
            return {f for home in homes if home for f in _within(self.checkout, home, room)}
        named = {f for function in functions for f in self._named(function) if f.startswith(room + "/")}
        return {f for start in named for f in _within(self.checkout, start, room)}

    def _named(self, function: Function) -> set[str]:
        """The files of what a function names, and of what functions of its file name that it calls."""
        found, seen, left = set[str](), {function}, [function]
        for reached in left:
            for name in names_of(reached.__code__):
                value = reached.__globals__.get(name)
                if isinstance(value, FunctionType) and value.__globals__ is reached.__globals__:
                    left += {value} - seen
                    seen.add(value)
                    continue
                module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
                file = self._in_checkout(module) if isinstance(module, str) else None
                if file is not None and file != self._file(function):
                    found.add(file)
        return found

    def _file(self, function: Function) -> str | None:
        return self._in_checkout(function.__module__)

    def _in_checkout(self, module: str) -> str | None:
        package, _, rest = module.partition(".")
        return self.checkout.module(tuple(rest.split("."))) if package == PACKAGE else None

    def _forms(self, room: str) -> Table:
        if (kept := self._tables.get(f"{room}.forms")) is not None:
            return kept
        found = {}
        for form in import_module(f"{PACKAGE}.{room}.forms").FORMS:
            found[form.name] = [plain(form.fits), plain(form.emit)]
        return self._tables.setdefault(f"{room}.forms", found)

    def _rules(self, room: str) -> Table:
        if (kept := self._tables.get(room)) is not None:
            return kept
        found: dict[str, list[Function]] = {}
        for name in TABLES[room]:
            module, _, attribute = name.rpartition(".")
            for op, row in getattr(import_module(f"{PACKAGE}.{module}"), attribute).items():
                found.setdefault(op.value, []).extend(functions_of(row))
        return self._tables.setdefault(room, found)


def names_of(code: CodeType) -> set[str]:
    """All names in a function's code, and in that of functions within."""
    inner = (names_of(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def plain(function: Any) -> Function:
    """The function that decorators and partial applications are around."""
    while not isinstance(function, FunctionType):
        function = function.func if isinstance(function, functools.partial) else function.__wrapped__
    return function


def functions_of(row: Any) -> Iterable[Function]:
    """The functions of a row: itself, and what it holds."""
    if is_dataclass(row) and not isinstance(row, type):
        for held in fields(row):
            yield from functions_of(getattr(row, held.name))
    elif isinstance(row, FunctionType | functools.partial):
        yield plain(row)
