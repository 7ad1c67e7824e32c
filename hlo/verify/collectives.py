"""Shape inference for asynchronous pairs, collectives, and transfers to and from the host."""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import DType
from ..ir import Instruction
from ..opcodes import Op
from ..shapes import TOKEN, Shape, tuple_shape
from .rules import arrays, broken, called, check_parameters, one_dimension, same, same_up_to_precision

U32 = Shape(DType.U32)


def first_operand(i: Instruction) -> Shape:
    return i.operands[0].shape


def async_start(i: Instruction) -> Shape:
    """ASYNC1: the result is ((operands), result, …). ASYNC2: the operands and the result have the shapes of the wrapped
    computation's parameters and result.
    """
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
    """ASYNC3: the operand is an async-start or async-update; the result has its shape."""
    return _async_operand(i, "ASYNC3").shape


def async_done(i: Instruction) -> Shape:
    """ASYNC3: the operand is an async-start or async-update; the result is its element 1."""
    shape = _async_operand(i, "ASYNC3").shape
    if not shape.is_tuple or len(shape.elements) < 2:
        broken(i, "ASYNC3", f"the operand's shape {shape} holds no result")
    return shape.elements[1]


def copy_start(i: Instruction) -> Shape:
    """COPY1: the result is (destination, source, context); destination and source have the operand's shape."""
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
    """COLL1: the operands are arrays. COLL2: groups hold each id once."""
    check_groups(i)
    return _as_one(arrays(i, "COLL1"))


def check_groups(i: Instruction) -> None:
    """COLL2: no group is empty, and no id is in two groups."""
    groups = i.attributes.get("replica_groups", ())
    if isinstance(groups, tuple) and all(isinstance(g, tuple) for g in groups):
        ids = [n for g in groups for n in g]
        if len(set(ids)) != len(ids) or not all(groups):
            broken(i, "COLL2", f"replica_groups {groups} must hold each id once, and no empty group")


def _scaled(i: Instruction, results: tuple[Shape, ...], grow: bool) -> None:
    """COLL3: `dimensions` names one dimension. COLL4: operand and result differ in that dimension only, by a factor.

    grow: the result is the larger one.
    """
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
    """COLL7: with `dimensions`, there is one operand and the result has its size. Without, the result is a tuple of the
    operands' shapes.
    """
    check_groups(i)
    shapes = arrays(i, "COLL1")
    if "dimensions" in i.attributes:
        if len(shapes) != 1 or i.shape.dtype is not shapes[0].dtype or i.shape.size != shapes[0].size:
            broken(i, "COLL7", f"the result {i.shape} must have the size of its one operand")
        one_dimension(i, "COLL7", shapes[0].rank)
        return i.shape
    return _as_one(shapes) if not i.shape.is_tuple else tuple_shape(*shapes)


def check_pairs(i: Instruction) -> None:
    """COLL8: each pair has a source and a target; no target is in two pairs."""
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
    """COLL10: there are six operands; the result has the shape of the second."""
    check_groups(i)
    if len(i.operands) != 6:
        broken(i, "COLL10", f"takes six operands, not {len(i.operands)}")
    return i.operands[1].shape


def identity(i: Instruction) -> Shape:
    return U32


def infeed(i: Instruction) -> Shape:
    """INFEED1: the operand is a token. INFEED2: the result is (data, token)."""
    if i.operands[0].shape.dtype is not DType.TOKEN:
        broken(i, "INFEED1", f"the operand has shape {i.operands[0].shape}, not token[]")
    if not i.shape.is_tuple or len(i.shape.elements) != 2 or i.shape.elements[1].dtype is not DType.TOKEN:
        broken(i, "INFEED2", f"the result {i.shape} must be (data, token[])")
    return i.shape


def outfeed(i: Instruction) -> Shape:
    """OUTFEED1: outfeed_shape is the data's shape. OUTFEED2: the second operand is a token."""
    data, token = (o.shape for o in i.operands)
    wanted = i.attributes.get("outfeed_shape")
    if wanted is not None and not same_up_to_precision(wanted, data):
        broken(i, "OUTFEED1", f"outfeed_shape {wanted} is not the data's shape {data}")
    if token.dtype is not DType.TOKEN:
        broken(i, "OUTFEED2", f"the second operand has shape {token}, not token[]")
    return TOKEN


def send(i: Instruction) -> Shape:
    """SEND1: the operands are data and a token; the result is (data, u32[], token[])."""
    data, token = (o.shape for o in i.operands)
    if token.dtype is not DType.TOKEN:
        broken(i, "SEND1", f"the second operand has shape {token}, not token[]")
    return tuple_shape(data, U32, TOKEN)


def recv(i: Instruction) -> Shape:
    """RECV1: the operand is a token; the result is (data, u32[], token[])."""
    shape = i.shape
    if i.operands[0].shape.dtype is not DType.TOKEN:
        broken(i, "RECV1", f"the operand has shape {i.operands[0].shape}, not token[]")
    if not shape.is_tuple or len(shape.elements) != 3 or not same(shape.elements[1], U32):
        broken(i, "RECV1", f"the result {shape} must be (data, u32[], token[])")
    return shape


def _done(i: Instruction, start: Op, label: str) -> Shape:
    """Checks that the operand of a done is its start, on the same channel, and returns its shape.

    The operand may also come out of a tuple, e.g. a loop's state; then only its shape is checked.
    """
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
    Op.ALL_REDUCE_DONE: first_operand,
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
