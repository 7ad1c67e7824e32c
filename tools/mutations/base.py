"""What a mutant is, and how a room's file says which there are and which tests reach them.

A mutant is applied in a process of its own by patching a table or an attribute. Its site is the place that a test must
reach to be able to notice it; the sites that each test reaches are noted once, in a run of the unchanged code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...hlo.attributes import PadDim, SliceDim, Window
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET

Note = Callable[[str], None]
"""Called with a site, whenever the code there runs."""


@dataclass(frozen=True)
class Mutant:
    """name: room/row/change. site: what a test must reach to notice it, empty where any test may. words: tests whose id
    holds one of them run first. optional: not counted where no test reaches the site (a change that the row may not
    admit). needs: a site; where no test reaches it, the mutant is not counted (an attribute that nothing reads).
    """

    name: str
    site: str
    apply: Callable[[], None]
    words: tuple[str, ...] = ()
    optional: bool = False
    needs: str = ""


@dataclass(frozen=True)
class Room:
    """tests: files and folders below tests/ that may notice a mutant of the room. record: patch the unchanged code so
    that it notes the sites that run.
    """

    tests: tuple[str, ...]
    mutants: Callable[[], Sequence[Mutant]]
    record: Callable[[Note], None] = lambda note: None


def modules() -> Iterator[Any]:
    """The modules of this package that are loaded."""
    root = __name__.removesuffix(".tools.mutations.base")
    return (m for name, m in list(sys.modules.items()) if m is not None and name.startswith(root + "."))


def rebind(old: Any, new: Any) -> None:
    """Put `new` where any loaded module has `old` under a name of its own."""
    for module in modules():
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


def set_constant(name: str, old: Any, new: Any) -> None:
    """Change a number that modules import by name."""
    for module in modules():
        if name in vars(module) and vars(module)[name] == old:
            setattr(module, name, new)


def words_of(op: Op) -> tuple[str, ...]:
    return op.value, op.value.replace("-", "_")


COMMUTATIVE = frozenset({Op.ADD, Op.AND, Op.MAXIMUM, Op.MINIMUM, Op.MULHI, Op.MULTIPLY, Op.OR, Op.XOR})

PAIRS = {
    Op.CEIL: Op.FLOOR,
    Op.FLOOR: Op.CEIL,
    Op.MAXIMUM: Op.MINIMUM,
    Op.MINIMUM: Op.MAXIMUM,
    Op.SINE: Op.COSINE,
    Op.COSINE: Op.SINE,
    Op.SINH: Op.COSH,
    Op.COSH: Op.SINH,
    Op.AND: Op.OR,
    Op.OR: Op.XOR,
    Op.ADD: Op.SUBTRACT,
    Op.SUBTRACT: Op.ADD,
    Op.EXPONENTIAL: Op.EXPONENTIAL_MINUS_ONE,
    Op.LOG: Op.LOG_PLUS_ONE,
    Op.DIVIDE: Op.REMAINDER,
    Op.REMAINDER: Op.DIVIDE,
    Op.ROUND_NEAREST_AFZ: Op.ROUND_NEAREST_EVEN,
    Op.ROUND_NEAREST_EVEN: Op.ROUND_NEAREST_AFZ,
    Op.SHIFT_RIGHT_LOGICAL: Op.SHIFT_RIGHT_ARITHMETIC,
    Op.SHIFT_RIGHT_ARITHMETIC: Op.SHIFT_RIGHT_LOGICAL,
}
"""The opcode that is most easily mistaken for another."""


def neighbours(op: Op) -> Iterator[Op]:
    """Other opcodes of the family with as many operands, the likeliest mistake first."""
    if op in PAIRS:
        yield PAIRS[op]
    row, all_ops = OPSET[op], list(OPSET)
    at = all_ops.index(op)
    for other in all_ops[at + 1 :] + all_ops[:at]:
        if OPSET[other].family is row.family and (OPSET[other].low, OPSET[other].high) == (row.low, row.high):
            yield other


def is_swappable(op: Op) -> bool:
    """Whether two operands may be given in the wrong order."""
    return OPSET[op].high >= 2 and op not in COMMUTATIVE


DIRECTIONS = {"EQ": "NE", "NE": "EQ", "LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}
OTHER_WORDS = DIRECTIONS | {
    "FFT": "IFFT",
    "IFFT": "FFT",
    "TRANSPOSE": "NO_TRANSPOSE",
    "NO_TRANSPOSE": "TRANSPOSE",
    "rng_uniform": "rng_normal",
    "rng_normal": "rng_uniform",
    "rng_three_fry": "rng_philox",
    "rng_philox": "rng_three_fry",
}
"""Another word where an attribute is one of several."""


def altered(value: Any) -> Any:
    """An attribute's value changed a little; the same value where no change is known."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 2
    if isinstance(value, str):
        return OTHER_WORDS.get(value, value)
    if isinstance(value, PadDim):
        return (
            replace(value, low=value.high, high=value.low)
            if value.low != value.high
            else replace(value, low=value.low + 1, high=value.high - 1)
        )
    if isinstance(value, SliceDim):
        return replace(value, start=value.start + 1, limit=value.limit + 1)
    if isinstance(value, Window) and value.dims:
        first = value.dims[0]
        return replace(
            value, dims=(replace(first, pad_low=first.pad_low + 1, pad_high=first.pad_high - 1), *value.dims[1:])
        )
    if isinstance(value, tuple) and value:
        changed = tuple(reversed(value))
        return changed if changed != value else tuple(map(altered, value))
    return value


