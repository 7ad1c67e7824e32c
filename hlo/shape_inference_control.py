"""Shapes of control flow, tuples, calls, random numbers, asynchronous pairs, collectives and transfers."""

from __future__ import annotations

from collections.abc import Callable

from .dtypes import DType
from .ir import Computation, Instruction
from .opcodes import Op
from .shape_rules import (
    arrays,
    broken,
    called,
    check_parameters,
    make,
    one_dimension,
    same,
    same_up_to_precision,
)
from .shapes import TOKEN, Shape, tuple_shape

PRED, U32 = Shape(DType.PRED), Shape(DType.U32)


def declared(i: Instruction) -> Shape:
    """Any shape goes: the instruction says which."""
    return i.shape


def operand(i: Instruction) -> Shape:
    return i.operands[0].shape


def parameter(i: Instruction) -> Shape:
    """PARAM1: parameter_replication has one flag a leaf."""
    flags = i.attributes.get("parameter_replication")
    leaves = sum(1 for _ in i.shape.leaves())
    if isinstance(flags, tuple) and len(flags) != leaves:
        broken(i, "PARAM1", f"parameter_replication has {len(flags)} flags for {leaves} leaves")
    return i.shape


def constant(i: Instruction) -> Shape:
    """CONST1: the literal has the instruction's shape."""
    return i.literal.shape


def tuple_(i: Instruction) -> Shape:
    """TUPLE1: the elements are the operands."""
    return tuple_shape(*(o.shape for o in i.operands))


def get_tuple_element(i: Instruction) -> Shape:
    """GTE1: the operand is a tuple. GTE2: index in range."""
    shape, index = i.operands[0].shape, i.attributes["index"]
    if not shape.is_tuple:
        broken(i, "GTE1", f"the operand has shape {shape}, not a tuple's")
    if not 0 <= index < len(shape.elements):
        broken(i, "GTE2", f"index {index} is outside the tuple's {len(shape.elements)} elements")
    return shape.elements[index]


def add_dependency(i: Instruction) -> Shape:
    """ADDDEP1: the second operand is a token."""
    if i.operands[1].shape.dtype is not DType.TOKEN:
        broken(i, "ADDDEP1", f"the second operand has shape {i.operands[1].shape}, not token[]")
    return i.operands[0].shape


def after_all(i: Instruction) -> Shape:
    """AFTERALL1: the operands are tokens."""
    for o in i.operands:
        if o.shape.dtype is not DType.TOKEN:
            broken(i, "AFTERALL1", f"operand '{o.name}' has shape {o.shape}, not token[]")
    return TOKEN


def call(i: Instruction) -> Shape:
    """CALL1: the operands are the computation's parameters."""
    target = called(i, "to_apply", "CALL1")
    check_parameters(i, "CALL1", target, [o.shape for o in i.operands])
    return target.root.shape


def fusion(i: Instruction) -> Shape:
    """FUSION1: the operands are the fused computation's parameters."""
    body = called(i, "calls", "FUSION1")
    check_parameters(i, "FUSION1", body, [o.shape for o in i.operands], loose=True)
    return body.root.shape


def while_(i: Instruction) -> Shape:
    """WHILE1: the condition takes the state and returns pred[]. WHILE2: the body takes the state and returns it."""
    state = i.operands[0].shape
    condition, body = called(i, "condition", "WHILE1"), called(i, "body", "WHILE2")
    check_parameters(i, "WHILE1", condition, (state,))
    if not same(condition.root.shape, PRED):
        broken(i, "WHILE1", f"'{condition.name}' returns {condition.root.shape}, not pred[]")
    check_parameters(i, "WHILE2", body, (state,))
    if not same(body.root.shape, state):
        broken(i, "WHILE2", f"'{body.name}' returns {body.root.shape}, but the state has shape {state}")
    return state


def branches(i: Instruction) -> tuple[Computation, ...]:
    """The computations of a conditional, by branch index (true, false for a pred)."""
    a = i.attributes
    if "true_computation" in a:
        return a["true_computation"], a.get("false_computation")
    found = a.get("branch_computations", ())
    return found if isinstance(found, tuple) else (found,)


