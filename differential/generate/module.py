"""Draws a whole program: a module, its inputs and the stacks to run it on, from a source of choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...hlo.attributes import Alias, Donor
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from .focus import AGAIN_PERCENT, draw_focus, draw_pair, grow_focus
from .idioms import grow_idiom
from .inputs import Input, array_of
from .program import Body, Limits, Program
from .source import Recorded, Source, blob_of, choices_of
from .table import grow
from .values import Value

KIND = "p"
"""The letter of blobs of whole programs."""


@dataclass(frozen=True)
class Case:
    """A drawn module with inputs, one array for each leaf of its parameters. blob: draws the same again. given: what
    the inputs are made of.
    """

    module: Module
    inputs: list[np.ndarray] = field(repr=False)
    blob: str
    given: tuple[Input, ...] = field(default=(), repr=False)

    def other_inputs(self, number: int) -> list[np.ndarray]:
        """Inputs of the same kinds with other numbers. The kinds are part of the program: it counts on them."""
        pairs = zip(self.given, self.module.entry.parameters, strict=True)
        return [array_of(Input(given.kind, given.seed + number * SEED_STEP), p.shape) for given, p in pairs]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints: without it, all fields of the module."""
        printer.text(repr(self))


MOST_RESULTS = 6
SEED_STEP = 1_000_003
"""Between the seeds of a program's inputs: more than seeds that are drawn.
"""


def draw_case(source: Source, limits: Limits | None = None) -> Case:
    """A case from a source. The module verifies."""
    limits = limits or Limits()
    first = len(source.drawn)
    focus = draw_focus(source, limits)
    program = Program(source, limits, OPSET[focus[-1]].dtypes if focus else None)
    body = Body(program, limits.depth, entry=True)
    body.parameter(program.types[0], program.shapes[0])
    grow_idiom(body)
    most = limits.instructions
    count = source.integer(1, source.choice((min(3, most), min(5, most), most)))  # rather a small one: it is quick
    if focus:
        grow(body, min(count - 1, source.choice((0, 0, 1, 2))))
        grow_focus(body, focus)
        count //= 2
    if len(focus) > 1 and source.chance(AGAIN_PERCENT):
        grow_focus(body, draw_pair(source, limits))
    else:
        grow(body, count)
    results = _results(body)
    root = results[0].instruction if len(results) == 1 else body.tupled(results)
    entry = program.done("main", body.instructions, root)
    module = Module("generated", tuple(program.computations), entry, _header(body, results, root))
    inputs = [array_of(given, p.shape) for given, p in zip(program.inputs, entry.parameters, strict=True)]
    return Case(module, inputs, blob_of(KIND, source.drawn[first:]), tuple(program.inputs))


def again(blob: str, limits: Limits | None = None) -> Case:
    """The case of a blob. Raises InputError where the blob is not one."""
    _, choices = choices_of(blob)
    return draw_case(Recorded(choices), limits)


def _results(body: Body) -> list[Value]:
    """The values that nobody reads, so that everything counts, and sometimes one more."""
    unread = [v for v in body.values if v.instruction not in body.read and v.instruction.opcode is not Op.PARAMETER]
    found = unread[::-1][:MOST_RESULTS] or [body.values[-1]]
    if body.source.chance(25):
        found.append(body.any())
    return found


def _header(body: Body, results: list[Value], root: Instruction) -> dict[str, Any]:
    """Attributes of the header: a schedule in the order of the text, results in the memory of parameters."""
    header: dict[str, Any] = {}
    if body.source.chance(12):
        header["is_scheduled"] = True
    if body.source.chance(25):
        pairs, free = [], list(range(len(results)))
        for p in (i for i in body.instructions if i.opcode is Op.PARAMETER):
            fit = [r for r in free if results[r].instruction.shape == p.shape]
            if fit:
                free.remove(fit[0])
                index = () if len(results) == 1 else (fit[0],)
                kind = body.source.choice(("may-alias", "must-alias"))
                pairs.append(Alias(index, p.parameter_number, (), kind))
        if pairs:
            header["input_output_alias"] = tuple(pairs)
        elif body.source.chance(50):
            header["buffer_donor"] = (Donor(0, ()),)
    return header
