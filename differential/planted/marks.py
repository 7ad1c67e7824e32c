"""Marks in the healthy testbed: which faults' lines a case runs, so that only these faults are planted for it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from functools import partial
from types import FunctionType

from ...hlo.ir import Module
from ...hlo.opcodes import Op
from .fault import Edit, Fault, Spot, code_of, source_of

RAN: set[str] = set()
"""Names of the faults whose lines ran since this was emptied."""

_NOTE = "_note_that_a_planted_line_runs"


def mark(faults: Iterable[Fault]) -> Callable[[], None]:
    """From now on, this process notes in RAN whenever it runs a statement that an Edit of a fault changes. Returns what
    ends that.
    """
    edits: dict[FunctionType, list[tuple[str, Edit]]] = {}
    undo: list[Callable[[], None]] = []
    for fault in faults:
        for spot in fault.spots:
            if isinstance(spot, Edit):
                edits.setdefault(spot.found(), []).append((fault.name, spot))
    for function, named in edits.items():
        text, first = source_of(function)
        tree = ast.parse(text)
        for name, edit in named:
            _insert(tree, text, edit.right, name)
        ast.increment_lineno(ast.fix_missing_locations(tree), first - 1)
        function.__globals__[_NOTE] = RAN.add
        undo.append(partial(setattr, function, "__code__", function.__code__))
        function.__code__ = code_of(function, tree)

    def end() -> None:
        for restore in undo:
            restore()

    return end


def _insert(tree: ast.Module, text: str, right: str, name: str) -> None:
    """Put a call before the innermost statement that holds a part of the text."""
    start = text.index(right)
    start += len(right) - len(right.lstrip())
    line = text.count("\n", 0, start) + 1
    column = len(text[:start].rpartition("\n")[2].encode())
    found: tuple[list[ast.stmt], ast.stmt] | None = None
    for node in ast.walk(tree):  # outer ones first
        for field in ("body", "orelse", "finalbody"):
            statements: list[ast.stmt] = getattr(node, field, [])
            for statement in statements if isinstance(statements, list) else []:  # that of a lambda is an expression
                ends = (statement.end_lineno or 0, statement.end_col_offset or 0)
                if (statement.lineno, statement.col_offset) <= (line, column) <= ends:
                    found = statements, statement
    assert found is not None, right
    note = ast.parse(f"{_NOTE}({name!r})").body[0]
    found[0].insert(found[0].index(found[1]), note)


def may_show(fault: Fault, module: Module, ran: Collection[str]) -> bool:
    """Whether a fault may change a run of a module in which the marks of `ran` were met: one of its lines ran, or the
    module has an opcode that the fault needs. Never False where the fault shows, but for opcodes that passes make.
    """
    return any(_may_show(spot, fault.name, module, ran) for spot in fault.spots)


def _may_show(spot: Spot | Edit, name: str, module: Module, ran: Collection[str]) -> bool:
    if isinstance(spot, Edit):
        return name in ran
    needs = spot.needs or ((spot.key,) if isinstance(spot.key, Op) else ())
    return not needs or not module.opcodes.isdisjoint(needs)