def conditional(i: Instruction) -> Shape:
    """COND1: a scalar pred or s32 selects. COND2: true_computation and false_computation for a pred, branch_computations
    for an s32. COND3: one operand a branch. COND4: each branch takes its operand. COND5: branches return one shape."""
    selector, *operands = i.operands
    if selector.shape.rank or selector.shape.dtype not in (DType.PRED, DType.S32):
        broken(i, "COND1", f"the first operand has shape {selector.shape}, not pred[] or s32[]")
    targets = branches(i)
    if None in targets or not targets or (selector.shape.dtype is DType.PRED and len(targets) != 2):
        want = "true_computation and false_computation" if selector.shape.dtype is DType.PRED else "branch_computations"
        broken(i, "COND2", f"needs {want}")
    if len(operands) != len(targets):
        broken(i, "COND3", f"{len(operands)} operands for {len(targets)} branches")
    for target, o in zip(targets, operands, strict=True):
        check_parameters(i, "COND4", target, (o.shape,))
        if not same(target.root.shape, targets[0].root.shape):
            broken(
                i,
                "COND5",
                f"'{target.name}' returns {target.root.shape}, but '{targets[0].name}' {targets[0].root.shape}",
            )
    return targets[0].root.shape


def custom_call(i: Instruction) -> Shape:
    """CUSTOM1: one layout constraint an operand, compatible with it. CUSTOM2: aliased outputs and operands exist and agree."""
    constraints = i.attributes.get("operand_layout_constraints")
    if constraints is not None:
        if len(constraints) != len(i.operands):
            broken(i, "CUSTOM1", f"{len(constraints)} layout constraints for {len(i.operands)} operands")
        for o, wanted in zip(i.operands, constraints, strict=True):
            if not same(o.shape, wanted):
                broken(i, "CUSTOM1", f"layout constraint {wanted} does not suit operand {o.shape}")
    output_aliases(i, "CUSTOM2")
    return i.shape


def output_aliases(i: Instruction, label: str) -> None:
    """`output_to_operand_aliasing` pairs existing, equal shapes."""
    for alias in i.attributes.get("output_to_operand_aliasing", ()):
        try:
            if alias.operand < 0:
                raise IndexError
            out, source = i.shape.at(alias.output), i.operands[alias.operand].shape.at(alias.operand_index)
        except IndexError:
            broken(
                i,
                label,
                f"output_to_operand_aliasing names output {alias.output} and operand {alias.operand} "
                f"{alias.operand_index}, which do not exist",
            )
        if not same(out, source):
            broken(i, label, f"aliased output {out} and operand {source} differ")


def rng(i: Instruction) -> Shape:
    """RNG1: two scalar operands. RNG2: of the result's element type."""
    shapes = arrays(i, "RNG1")
    if len(shapes) != 2 or any(s.rank for s in shapes):
        broken(i, "RNG1", "takes two scalars: the bounds, or mean and deviation")
    if any(s.dtype is not i.shape.dtype for s in shapes):
        broken(i, "RNG2", f"operands must have the type {i.shape.dtype.value} of the result")
    return i.shape


def rng_bit_generator(i: Instruction) -> Shape:
    """RNGBITS1: the state is an integer vector. RNGBITS2: the result is the bits, or (state, bits)."""
    (state,) = arrays(i, "RNGBITS1")
    if not state.dtype.is_unsigned:
        broken(i, "RNGBITS1", f"the state has shape {state}, not that of unsigned integers")
    shape = i.shape
    if shape.is_tuple and (len(shape.elements) != 2 or not same(shape.elements[0], state)):
        broken(i, "RNGBITS2", f"the result {shape} must be ({state}, bits)")
    return shape


def rng_state(i: Instruction) -> Shape:
    """RNGSTATE1: the result is u64[2]."""
    if not same(i.shape, make(DType.U64, (2,))):
        broken(i, "RNGSTATE1", f"the result {i.shape} must be u64[2]")
    return i.shape


