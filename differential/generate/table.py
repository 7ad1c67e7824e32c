"""GROW: for each opcode the function that draws it into a program; WEIGHTS: how often each family is drawn.

Elementwise rows derive from the opset's table by family. What is never drawn stands in NOT_DRAWN with its reason.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import Family
from . import control
from .elementwise import CONVERT_RULES, TERNARY_RULES, binary, unary
from .linear import LINEAR_RULES
from .movement import MOVEMENT_RULES
from .program import Body
from .regions import REGION_RULES
from .values import Value

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
    Family.CONTROL: 12,
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
    ops = body.program.limits.ops
    for _ in range(TRIES):
        op = body.source.choice(_ALL) if ops is None else body.source.choice(_of(ops))
        if op in NESTING and body.depth <= 0:
            continue
        if GROW[op](body, op) is not None:
            if body.source.chance(2):
                control.tied(body)
            return


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


def _weighted() -> tuple[Op, ...]:
    """Each opcode as often as its family's weight says, the families' shares kept; add comes first, as the simplest."""
    families: dict[Family, list[Op]] = {}
    for op in GROW:
        families.setdefault(OPSET[op].family, []).append(op)
    found = [Op.ADD]
    for family, ops in families.items():
        found += [ops[n % len(ops)] for n in range(max(len(ops), 10 * WEIGHTS[family]))]
    return tuple(found)


_ALL = _weighted()


def _of(ops: frozenset[Op]) -> tuple[Op, ...]:
    return tuple(op for op in GROW if op in ops)
