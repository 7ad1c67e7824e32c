"""Draws control flow and what only a whole program has: loops, branches, calls, fusions, tokens, collectives, sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...hlo.attributes import Raw
from ...hlo.dtypes import DType
from ...hlo.ir import CONTROL_PREDECESSORS, Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import TOKEN, Shape, tuple_shape
from .folds import fold_ops, folded_known, region_of
from .program import Body
from .table_loops import draw_step, drawn_tables
from .values import DRAWN, Value

D = DType
Grow = Callable[[Body, int], None]
"""Adds drawn ops to a body, as many as the number at most."""


def _copied(body: Body, v: Value, shape: Shape) -> Instruction:
    """v in exactly this shape, with its layout."""
    return _copied_to(body, v.instruction, shape)


def _copied_to(body: Body, made: Instruction, shape: Shape) -> Instruction:
    return made if made.shape == shape else body.instruction(Op.COPY, (made,), shape)


def _inner(body: Body) -> Body:
    return Body(body.program, body.depth - 1)


def _parameters(inner: Body, given: Sequence[Value]) -> None:
    """One parameter for each value."""
    for n, g in enumerate(given):
        made = inner.instruction(Op.PARAMETER, (), g.instruction.shape, parameter_number=n)
        inner.keep(made, **g.known)


def _some(body: Body, most: int) -> list[Value]:
    return [body.any() for _ in range(body.source.integer(1, most))]


def _late(inner: Body) -> list[Value]:
    """Results of a computation: one or a few of its late values."""
    count = inner.source.choice((1, 1, 2, 3))
    return [inner.any() for _ in range(count)]


def called(grow: Grow) -> Callable[[Body, Op], Value]:
    """The rule of call and fusion: arrays in, an array or a tuple of arrays out."""

    def rule(body: Body, op: Op) -> Value:
        given, inner = _some(body, 3), _inner(body)
        inner.depth = 0 if op is Op.FUSION else inner.depth
        _parameters(inner, given)
        grow(inner, body.source.integer(1, 4))
        results = _late(inner)
        root = results[0].instruction if len(results) == 1 else inner.tupled(results)
        made = body.program.done(body.program.name("callee"), inner.instructions, root)
        how: dict[str, Any] = {"to_apply": made}
        if op is Op.FUSION:
            how = {"calls": made, "kind": body.source.choice(("kLoop", "kInput", "kOutput", "kCustom"))}
        whole = body.instruction(op, [g.instruction for g in given], root.shape, **how)
        if len(results) == 1:
            return body.keep(whole, **results[0].known)
        return body.parts(whole, results)[0]

    return rule


def _state(inner: Body, shape: Shape, known: Sequence[Value]) -> list[Value]:
    given = inner.instruction(Op.PARAMETER, (), shape, parameter_number=0)
    return inner.parts(given, known)


TABLE_PERCENT = 30
"""How often a loop is one over tables."""

COUNTERS = (D.S32, D.S32, D.S64, D.U8, D.U32, D.S8)


def loop(grow: Grow) -> Callable[[Body, Op], Value]:
    """The rule of while: a loop that counts up or down, with a state of arrays."""

    def rule(body: Body, op: Op) -> Value:
        draw = body.source
        if draw.chance(TABLE_PERCENT):
            return _table_loop(body, op, grow)
        kind, step, trips, down = draw.choice(COUNTERS), draw.integer(1, 3), draw.integer(0, 4), draw.chance(40)
        low = draw.integer(0, 2)
        first, last = (low + step * trips, low) if down else (low, low + step * trips)
        counter = body.scalar(kind, first)
        state = [counter, *(_unknown(v) for v in _some(body, 3))]
        start = body.tupled(state)
        inner = _inner(body)
        i, *_ = _state(inner, start.shape, state)
        grow(inner, draw.integer(0, 3))
        by = inner.scalar(kind, step)
        new = inner.instruction(Op.SUBTRACT if down else Op.ADD, (i.instruction, by.instruction), i.instruction.shape)
        leaves = [_carried(inner, v) for v in state[1:]]
        root = inner.instruction(Op.TUPLE, (new, *leaves), start.shape)
        made = body.program.done(body.program.name("body"), inner.instructions, root)
        test = _condition(body, start.shape, state, last, "GT" if down else "LT")
        whole = body.instruction(op, (start,), start.shape, condition=test, body=made)
        return body.parts(whole, state)[-1]

    return rule


def _table_loop(body: Body, op: Op, grow: Grow) -> Value:
    """A loop whose steps read and write parts of tables; it counts up from 0 or 1, or down."""
    draw = body.source
    arrays, axis = drawn_tables(body)
    length, down = arrays[1].dims[axis], draw.chance(25)
    first, last = (length - 1, 0) if down else (draw.integer(0, 1), length + draw.integer(-1, 1))
    state = [body.scalar(D.S32, first), *(_unknown(v) for v in arrays)]
    start, inner = body.tupled(state), _inner(body)
    given = _state(inner, start.shape, state)
    by = inner.scalar(D.S32, -1 if down else 1).instruction
    new = inner.instruction(Op.ADD, (given[0].instruction, by), by.shape)
    tables = draw_step(inner, given, axis, grow)
    kept = [_copied_to(inner, t, v.instruction.shape) for t, v in zip(tables, given[2:], strict=True)]
    root = inner.instruction(Op.TUPLE, (new, given[1].instruction, *kept), start.shape)
    made = body.program.done(body.program.name("body"), inner.instructions, root)
    test = _condition(body, start.shape, state, last, "GE" if down else "LT")
    whole = body.instruction(op, (start,), start.shape, condition=test, body=made)
    return body.parts(whole, state)[-1]


def _unknown(v: Value) -> Value:
    """What holds of v in every iteration: nothing but its type."""
    return Value(v.instruction, exact=not (v.dtype.is_float or v.dtype.is_complex))


def _carried(inner: Body, old: Value) -> Instruction:
    """The new value of an array of the state."""
    shape = old.instruction.shape
    found = [v for v in inner.values if (v.dtype, v.dims) == (old.dtype, old.dims)]
    return _copied(inner, inner.source.choice(found[::-1][:4]), shape)


def _condition(body: Body, shape: Shape, state: Sequence[Value], last: int, direction: str) -> Computation:
    test = Body(body.program, 0)
    i, *_ = _state(test, shape, state)
    limit = test.scalar(i.dtype, last)
    root = test.instruction(Op.COMPARE, (i.instruction, limit.instruction), Shape(D.PRED), direction=direction)
    return body.program.done(body.program.name("condition"), test.instructions, root)


def conditional(grow: Grow) -> Callable[[Body, Op], Value]:
    """The rule of conditional: by a pred or by an index; branches of an array or of a tuple of them."""

    def rule(body: Body, op: Op) -> Value:
        draw = body.source
        by_pred = draw.chance(60)
        selector = _selector(body, D.PRED if by_pred else D.S32)
        before = len(body.values)
        if draw.chance(50):
            grow(body, draw.integer(1, 3))
        wanted = [*_some(body, 2), *body.values[before:][-1:]]
        count = 2 if by_pred else draw.integer(1, 3)
        results, operands, made = tuple_shape(*(w.instruction.shape for w in wanted)), [], []
        for _ in range(count):
            given = [*wanted, *(_some(body, 2) if draw.chance(50) else [])]
            operands.append(body.tupled(given))
            inner = _inner(body)
            _state(inner, operands[-1].shape, given)
            grow(inner, draw.integer(0, 4))
            root = inner.instruction(Op.TUPLE, [_carried(inner, w) for w in wanted], results)
            made.append(body.program.done(body.program.name("branch"), inner.instructions, root))
        how = (
            {"true_computation": made[0], "false_computation": made[1]}
            if by_pred
            else {"branch_computations": tuple(made)}
        )
        whole = body.instruction(op, (selector.instruction, *operands), results, **how)
        return body.parts(whole, [_unknown(w) for w in wanted])[0]

    return rule


def _selector(body: Body, dtype: DType) -> Value:
    """A scalar, rarely one that passes know: they take such a branch before the program runs.

    Half of them are computed, so that their memory is taken again.
    """
    if body.room and body.source.chance(40):
        return body.parameter(dtype, ())
    if body.source.chance(30):
        return body.of(dtype, ())
    x, y = body.of(D.S32, ()), body.of(D.S32, ())
    read = (x.instruction, y.instruction)
    if dtype is D.PRED:
        direction = body.source.choice(("LT", "EQ", "NE", "GE"))
        return body.keep(body.instruction(Op.COMPARE, read, Shape(dtype), direction=direction))
    return body.keep(body.instruction(Op.SUBTRACT, read, Shape(dtype)))


# values that pass through


def opt_barrier(body: Body, op: Op) -> Value:
    values = _some(body, 3)
    start = body.tupled(values)
    return body.parts(body.instruction(op, (start,), start.shape), values)[-1]


def tuple_(body: Body, op: Op) -> Value:
    """A nested tuple and back."""
    values = _some(body, 2)
    inner = body.tupled(values)
    outer = body.instruction(op, (inner, values[0].instruction), tuple_shape(inner.shape, values[0].instruction.shape))
    back = body.instruction(Op.GET_TUPLE_ELEMENT, (outer,), inner.shape, index=0)
    return body.parts(back, values)[-1]


def add_dependency(body: Body, op: Op) -> Value:
    v = body.any()
    token = body.instruction(Op.AFTER_ALL, (), TOKEN)
    made = body.instruction(Op.ADD_DEPENDENCY, (v.instruction, token), v.instruction.shape)
    return body.keep(made, **v.known)


def _same(body: Body, op: Op, v: Value, **attributes: object) -> Value:
    """An op on one array that leaves it as it is."""
    made = body.instruction(op, (v.instruction,), v.instruction.shape, **attributes)
    return body.keep(made, **v.known)


def custom_call(body: Body, op: Op) -> Value:
    target = body.source.choice(("Sharding", "annotate_device_placement", "LayoutConstraint"))
    effect = {"custom_call_has_side_effect": True} if body.source.chance(30) else {}
    return _same(body, op, body.any(), custom_call_target=target, **effect)


def domain(body: Body, op: Op) -> Value:
    ends = 'kind="sharding", entry={maximal device=0}, exit={maximal device=1}'
    return _same(body, op, body.any(), domain=Raw(f"{{{ends}}}"))


def tied(body: Body) -> None:
    """The last instruction waits for another one by a control dependency."""
    last = body.instructions[-1]
    before = [i for i in body.instructions[:-1] if i.shape.is_array and i.opcode is not Op.PARAMETER]
    if last.opcode in (Op.PARAMETER, Op.CONSTANT) or not before or not last.shape.is_array:
        return
    other = body.source.choice(before[::-1])
    made = last.replace(attributes={**last.attributes, CONTROL_PREDECESSORS: (other.name,)})
    body.instructions[-1] = made
    body.values = [v if v.instruction is not last else replace(v, instruction=made) for v in body.values]


# asynchronous pairs and collectives on one device


def copy_start(body: Body, op: Op) -> Value:
    v = body.any()
    shape = tuple_shape(v.instruction.shape, v.instruction.shape, Shape(D.U32))
    started = body.instruction(Op.COPY_START, (v.instruction,), shape)
    made = body.instruction(Op.COPY_DONE, (started,), v.instruction.shape)
    return body.keep(made, **v.known)


def asynchronous(grow: Grow) -> Callable[[Body, Op], Value]:
    def rule(body: Body, op: Op) -> Value:
        v, inner = body.any(), Body(body.program, 0)
        _parameters(inner, [v])
        grow(inner, body.source.integer(0, 2))
        result = inner.any()
        made = body.program.done(body.program.name("wrapped"), inner.instructions, result.instruction)
        shape = tuple_shape(tuple_shape(v.instruction.shape), result.instruction.shape)
        started = body.instruction(Op.ASYNC_START, (v.instruction,), shape, calls=made)
        if op is Op.ASYNC_UPDATE:
            started = body.instruction(op, (started,), shape)
        done = body.instruction(Op.ASYNC_DONE, (started,), result.instruction.shape)
        return body.keep(done, **result.known)

    return rule


ONE = ((0,),)
"""The replica groups of one device."""


def collective(body: Body, op: Op) -> Value | None:
    """On one device a collective leaves its operand as it is."""
    along = op in (Op.ALL_GATHER, Op.ALL_TO_ALL, Op.REDUCE_SCATTER, Op.ALL_GATHER_START)
    folds = op in (Op.ALL_REDUCE, Op.REDUCE_SCATTER, Op.ALL_REDUCE_START)
    v = body.operand(lambda v: bool(v.dims) or not along, DRAWN)
    how: dict[str, object] = {"replica_groups": ONE}
    if op in (Op.COLLECTIVE_PERMUTE, Op.COLLECTIVE_PERMUTE_START):
        how = {"source_target_pairs": ((0, 0),)}
    if along:
        how["dimensions"] = (body.source.integer(0, len(v.dims) - 1),)
    if folds:
        how["to_apply"] = region_of(body, fold_ops(v.dtype, v.most)[0], v.dtype)
    if op not in STARTED:
        return _same(body, op, v, **how)
    pair = v.instruction.shape if op is Op.ALL_REDUCE_START else tuple_shape(*[v.instruction.shape] * 2)
    started = body.instruction(op, (v.instruction,), pair, **how)
    made = body.instruction(STARTED[op], (started,), v.instruction.shape)
    return body.keep(made, **v.known)


STARTED = {
    Op.ALL_GATHER_START: Op.ALL_GATHER_DONE,
    Op.ALL_REDUCE_START: Op.ALL_REDUCE_DONE,
    Op.COLLECTIVE_PERMUTE_START: Op.COLLECTIVE_PERMUTE_DONE,
}


def device(body: Body, op: Op) -> Value:
    return body.add(op, (), Shape(D.U32))


# random bits and sizes


def random_bits(body: Body, op: Op) -> Value:
    algorithm, words = body.source.choice((("rng_three_fry", 2), ("rng_philox", 3), ("rng_default", 3)))
    state = body.constant(D.U64, (words,), [body.source.choice((0, 1, 7, 2**64 - 1)) for _ in range(words)])
    dims = body.source.choice(body.program.shapes)
    bits = Shape(body.source.choice((D.U32, D.U8, D.U64, D.S32)), dims)
    shape = tuple_shape(state.instruction.shape, bits)
    made = body.instruction(op, (state.instruction,), shape, algorithm=algorithm)
    return body.parts(made, [state, state])[-1]


def get_dimension_size(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: bool(v.dims), DRAWN)
    return body.add(op, [v], Shape(D.S32), dimensions=(body.source.integer(0, max(0, len(v.dims) - 1)),))


def set_dimension_size(body: Body, op: Op) -> Value | None:
    """An array with a dynamic dimension, a few ops on it, and a result of fixed shape: a fold, or its size."""
    kinds = tuple(d for d in DRAWN if not d.is_complex)
    v = body.operand(lambda v: bool(v.dims) and v.size <= 600 and v.smooth, kinds)
    axis = body.source.integer(0, len(v.dims) - 1)
    if not v.dims[axis]:
        return None
    size = body.scalar(D.S32, body.source.integer(0, v.dims[axis]))
    flags = tuple(d == axis for d in range(len(v.dims)))
    shape = Shape(v.dtype, v.dims, dynamic=flags)
    made = body.instruction(op, (v.instruction, size.instruction), shape, dimensions=(axis,))
    if body.source.chance(50):
        made = body.instruction(Op.MAXIMUM, (made, v.instruction), shape)
    if body.source.chance(25):
        return body.add(Op.GET_DIMENSION_SIZE, [Value(made)], Shape(D.S32), dimensions=(axis,))
    fold = body.source.choice(fold_ops(v.dtype, v.most))
    known = folded_known(fold, (v,), v.dims[axis])
    if fold not in (Op.ADD, Op.MULTIPLY):
        known = {"exact": v.exact}  # an empty fold is its start
    left = Shape(v.dtype, tuple(n for d, n in enumerate(v.dims) if d != axis))
    start = body.scalar(v.dtype, 0)
    region = region_of(body, fold, v.dtype)
    operands = [Value(made), start]
    return body.add(Op.REDUCE, operands, left, **known, dimensions=(axis,), to_apply=region)


def dynamic_reshape(body: Body, op: Op) -> Value:
    """A vector with a dynamic size, as a matrix of two columns, and its number of rows."""
    rows = body.source.integer(1, 8)
    v = body.of(D.S32, (2 * rows,))
    two, count = body.scalar(D.S32, 2), body.source.integer(0, rows)
    size = body.scalar(D.S32, 2 * count)
    cut = body.instruction(
        Op.SET_DIMENSION_SIZE,
        (v.instruction, size.instruction),
        Shape(D.S32, v.dims, dynamic=(True,)),
        dimensions=(0,),
    )
    half = body.scalar(D.S32, count)
    shape = Shape(D.S32, (rows, 2), dynamic=(True, False))
    made = body.instruction(op, (cut, half.instruction, two.instruction), shape)
    start = body.scalar(D.S32, 0)
    region = region_of(body, Op.ADD, D.S32)
    return body.add(Op.REDUCE, [Value(made), start], Shape(D.S32), dimensions=(0, 1), to_apply=region)