def async_start(i: Instruction) -> Shape:
    """ASYNC1: the result is ((operands), result, …). ASYNC2: the operands and the result are the wrapped computation's."""
    shape = i.shape
    if not shape.is_tuple or len(shape.elements) < 2 or not shape.elements[0].is_tuple:
        broken(i, "ASYNC1", f"the result {shape} must be ((operands), result, state…)")
    body = called(i, "calls", "ASYNC2")
    inputs = [o.shape for o in i.operands]
    check_parameters(i, "ASYNC2", body, inputs)
    if not same(shape.elements[0], tuple_shape(*inputs)) or not same(shape.elements[1], body.root.shape):
        broken(i, "ASYNC2", f"the result {shape} does not hold the operands and {body.root.shape}")
    return shape


def _async_operand(i: Instruction, label: str) -> Instruction:
    source = i.operands[0]
    if source.opcode not in (Op.ASYNC_START, Op.ASYNC_UPDATE):
        broken(i, label, f"operand '{source.name}' is a {source.opcode.value}, not an async-start or async-update")
    return source


def async_update(i: Instruction) -> Shape:
    """ASYNC3: the operand is an async-start or async-update, whose shape it keeps."""
    return _async_operand(i, "ASYNC3").shape


def async_done(i: Instruction) -> Shape:
    """ASYNC3: the operand is an async-start or async-update; the result is its element 1."""
    shape = _async_operand(i, "ASYNC3").shape
    if not shape.is_tuple or len(shape.elements) < 2:
        broken(i, "ASYNC3", f"the operand's shape {shape} holds no result")
    return shape.elements[1]


def copy_start(i: Instruction) -> Shape:
    """COPY1: the result is (destination, source, context), both of the operand's shape."""
    x, shape = i.operands[0].shape, i.shape
    if not shape.is_tuple or len(shape.elements) < 2 or not all(same(e, x) for e in shape.elements[:2]):
        broken(i, "COPY1", f"the result {shape} must be ({x}, {x}, context)")
    return shape


def copy_done(i: Instruction) -> Shape:
    """COPY2: the operand is a copy-start; the result is its element 0."""
    source = i.operands[0]
    if source.opcode is not Op.COPY_START:
        broken(i, "COPY2", f"operand '{source.name}' is a {source.opcode.value}, not a copy-start")
    return source.shape.elements[0]


def _as_one(shapes: tuple[Shape, ...]) -> Shape:
    return shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)


def all_reduce(i: Instruction) -> Shape:
    """COLL1: arrays. COLL2: groups name each id once."""
    check_groups(i)
    return _as_one(arrays(i, "COLL1"))


def check_groups(i: Instruction) -> None:
    """COLL2: no group is empty, and no id stands in two groups."""
    groups = i.attributes.get("replica_groups", ())
    if isinstance(groups, tuple) and all(isinstance(g, tuple) for g in groups):
        ids = [n for g in groups for n in g]
        if len(set(ids)) != len(ids) or not all(groups):
            broken(i, "COLL2", f"replica_groups {groups} must hold each id once, and no empty group")


def _scaled(i: Instruction, results: tuple[Shape, ...], grow: bool) -> None:
    """COLL3: `dimensions` names one dimension. COLL4: operands and results differ there by a factor only."""
    for x, y in zip(arrays(i, "COLL1"), results, strict=False):
        d = one_dimension(i, "COLL3", x.rank)
        small, large = (x, y) if grow else (y, x)
        rest = y.rank == x.rank and all(a == b for k, (a, b) in enumerate(zip(x.dims, y.dims, strict=True)) if k != d)
        if not rest or y.dtype is not x.dtype or (small.dims[d] and large.dims[d] % small.dims[d]):
            broken(i, "COLL4", f"{x} and {y} must differ by a factor in dimension {d} only")


def all_gather(i: Instruction) -> Shape:
    check_groups(i)
    _scaled(i, i.shape.elements if i.shape.is_tuple else (i.shape,), grow=True)
    return i.shape


