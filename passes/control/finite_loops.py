"""Stop loops as soon as their state cannot change any more.

Loops without effects are assumed to be finite, as XLA does when it removes an unused one. So a `while (true)` whose
state no longer changes ends with that state. An element of the state is settled after 0 iterations if the body forwards
it, and after n + 1 if it is computed from elements that are settled after n. Once all are settled, no further iteration
is needed. Of a `while (true)` whose elements settle by their values only (x → x and 7), each iteration says whether it
changed a bit.
"""

from __future__ import annotations

from ...hlo.analysis.effects import effectful_computations, is_impure
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array, tuple_shape
from ..building import Builder
from ..expansion import expand_ops

MOST_ITERATIONS = 64


def finite_loops(module: Module) -> Module:
    """Stop every loop outside kernels once its state cannot change any more."""
    if Op.WHILE not in module.opcodes:
        return module
    effectful = effectful_computations(module)

    def bound(i: Instruction, b: Builder) -> Instruction | None:
        if any(c in effectful or _is_impure(c) for c in i.called()):
            return None
        iterations = iterations_to_settle(i.attributes["body"])
        if iterations is None or iterations > MOST_ITERATIONS:
            return _until_unchanged(i, b) if _is_endless(i) else None
        return _bounded(i, b, iterations) if iterations else _parts(b, i.operands[0])

    return expand_ops(module, {Op.WHILE: bound})


def _is_impure(computation: Computation) -> bool:
    return any(
        (i.opcode is not Op.PARAMETER and is_impure(i)) or any(map(_is_impure, i.called()))
        for i in computation.instructions
    )


def iterations_to_settle(body: Computation) -> int | None:
    """Number of iterations after which a loop's state is constant, if that is known; else None."""
    (parameter,) = body.parameters
    if body.root is parameter:
        return 0
    if body.root.opcode is not Op.TUPLE:
        return None if _read(body)[body.root] else 1
    read = _read(body)
    settled: dict[int, int] = {}
    left = dict(enumerate(body.root.operands))
    for k, value in list(left.items()):
        if _hands_on(value, parameter, k):
            settled[k] = 0
            del left[k]
    while left:
        ready = {k: v for k, v in left.items() if read[v] <= settled.keys()}
        if not ready:
            return None
        settled |= {k: 1 + max((settled[e] for e in read[v]), default=0) for k, v in ready.items()}
        left = {k: v for k, v in left.items() if k not in ready}
    return max(settled.values(), default=0)


def _hands_on(value: Instruction, parameter: Instruction, k: int) -> bool:
    return value.opcode is Op.GET_TUPLE_ELEMENT and value.operands[0] is parameter and value.attributes["index"] == k


def _read(body: Computation) -> dict[Instruction, frozenset[int]]:
    """For each instruction the indices of the state elements that it depends on."""
    (parameter,) = body.parameters
    read: dict[Instruction, frozenset[int]] = {}
    every = frozenset(range(max(len(parameter.shape.elements), 1)))
    for i in body.instructions:
        if i is parameter:
            read[i] = every
        elif i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] is parameter:
            read[i] = frozenset({i.attributes["index"]})
        else:
            read[i] = frozenset().union(*(read[o] for o in i.operands))
    return read


def _is_endless(i: Instruction) -> bool:
    """Whether a loop's condition is the constant true, and its state consists of arrays of static size."""
    test = i.attributes["condition"].root
    plain = all(leaf.is_array and not leaf.is_dynamic for _, leaf in i.shape.leaves())
    return plain and test.opcode is Op.CONSTANT and bool(test.literal.array)


def _until_unchanged(i: Instruction, b: Builder) -> Instruction:
    """The loop with a pred added to its state: whether the last iteration changed a bit."""
    body, state = i.attributes["body"], tuple_shape(i.shape, array(DType.PRED))

    def more(b: Builder, p: list[Instruction]) -> Instruction:
        return b.elements(p[0])[1]

    def step(b: Builder, p: list[Instruction]) -> Instruction:
        value = b.elements(p[0])[0]
        after = b.inline(body, [value])
        return b.op(Op.TUPLE, state, after, _differ(b, value, after))

    start = b.op(Op.TUPLE, state, i.operands[0], b.constant(True, DType.PRED))
    regions = {"condition": b.region("condition", [state], more), "body": b.region("body", [state], step)}
    return _parts(b, b.elements(b.op(Op.WHILE, state, start, **regions))[0])


def _differ(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    """Whether two values of one shape differ in a bit."""
    if x.shape.is_tuple:
        result = b.constant(False, DType.PRED)
        for p, q in zip(b.elements(x), b.elements(y), strict=True):
            result = b.binary(Op.OR, result, _differ(b, p, q))
        return result
    if x.shape.dtype.is_complex:
        part = x.shape.dtype.component
        halves = [_differ(b, b.unary(op, x, part), b.unary(op, y, part)) for op in (Op.REAL, Op.IMAG)]
        return b.binary(Op.OR, *halves)
    order = {"type": "TOTALORDER"} if x.shape.dtype.is_float else {}
    return b.reduce(b.compare(x, "NE", y, **order), Op.OR, False, range(x.shape.rank))


def _parts(b: Builder, whole: Instruction) -> Instruction:
    return b.tuple(b.elements(whole)) if whole.shape.is_tuple else whole


def _bounded(i: Instruction, b: Builder, iterations: int) -> Instruction:
    """The loop with an iteration counter added to its state; an endless loop of one iteration becomes its body."""
    condition, body = i.attributes["condition"], i.attributes["body"]
    test = condition.root
    if iterations == 1 and test.opcode is Op.CONSTANT and bool(test.literal.array):
        return _parts(b, b.inline(body, i.operands))
    state = tuple_shape(i.shape, array(DType.S32))

    def more(b: Builder, p: list[Instruction]) -> Instruction:
        value, count = b.elements(p[0])
        return b.binary(Op.AND, b.inline(condition, [value]), b.compare(count, "LT", iterations))

    def step(b: Builder, p: list[Instruction]) -> Instruction:
        value, count = b.elements(p[0])
        return b.op(Op.TUPLE, state, b.inline(body, [value]), b.binary(Op.ADD, count, 1))

    start = b.op(Op.TUPLE, state, i.operands[0], b.constant(0, DType.S32))
    regions = {"condition": b.region("condition", [state], more), "body": b.region("body", [state], step)}
    return _parts(b, b.elements(b.op(Op.WHILE, state, start, **regions))[0])
