"""The rules of profiling in a program: where its profiler is, and that profile_start and profile_end make intervals."""

from __future__ import annotations

from mlir import ir

from ..planning.allocation import MOST_MARKS
from .program import CONTROL, memory_arguments, profiler_of
from .read import argument_attributes
from .structure import broken

START, END = "lhlo.profile_start", "lhlo.profile_end"
MARKS = (START, END)


def check_profiler(function: ir.Operation) -> None:
    """PROFILE1: a function takes one profiler at most, the last argument, without attributes; a kernel takes none."""
    if profiler_of(function) is None:
        return
    arguments = list(function.regions[0].blocks[0].arguments)
    if "lhlo.kernel" in function.attributes:
        broken(function, "PROFILE1", "a kernel takes a profiler", "mark steps of a program; testbed lhlo makes one")
    if arguments[:-1] != memory_arguments(function):
        broken(function, "PROFILE1", "a profiler is not the last argument", "take one, behind the memory")
    if argument_attributes(function, len(arguments))[-1]:
        broken(function, "PROFILE1", "a profiler has attributes", "remove them")


def check_mark(op: ir.Operation) -> None:
    """PROFILE2: a profile_start or profile_end has a name and an id from 0, below MOST_MARKS."""
    if not 0 <= _id(op) < MOST_MARKS:
        broken(op, "PROFILE2", f"id = {op.attributes['id']}", f"give a number from 0 to {MOST_MARKS - 1}")


def _id(op: ir.Operation) -> int:
    return int(op.attributes["id"].value)


def check_intervals(function: ir.Operation) -> None:
    """PROFILE3: each profile_end closes the last open profile_start of its region, which has the same name and id; at
    the end of a region none is open. PROFILE4: no two profile_start have the same id.
    """
    _check_block(function.regions[0].blocks[0], set())


def _check_block(block: ir.Block, seen: set[int]) -> None:
    open_: list[ir.Operation] = []
    for op in [o.operation for o in block.operations]:
        if op.name == START:
            if (number := _id(op)) in seen:
                broken(op, "PROFILE4", f"id = {number} is taken", "give every profile_start its own")
            seen.add(number)
            open_.append(op)
        elif op.name == END:
            _close(op, open_)
        elif op.name in CONTROL:
            for region in op.regions:
                _check_block(region.blocks[0], seen)
    if open_:
        broken(open_[-1], "PROFILE3", "never ends in its region", "add an lhlo.profile_end with its name and id")


def _close(op: ir.Operation, open_: list[ir.Operation]) -> None:
    if not open_:
        broken(op, "PROFILE3", "ends what no profile_start in its region began")
    begun = open_.pop()
    if begun.attributes["name"] != op.attributes["name"] or _id(begun) != _id(op):
        what = f"{begun.attributes['name'].value!r} ({_id(begun)})"
        broken(op, "PROFILE3", f"{what} began last", "end what began last first, by its name and id")