def all_gather_start(i: Instruction) -> Shape:
    """COLL5: the result is (operands, results)."""
    check_groups(i)
    if not i.shape.is_tuple or len(i.shape.elements) < 2:
        broken(i, "COLL5", f"the result {i.shape} must be (operands, results)")
    gathered = i.shape.elements[1]
    _scaled(i, gathered.elements if gathered.is_tuple else (gathered,), grow=True)
    return i.shape


def reduce_scatter(i: Instruction) -> Shape:
    check_groups(i)
    _scaled(i, i.shape.elements if i.shape.is_tuple else (i.shape,), grow=False)
    return i.shape


def second_element(i: Instruction) -> Shape:
    """COLL6: the operand is the matching start; the result is its element 1."""
    shape = i.operands[0].shape
    if not shape.is_tuple or len(shape.elements) < 2:
        broken(i, "COLL6", f"the operand's shape {shape} holds no result")
    return shape.elements[1]


def all_to_all(i: Instruction) -> Shape:
    """COLL7: with dimensions: one operand, of the result's size. Without: a tuple of the operands."""
    check_groups(i)
    shapes = arrays(i, "COLL1")
    if "dimensions" in i.attributes:
        one_dimension(i, "COLL7", shapes[0].rank)
        if len(shapes) != 1 or i.shape.dtype is not shapes[0].dtype or i.shape.size != shapes[0].size:
            broken(i, "COLL7", f"the result {i.shape} must have the size of the one operand {shapes[0]}")
        return i.shape
    return _as_one(shapes) if not i.shape.is_tuple else tuple_shape(*shapes)


def check_pairs(i: Instruction) -> None:
    """COLL8: each pair has a source and a target; no target is named twice."""
    pairs = i.attributes["source_target_pairs"]
    if not isinstance(pairs, tuple):
        return
    if any(not isinstance(p, tuple) or len(p) != 2 for p in pairs):
        broken(i, "COLL8", f"source_target_pairs {pairs} must be pairs")
    if len(i.operands) == 1 and len({t for _, t in pairs}) != len(pairs):
        broken(i, "COLL8", f"source_target_pairs {pairs} name a target twice")


def collective_permute(i: Instruction) -> Shape:
    check_pairs(i)
    if len(i.operands) == 4 and "slice_sizes" in i.attributes:
        return i.operands[1].shape
    return _as_one(tuple(o.shape for o in i.operands))


def collective_permute_start(i: Instruction) -> Shape:
    """COLL9: the result is (operands, results, …)."""
    check_pairs(i)
    if not i.shape.is_tuple or len(i.shape.elements) < 2:
        broken(i, "COLL9", f"the result {i.shape} must be (operands, results, context…)")
    return i.shape


def collective_broadcast(i: Instruction) -> Shape:
    check_groups(i)
    return _as_one(tuple(o.shape for o in i.operands))


def ragged_all_to_all(i: Instruction) -> Shape:
    """COLL10: six operands; the result has the second one's shape."""
    check_groups(i)
    if len(i.operands) != 6:
        broken(i, "COLL10", f"takes six operands, not {len(i.operands)}")
    return i.operands[1].shape


def identity(i: Instruction) -> Shape:
    return U32


def infeed(i: Instruction) -> Shape:
    """INFEED1: a token in. INFEED2: (data, token) out."""
    if i.operands[0].shape.dtype is not DType.TOKEN:
        broken(i, "INFEED1", f"the operand has shape {i.operands[0].shape}, not token[]")
    if not i.shape.is_tuple or len(i.shape.elements) != 2 or i.shape.elements[1].dtype is not DType.TOKEN:
        broken(i, "INFEED2", f"the result {i.shape} must be (data, token[])")
    return i.shape


def outfeed(i: Instruction) -> Shape:
    """OUTFEED1: outfeed_shape is the data's. OUTFEED2: data and a token in."""
    data, token = (o.shape for o in i.operands)
    wanted = i.attributes.get("outfeed_shape")
    if wanted is not None and not same_up_to_precision(wanted, data):
        broken(i, "OUTFEED1", f"outfeed_shape {wanted} is not the data's shape {data}")
    if token.dtype is not DType.TOKEN:
        broken(i, "OUTFEED2", f"the second operand has shape {token}, not token[]")
    return TOKEN