def with_attribute_altered(attributes: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {**attributes, key: altered(attributes[key])} if key in attributes else attributes


def without_attribute(attributes: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {k: v for k, v in attributes.items() if k != key}


Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]


ANY_NUMBER = frozenset({"channel_id"})
"""Attributes of which only matters that they are there, or equal."""


def attribute_changes(op: Op) -> Iterator[tuple[str, str, Change]]:
    """(attribute, name of the change, the change) for each attribute of an opcode."""
    row = OPSET[op]
    for key in row.own:
        if key in row.optional:
            yield key, f"{key} dropped", partial(without_attribute, key=key)
        if key not in ANY_NUMBER:
            yield key, f"{key} changed", partial(with_attribute_altered, key=key)


def attribute_mutants(room: str, row: str, op: Op, apply: Callable[[Change], Callable[[], None]]) -> Iterator[Mutant]:
    """Mutants in which the code of one row sees other attributes than the instruction has."""
    for key, what, change in attribute_changes(op):
        known = what.endswith("dropped")  # of some attributes no other value is known
        name, site = f"{room}/{row}/{what}", f"{row}/{what}"
        yield Mutant(name, site, apply(change), words_of(op), optional=not known, needs=f"{row} reads {key}")


def changes_attribute(attributes: Mapping[str, Any], change: Change) -> bool:
    return key_values(attributes) != key_values(change(attributes))


def key_values(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {k: id(v) if hasattr(v, "instructions") else v for k, v in attributes.items()}


class Watched(dict[str, Any]):
    """Attributes that note which of them are asked for."""

    def __init__(self, attributes: Mapping[str, Any], note: Note, row: str):
        super().__init__(attributes)
        self.note, self.row = note, row

    def __getitem__(self, key: str) -> Any:
        self.note(f"{self.row} reads {key}")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.note(f"{self.row} reads {key}")
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.note(f"{self.row} reads {key}")
        return super().__contains__(key)


def watched(note: Note, row: str, op: Op, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of an instruction at a row, watched; notes which changes would show in them."""
    note(row)
    for _, what, change in attribute_changes(op):
        if changes_attribute(attributes, change):
            note(f"{row}/{what}")
    return Watched(attributes, note, row)


_KEPT: dict[tuple[Instruction, str], Instruction] = {}


def with_attributes(i: Instruction, what: str, attributes: Callable[[], Mapping[str, Any]]) -> Instruction:
    """An instruction with other attributes: one for each, as some code tells instructions apart by identity."""
    made = _KEPT.get((i, what))
    if made is None:
        made = _KEPT[i, what] = i.replace(attributes=attributes())
    return made
