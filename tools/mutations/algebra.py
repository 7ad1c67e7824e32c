"""Mutants of the algebra rules: a rule that does not fire, gives another value, or does not look where it must."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...passes.algebra.rule import Rule
from ...passes.algebra.sweep import ALL_RULES
from ...passes.building import Builder
from .base import COMMUTATIVE, Mutant, Note, Room

Apply = Callable[[Instruction, Builder], Instruction | None]


def mutants() -> Sequence[Mutant]:
    return [m for rule in ALL_RULES for m in of_rule(rule)]


def of_rule(rule: Rule) -> Iterator[Mutant]:
    name, apply = rule.name, rule.apply

    def mutant(what: str, new: Apply, site: str = "", optional: bool = True) -> Mutant:
        return Mutant(
            f"passes/algebra/{name}/{what}",
            f"{name}/{site}" if site else name,
            lambda: put(rule, new),
            (f"[{name}]",),
            optional and bool(site),
        )

    yield mutant("removed", lambda i, b: None)
    yield mutant("negated", lambda i, b: negated(apply(i, b), b), "negated")
    yield mutant("operands swapped", lambda i, b: swapped(apply(i, b), b), "swapped")
    yield mutant("constant one off", lambda i, b: with_constants_off(apply, i, b), "constant")
    for predicate in predicates(apply):
        yield mutant(f"{predicate} unchecked", unchecked(apply, predicate), f"{predicate} is false", optional=False)


def put(rule: Rule, apply: Apply) -> None:
    """In place, as rules stand in several tables."""
    object.__setattr__(rule, "apply", functools.wraps(rule.apply)(apply))


# --- another value ----------------------------------------------------------------------------------------------------
def can_negate(x: Instruction | None) -> bool:
    return x is not None and x.shape.is_array and x.shape.size > 0


def negated(x: Instruction | None, b: Builder) -> Instruction | None:
    if x is None or not can_negate(x):
        return x
    dtype = x.shape.dtype
    return b.unary(Op.NOT if dtype is DType.PRED or dtype.is_integer else Op.NEGATE, x)  # -0 of integers is 0


def can_swap(x: Instruction | None, b: Builder) -> bool:
    return (
        x is not None
        and x in b.instructions
        and len(x.operands) > 1
        and x.opcode not in COMMUTATIVE | {Op.SELECT}
        and x.operands[0] is not x.operands[1]
        and x.operands[0].shape == x.operands[1].shape
    )


def swapped(x: Instruction | None, b: Builder) -> Instruction | None:
    if x is None or not can_swap(x, b):
        return x
    made = x.replace(operands=(*x.operands[1::-1], *x.operands[2:]))
    b.instructions[b.instructions.index(x)] = made
    return made


def with_constants_off(apply: Apply, i: Instruction, b: Builder) -> Instruction | None:
    """Each number that the rule makes is one larger."""

    def constant(value: Any, dtype: DType, dims: Sequence[int] = ()) -> Instruction:
        del b.constant  # type: ignore[method-assign]  # which calls itself
        try:
            return b.constant(not value if dtype is DType.PRED else value + 1, dtype, dims)
        finally:
            b.constant = constant  # type: ignore[method-assign]

    b.constant = constant  # type: ignore[method-assign]
    try:
        return apply(i, b)
    finally:
        del b.constant  # type: ignore[method-assign]


# --- conditions -------------------------------------------------------------------------------------------------------
PREDICATES = ("is_exact", "is_number", "is_zero", "is_ones", "is_known", "holds", "same_bytes")


def function_of(apply: Any) -> Any:
    return inspect.unwrap(apply)


def predicates(apply: Apply) -> list[str]:
    """Yes-or-no questions that a rule asks by name: those of rule.py, and the ones of its own file."""
    function = function_of(apply)
    known = vars(inspect.getmodule(function))
    return [
        name
        for name in dict.fromkeys(function.__code__.co_names)
        if callable(known.get(name))
        and (name in PREDICATES or inspect.signature(known[name]).return_annotation == "bool")
    ]


def answering(apply: Apply, predicate: str, answer: Callable[..., Any]) -> Apply:
    """The rule, with another answer to one of its questions."""
    known = vars(inspect.getmodule(function_of(apply)))

    def changed(i: Instruction, b: Builder) -> Instruction | None:
        before = known[predicate]
        known[predicate] = answer
        try:
            return apply(i, b)
        finally:
            known[predicate] = before

    return changed


def unchecked(apply: Apply, predicate: str) -> Apply:
    return answering(apply, predicate, lambda *_: True)


# --- what tests reach -------------------------------------------------------------------------------------------------
def record(note: Note) -> None:
    for rule in ALL_RULES:
        put(rule, noting(note, rule.name, rule.apply))


def noting(note: Note, name: str, apply: Apply) -> Apply:
    inner = apply
    for predicate in predicates(apply):
        inner = noting_answers(note, f"{name}/{predicate} is false", inner, predicate)

    def call(i: Instruction, b: Builder) -> Instruction | None:
        make = b.constant
        made_constant = False

        def constant(*arguments: Any) -> Instruction:
            nonlocal made_constant
            made_constant = True
            return make(*arguments)

        b.constant = constant  # type: ignore[method-assign, assignment]
        try:
            made = inner(i, b)
        finally:
            del b.constant  # type: ignore[method-assign]
        if made is not None:
            note(name)
            if can_negate(made):
                note(f"{name}/negated")
            if can_swap(made, b):
                note(f"{name}/swapped")
            if made_constant:
                note(f"{name}/constant")
        return made

    return call


def noting_answers(note: Note, site: str, apply: Apply, predicate: str) -> Apply:
    known = vars(inspect.getmodule(function_of(apply)))
    real = known[predicate]

    def ask(*arguments: Any) -> Any:
        answer = real(*arguments)
        if not answer:
            note(site)
        return answer

    return functools.wraps(function_of(apply))(answering(apply, predicate, ask))


ROOM = Room(("passes/algebra", "passes/test_passes.py", "passes/test_preserving.py"), mutants, record)