def send(i: Instruction) -> Shape:
    """SEND1: data and a token in, (data, u32[], token[]) out."""
    data, token = (o.shape for o in i.operands)
    if token.dtype is not DType.TOKEN:
        broken(i, "SEND1", f"the second operand has shape {token}, not token[]")
    return tuple_shape(data, U32, TOKEN)


def recv(i: Instruction) -> Shape:
    """RECV1: a token in, (data, u32[], token[]) out."""
    shape = i.shape
    if i.operands[0].shape.dtype is not DType.TOKEN:
        broken(i, "RECV1", f"the operand has shape {i.operands[0].shape}, not token[]")
    if not shape.is_tuple or len(shape.elements) != 3 or not same(shape.elements[1], U32):
        broken(i, "RECV1", f"the result {shape} must be (data, u32[], token[])")
    return shape


def _done(i: Instruction, start: Op, label: str) -> Shape:
    """The operand of a done is its start, on the same channel, possibly handed on through a tuple (a loop's state)."""
    source = i.operands[0]
    if not source.shape.is_tuple or len(source.shape.elements) < 3:
        broken(i, label, f"operand '{source.name}' has shape {source.shape}, not that of a {start.value}")
    if source.opcode is start and source.attributes.get("channel_id") != i.attributes.get("channel_id"):
        broken(i, label, f"channel_id differs from that of '{source.name}'")
    return source.shape


def send_done(i: Instruction) -> Shape:
    """SEND2: the operand is a send on the same channel."""
    _done(i, Op.SEND, "SEND2")
    return TOKEN


def recv_done(i: Instruction) -> Shape:
    """RECV2: the operand is a recv on the same channel; the result is (data, token[])."""
    shape = _done(i, Op.RECV, "RECV2")
    return tuple_shape(shape.elements[0], TOKEN)


INFER: dict[Op, Callable[[Instruction], Shape]] = {
    Op.PARAMETER: parameter,
    Op.CONSTANT: constant,
    Op.TUPLE: tuple_,
    Op.GET_TUPLE_ELEMENT: get_tuple_element,
    Op.ADD_DEPENDENCY: add_dependency,
    Op.AFTER_ALL: after_all,
    Op.CALL: call,
    Op.FUSION: fusion,
    Op.WHILE: while_,
    Op.CONDITIONAL: conditional,
    Op.CUSTOM_CALL: custom_call,
    Op.DOMAIN: operand,
    Op.OPT_BARRIER: operand,
    Op.RNG: rng,
    Op.RNG_BIT_GENERATOR: rng_bit_generator,
    Op.RNG_GET_AND_UPDATE_STATE: rng_state,
    Op.ASYNC_START: async_start,
    Op.ASYNC_UPDATE: async_update,
    Op.ASYNC_DONE: async_done,
    Op.COPY_START: copy_start,
    Op.COPY_DONE: copy_done,
    Op.ALL_GATHER: all_gather,
    Op.ALL_GATHER_START: all_gather_start,
    Op.ALL_GATHER_DONE: second_element,
    Op.ALL_REDUCE: all_reduce,
    Op.ALL_REDUCE_START: all_reduce,
    Op.ALL_REDUCE_DONE: operand,
    Op.ALL_TO_ALL: all_to_all,
    Op.COLLECTIVE_BROADCAST: collective_broadcast,
    Op.COLLECTIVE_PERMUTE: collective_permute,
    Op.COLLECTIVE_PERMUTE_START: collective_permute_start,
    Op.COLLECTIVE_PERMUTE_DONE: second_element,
    Op.RAGGED_ALL_TO_ALL: ragged_all_to_all,
    Op.REDUCE_SCATTER: reduce_scatter,
    Op.PARTITION_ID: identity,
    Op.REPLICA_ID: identity,
    Op.INFEED: infeed,
    Op.OUTFEED: outfeed,
    Op.SEND: send,
    Op.SEND_DONE: send_done,
    Op.RECV: recv,
    Op.RECV_DONE: recv_done,
}
