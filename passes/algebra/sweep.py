"""Algebraic simplification: a table of small rules by opcode, applied to each instruction once, operands first.

The counterpart in XLA is xla/hlo/transforms/simplifiers/algebraic_simplifier.cc. A rule takes an instruction and a
builder and returns the replacement, or None. The sweep applies the rules to the replacement as well (up to DEEPEST
times), so that one sweep suffices; its cost is proportional to the number of instructions and rewrites.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.layouts import same_bytes
from ...hlo.opclasses import CONTROL_PREDECESSORS, COSMETIC_ATTRIBUTES
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ..building import Builder
from ..fuel import spend
from ..rewriting import Names, callees_first, rebuild, with_attributes
from . import arithmetic, choices, convert, dot, hoisting, indexing, logic, movement, reduce
from .rule import Rule

ALL_RULES: tuple[Rule, ...] = (
    *arithmetic.RULES,
    *logic.RULES,
    *choices.RULES,
    *convert.RULES,
    *movement.RULES,
    *hoisting.RULES,
    *reduce.RULES,
    *dot.RULES,
    *indexing.RULES,
)
"""All rules. If several match an opcode, the first that returns a replacement wins."""

DEEPEST = 8
"""Maximum depth of rewriting the result of a rewrite."""


def by_opcode(rules: Sequence[Rule]) -> Mapping[Op, tuple[Rule, ...]]:
    """Rules by the opcode of the instruction that they replace, in table order."""
    table: dict[Op, list[Rule]] = {}
    for r in rules:
        for opcode in r.opcodes:
            table.setdefault(opcode, []).append(r)
    return {opcode: tuple(found) for opcode, found in table.items()}


RULES_BY_OPCODE = by_opcode(ALL_RULES)


def simplify_algebra(module: Module, rules: Mapping[Op, tuple[Rule, ...]] = RULES_BY_OPCODE) -> Module:
    """Apply the algebraic rules (`--list-rules`) to every instruction, operands first."""
    names, regions = Names.of(module), []
    done = rebuild(module, lambda c: _Sweep(c, names, rules, regions).run())
    if not regions:
        return done
    return Module(done.name, callees_first(done.entry), done.entry, done.attributes)


class _Sweep:
    """The sweep over one computation."""

    def __init__(
        self, computation: Computation, names: Names, rules: Mapping[Op, tuple[Rule, ...]], regions: list[Computation]
    ):
        self.computation, self.names, self.rules, self.regions = computation, names, rules, regions
        self.out: dict[Instruction, None] = {}
        self.uses: Counter[Instruction] = Counter()
        self.pinned = computation.pinned
        self.plain: dict[Instruction, bool] = {}

    def run(self) -> Computation:
        old = self.computation
        if not any(i.opcode in self.rules for i in old.instructions):
            return old
        uses = Counter(o for i in old.instructions for o in dict.fromkeys(i.operands))
        uses[old.root] += 1
        new: dict[Instruction, Instruction] = {}
        for i in old.instructions:
            operands = tuple([new[o] for o in i.operands])
            new[i] = self.emit(i if operands == i.operands else i.replace(operands=operands), 0)
            self.uses[new[i]] += uses[i]
        if tuple(self.out) == old.instructions:
            return old
        return Computation(old.name, tuple(self.out), new[old.root], old.attributes)

    def emit(self, i: Instruction, depth: int) -> Instruction:
        """Append an instruction, or its replacement by rules, to the output. Returns the value that replaces it."""
        free = i.opcode in self.rules and i.name not in self.pinned and CONTROL_PREDECESSORS not in i.attributes
        made = self.rewritten(i) if free and depth < DEEPEST else None
        if made is None:
            self.out[i] = None
            return i
        instructions, result = made
        new: dict[Instruction, Instruction] = {}
        for m in instructions:
            operands = tuple(new.get(o, o) for o in m.operands)
            new[m] = self.emit(m if operands == m.operands else m.replace(operands=operands), depth + 1)
        return new.get(result, result)

    def rewritten(self, i: Instruction) -> tuple[list[Instruction], Instruction] | None:
        """(new instructions, their value) from the first rule that matches; None if none does."""
        for x in (i, *i.operands):
            plain = self.plain.get(x)
            if plain is None:
                plain = self.plain[x] = _is_plain(x)
            if not plain:
                return None
        if OPSET[i.opcode].elementwise and any(x.shape.dtype is DType.F8E8M0FNU for x in (i, *i.operands)):
            return None  # powers of two alone, and NaN: without zero and negative numbers no law of arithmetic holds
        b: Builder | None = None
        for rule in self.rules[i.opcode]:
            if b is None or b.instructions or b.computations:  # a rule that gave up left instructions in the builder
                b = Builder(self.names, i.name, i.location, uses=self.uses)
            result = rule.apply(i, b)
            if result is None or (result not in b.instructions and not same_bytes(result.shape, i.shape)):
                continue
            if not spend(rule.switch):
                continue
            self.regions += b.computations
            if result not in b.instructions:  # an operand, or a value behind an operand
                return [], result
            made = b.finish(result, i)
            kept = {k: v for k, v in i.attributes.items() if k in COSMETIC_ATTRIBUTES}
            if kept:
                b.instructions[-1] = made = with_attributes(made, **{**made.attributes, **kept})
            return b.instructions, made
        return None


def _is_plain(x: Instruction) -> bool:
    """Whether x is a static row-major array, or a flat tuple of them."""
    shapes = x.shape.elements if x.shape.is_tuple else (x.shape,)
    return all(s.is_array and not s.is_dynamic and s.is_row_major for s in shapes)
