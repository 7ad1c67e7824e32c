"""insert-profile: the program takes a profiler, and profile_start and profile_end stand around each step."""

from __future__ import annotations

from itertools import count

from mlir import ir

from ...hlo.errors import Location, VerificationError
from ..profile_rules import END, START
from ..program import PROFILER, profiler_of, steps_of
from ..read import argument_attributes, location_of
from .bytes_used import is_step
from .canonicalize import functions

WHOLE = ("lhlo.while", "lhlo.case")
"""Ops that are marked as a whole, and the steps inside them by themselves."""


def insert_profile(module: ir.Operation) -> None:
    """Mark kernels, copies, loops and conditionals, and the steps inside those. A program with a profiler stays as it
    is. Raises VerificationError if there is no program.
    """
    programs = [f for f in functions(module) if "lhlo.program" in f.attributes]
    if not programs:
        place = next((location_of(f) for f in functions(module)), None)
        raise VerificationError(
            "no program: a kernel has no steps to mark",
            location=place or Location(1, 1, "<lhlo>"),
            remedy="testbed lhlo makes a program of a kernel",
        )
    for function in programs:
        if profiler_of(function) is None:
            _mark_steps(function, _add_profiler(function))


def _add_profiler(function: ir.Operation) -> ir.Value:
    """Give a function one more argument, a profiler."""
    block, context = function.regions[0].blocks[0], function.context
    attributes = argument_attributes(function, len(block.arguments))
    profiler = block.add_argument(ir.Type.parse(PROFILER, context), function.location)
    type_ = ir.FunctionType.get([a.type for a in block.arguments], [], context)
    function.attributes["function_type"] = ir.TypeAttr.get(type_, context)
    rows = [ir.DictAttr.get(given, context) for given in (*attributes, {})]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(rows, context)
    return profiler


def _mark_steps(function: ir.Operation, profiler: ir.Value) -> None:
    number = count()
    for op in list(steps_of(function.regions[0].blocks[0])):
        if is_step(op) or op.name in WHOLE:
            name = op.attributes["name"].value if "name" in op.attributes else op.name.partition(".")[2]
            attributes = {
                "name": ir.StringAttr.get(name, function.context),
                "id": ir.IntegerAttr.get(ir.IntegerType.get_signless(64, function.context), next(number)),
            }
            for mark, place in ((START, ir.InsertionPoint(op)), (END, ir.InsertionPoint.after(op))):
                ir.Operation.create(mark, operands=[profiler], attributes=attributes, loc=op.location, ip=place)
