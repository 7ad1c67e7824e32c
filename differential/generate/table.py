"""GROW: for each opcode the function that draws it into a program; WEIGHTS: how often each family is drawn.

Elementwise rows derive from the opset's table by family. What is never drawn stands in NOT_DRAWN with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import Family
from . import control
from .elementwise import CONVERT_RULES, TERNARY_RULES, binary, unary
from .linear import LINEAR_RULES
from .movement import MOVEMENT_RULES
from .program import Body, Limits
from .regions import REGION_RULES
from .source import Source
from .values import Value
from .windows import WINDOW_RULES

Rule = Callable[[Body, Op], Value | None]
"""Adds an instruction of the opcode, with what it needs. None: nothing fits it here."""

NOT_DRAWN: dict[Op, str] = {
    **dict.fromkeys((Op.INFEED, Op.OUTFEED, Op.SEND, Op.SEND_DONE, Op.RECV, Op.RECV_DONE), "needs another side"),
    Op.RNG: "each stack may draw other numbers",
    Op.RNG_GET_AND_UPDATE_STATE: "keeps its state between runs",
    Op.RAGGED_ALL_TO_ALL: "needs several devices",
    Op.PARAMETER: "drawn as an operand",
    Op.CONSTANT: "drawn as an operand",
    Op.GET_TUPLE_ELEMENT: "drawn with what makes a tuple",
    Op.AFTER_ALL: "drawn with add-dependency",
    Op.ASYNC_DONE: "drawn with async-start",
    Op.COPY_DONE: "drawn with copy-start",
    Op.ALL_GATHER_DONE: "drawn with all-gather-start",
    Op.ALL_REDUCE_DONE: "drawn with all-reduce-start",
    Op.COLLECTIVE_PERMUTE_DONE: "drawn with collective-permute-start",
}

WEIGHTS: dict[Family, int] = {
    Family.UNARY: 12,
    Family.BINARY: 16,
    Family.TERNARY: 5,
    Family.CONVERT: 6,
    Family.SHAPE: 18,
    Family.REGION: 14,
    Family.LINALG: 8,
    Family.CONTROL: 7,
    Family.RNG: 2,
    Family.ASYNC: 2,
    Family.COLLECTIVE: 2,
}


def grow(body: Body, count: int) -> None:
    """Add up to `count` drawn ops to a body, fewer where the entry has as many instructions as it may."""
    for _ in range(count):
        if body.entry and body.size >= body.program.limits.instructions:
            return
        with body.source.part():
            _one(body)


TRIES = 3


def _one(body: Body) -> None:
    for _ in range(TRIES):
        if grow_op(body, _drawn(body.source, body.program.limits)):
            return


def grow_op(body: Body, op: Op) -> bool:
    """Add an instruction of an opcode, with what it needs. False: nothing fits it here."""
    if (op in NESTING and body.depth <= 0) or GROW[op](body, op) is None:
        return False
    if body.source.chance(2):
        control.tied(body)
    return True


def _drawn(source: Source, limits: Limits) -> Op:
    """An opcode, by the weight of its family."""
    if limits.ops is not None:
        return source.choice(drawable(limits))
    return source.choice(_MEMBERS[source.choice(_FAMILIES)])


@cache
def drawable(limits: Limits) -> tuple[Op, ...]:
    """The opcodes that may be drawn by themselves."""
    return tuple(op for op in GROW if limits.ops is None or op in limits.ops)


NESTING = frozenset({Op.WHILE, Op.CONDITIONAL, Op.CALL, Op.FUSION, Op.ASYNC_START, Op.ASYNC_UPDATE})
"""Ops with computations of arrays, which nest no deeper than Limits.depth."""

_COLLECTIVES = (
    *(Op.ALL_GATHER, Op.ALL_REDUCE, Op.ALL_TO_ALL, Op.COLLECTIVE_BROADCAST, Op.COLLECTIVE_PERMUTE, Op.REDUCE_SCATTER),
    *(Op.ALL_GATHER_START, Op.ALL_REDUCE_START, Op.COLLECTIVE_PERMUTE_START),
)

GROW: dict[Op, Rule] = {
    **{op: unary for op, row in OPSET.items() if row.family is Family.UNARY},
    **{op: binary for op, row in OPSET.items() if row.family is Family.BINARY},
    **TERNARY_RULES,
    **CONVERT_RULES,
    **MOVEMENT_RULES,
    Op.GET_DIMENSION_SIZE: control.get_dimension_size,
    Op.SET_DIMENSION_SIZE: control.set_dimension_size,
    Op.DYNAMIC_RESHAPE: control.dynamic_reshape,
    **REGION_RULES,
    **WINDOW_RULES,
    **LINEAR_RULES,
    Op.CALL: control.called(grow),
    Op.FUSION: control.called(grow),
    Op.WHILE: control.loop(grow),
    Op.CONDITIONAL: control.conditional(grow),
    Op.OPT_BARRIER: control.opt_barrier,
    Op.TUPLE: control.tuple_,
    Op.ADD_DEPENDENCY: control.add_dependency,
    Op.CUSTOM_CALL: control.custom_call,
    Op.DOMAIN: control.domain,
    Op.RNG_BIT_GENERATOR: control.random_bits,
    Op.COPY_START: control.copy_start,
    Op.ASYNC_START: control.asynchronous(grow),
    Op.ASYNC_UPDATE: control.asynchronous(grow),
    **dict.fromkeys(_COLLECTIVES, control.collective),
    **dict.fromkeys((Op.PARTITION_ID, Op.REPLICA_ID), control.device),
}


_FAMILIES = tuple(f for f in sorted(WEIGHTS, key=lambda f: f is not Family.BINARY) for _ in range(WEIGHTS[f]))
"""Each family as often as its weight says; add, the simplest op, is the first of the first one."""

TWICE = frozenset({Op.WHILE, Op.CONDITIONAL})
"""Opcodes drawn twice as often as others of their family: they make the thunks and the host program."""

_MEMBERS = {
    family: tuple(
        op
        for op in sorted(GROW, key=lambda op: op is not Op.ADD)
        if OPSET[op].family is family
        for _ in range(1 + (op in TWICE))
    )
    for family in WEIGHTS
}
