"""Programs made from those of a corpus: a few edits, and drawn ops that read its values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ...formats.program import read_bytes
from ...hlo.errors import InputError, TestbedError
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from ...hlo.verify.verifier import verify
from ...migration.programs import load_any
from ..bounds import NONE, Error, errors_of_each
from ..fake_inputs import fake_inputs
from .edits import EDITS
from .module import Case
from .program import Body, Limits, Program
from .source import Source, blob_of
from .table import NOT_DRAWN, grow
from .values import DRAWN, continuous

KIND = "e"
"""The letter of blobs of edited programs."""

MOST_INSTRUCTIONS, MOST_ELEMENTS = 120, 1 << 14
"""Of a module that is edited, so that many run in a second."""

MOST_EDITS, MOST_DRAWN, REFUSALS = 3, 3, 20
"""Edits of a case, ops that are drawn into it, and edits that may be refused."""

SUFFIXES = ("*.hlo", "*.txt")


@dataclass(frozen=True)
class Corpus:
    """Modules to edit. left_out: how many of the folder are too large, or not for this."""

    modules: tuple[Module, ...]
    left_out: int


@cache
def read_corpus(folder: str) -> Corpus:
    """The modules in a folder, in the order of their names. Raises InputError if there is none to edit."""
    files = sorted(f for pattern in SUFFIXES for f in Path(folder).rglob(pattern))
    found = [module for module in map(_module, files) if module is not None]
    if not found:
        raise InputError(f"{folder}: no module to edit", remedy="give a folder with small modules in HLO text")
    return Corpus(tuple(found), len(files) - len(found))


def _module(file: Path) -> Module | None:
    """A module, if it can be edited and judged."""
    try:
        module = load_any(read_bytes(file), str(file)).module
        return module if _is_small(module) and is_steady(module) else None
    except TestbedError:  # a file of another kind
        return None


def _is_small(module: Module) -> bool:
    made = list(module.instructions())
    shapes = [s for i in made for _, s in i.shape.leaves()]
    plain = not any(i.opcode in UNFIT or (i.opcode is Op.CONSTANT and i.literal.is_elided) for i in made)
    return plain and len(made) <= MOST_INSTRUCTIONS and all(s.size <= MOST_ELEMENTS for s in shapes if s.is_array)


UNFIT = {op for op, why in NOT_DRAWN.items() if not why.startswith("drawn")}
"""Opcodes that make a program unfit: they need another side, or keep a state."""


def draw_edited(source: Source, corpus: Corpus, limits: Limits) -> Case:
    """A module of the corpus after some edits, with a few drawn ops, on made inputs. The module verifies."""
    first = len(source.drawn)
    module = source.choice(corpus.modules)
    module = edited(module, source, source.integer(1, MOST_EDITS))
    module = _grown(module, source, limits)
    inputs = fake_inputs(module, source.integer(0, 255))
    return Case(module, inputs, blob_of(KIND, source.drawn[first:]))


def edited(module: Module, source: Source, count: int) -> Module:
    """The module after `count` edits, or fewer where too many are refused; it verifies, and is steady if it was."""
    steady, refused = is_steady(module), 0
    while count and refused < REFUSALS:
        try:
            with source.part():
                changed = source.choice(EDITS)(module, source)
            verify(changed)
            if steady and not is_steady(changed):
                raise LookupError("it would jump where results may differ")
        except (TestbedError, LookupError):  # an edit that found nothing, or that a rule of HLO forbids
            refused += 1
            continue
        module, count = changed, count - 1
    return module


def _grown(module: Module, source: Source, limits: Limits) -> Module:
    """The module with drawn ops at the end of the entry, whose results are results of it, too."""
    entry = module.entry
    program = Program(source, replace(limits, instructions=len(entry.instructions) + MOST_DRAWN))
    program.number = max((int(n) for i in module.instructions() for n in re.findall(r"\d{1,9}", i.name)), default=0)
    body = Body(program, 1)
    errors = errors_of_each(module)
    body.instructions = list(entry.instructions)
    for i in entry.instructions:
        if i.shape.is_array and not i.shape.is_dynamic and i.shape.dtype in DRAWN and math.prod(i.shape.dims) <= 4096:
            body.keep(i, exact=errors.get(i, NONE) == NONE)
    given = {v.instruction for v in body.values}
    grow(body, source.integer(0, MOST_DRAWN))
    made = [v.instruction for v in body.values if v.instruction.shape.is_array]
    new = [i for i in made if i not in given | body.read]
    if not new:
        return module
    members = [entry.root, *new]
    top = body.instruction(Op.TUPLE, members, tuple_shape(*(m.shape for m in members)))
    grown = Computation(entry.name, tuple(body.instructions), top, entry.attributes)
    others = tuple(c for c in module.computations if c is not entry)
    kept = {k: v for k, v in module.attributes.items() if k == "is_scheduled"}
    changed = Module(module.name, (*program.computations, *others, grown), grown, kept)
    verify(changed)
    return changed


JUMPS = frozenset(
    {
        Op.COMPARE,
        Op.FLOOR,
        Op.CEIL,
        Op.ROUND_NEAREST_AFZ,
        Op.ROUND_NEAREST_EVEN,
        Op.SIGN,
        Op.REMAINDER,
        Op.SORT,
        Op.TOPK,
    }
    | {Op.TOPK, Op.IS_FINITE, Op.BITCAST_CONVERT, Op.STOCHASTIC_CONVERT, Op.REDUCE_PRECISION, Op.ATAN2, Op.CUSTOM_CALL}
)
"""Ops whose results jump where their operands change a little; conversions to integers and bits do, too."""


def is_steady(module: Module) -> bool:
    """Whether small differences stay small: no op jumps on operands in which stacks may differ."""
    errors = errors_of_each(module)
    exact = all(error.is_exact for error in errors.values())
    return exact or not any(_jumps(i, errors) for i in module.instructions())


def _jumps(i: Instruction, errors: Mapping[Instruction, Error]) -> bool:
    if i.opcode is Op.CONVERT:
        if continuous(i.shape.dtype):
            return False
    elif i.opcode not in JUMPS:
        return False
    floats = [o for o in i.operands if o.shape.is_array and continuous(o.shape.dtype)]
    return any(o not in errors or not errors[o].is_exact for o in floats)
