"""Expand asynchronous pairs, collectives, annotations, and tuples that custom calls take.

A start/done pair becomes the wrapped computation; an annotation becomes its operands. So does a collective in a program
for one device, as in `evaluate`; for several, collectives.py makes exchanges of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...hlo.conventions import ANNOTATIONS, LEAF, SINKS
from ...hlo.devices import ONE_DEVICE, Devices
from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.replica_groups import listed_groups, mode_of
from ...hlo.shapes import Shape, array, tuple_shape
from ..building import Builder, Rewrite
from ..expansion import Where, expand_ops
from .calls import flattened, leaf_of
from .collectives import STARTS, collective_rules
from .late import postponed
from .ragged_all_to_all import ragged_rows


def expand_async(module: Module, devices: Devices = ONE_DEVICE) -> Module:
    """Replace asynchronous pairs by their wrapped ops, and annotations and collectives of one device by their operands;
    collectives of several devices by exchanges.

    Barriers within kernels are removed too. Raises UnsupportedError for collectives that need more devices.
    """
    rules = _rules(devices)
    kept = {i.name for i in module.instructions() if i.opcode not in (*STARTS, Op.ASYNC_START)}
    while not module.opcodes.isdisjoint(rules):
        after = expand_ops(module, rules, Where.EVERYWHERE, dynamic=True)
        if after is module:
            break
        module = after
    if devices.count > 1 and module.attributes.get("is_scheduled") is True:
        module = postponed(module, kept)
    return expand_ops(module, WITHIN, Where.KERNELS)


def _whole(b: Builder, values: Sequence[Instruction], shape: Shape) -> Instruction:
    """Values as one value of this shape, a tuple or not."""
    return b.tuple(values) if shape.is_tuple else values[0]


def _sizes(shape: Shape) -> list[tuple[DType, tuple[int, ...]]]:
    return [(s.dtype, s.dims) for _, s in shape.leaves()]


def _again(b: Builder, x: Instruction) -> Instruction:
    return b.tuple(b.elements(x)) if x.shape.is_tuple else x


def _element(number: int) -> Callable[[Instruction, Builder], Instruction]:
    """The rule of a done op whose result is element `number` of its start."""

    def rule(i: Instruction, b: Builder) -> Instruction:
        x = i.operands[0]
        return _again(b, b.op(Op.GET_TUPLE_ELEMENT, x.shape.elements[number], x, index=number))

    return rule


def same(i: Instruction, b: Builder) -> Instruction:
    return _again(b, i.operands[0])


# --- wrapped computations and copies ---------------------------------------------------------------------------------


def async_start(i: Instruction, b: Builder) -> Instruction | None:
    """The start's result: (operands, result, any further elements of the shape, as zeros)."""
    rest = i.shape.elements[2:]
    if not i.called() or not all(s.is_array for s in rest):
        return None
    result = b.inline(i.called()[0], i.operands)
    return b.tuple([b.tuple(i.operands), result, *(b.constant(0, s.dtype, s.dims) for s in rest)])


def copy_start(i: Instruction, b: Builder) -> Instruction:
    x = i.operands[0]
    return b.tuple([x, x, *(b.constant(0, s.dtype, s.dims) for s in i.shape.elements[2:])])


# --- collectives -----------------------------------------------------------------------------------------------------


def _needs_others(i: Instruction, why: str) -> UnsupportedError:
    return UnsupportedError(
        "plan",
        f"{i.opcode.value} for more devices than one",
        location=i.location,
        remedy=f"{why}: compile it with CompileOptions(replicas=…, partitions=…), or use --replicas N, or "
        "evaluate_replicated(module, inputs, replicas=…, partitions=…)",
    )


def _alone(i: Instruction) -> None:
    """Raise UnsupportedError unless this device, which has number 0, is the only one of its group."""
    groups = listed_groups(i, "plan")
    own = [set(group) for group in groups if 0 in group]
    if groups and not own:
        raise UnsupportedError("plan", f"{i.opcode.value} without this device", location=i.location)
    if own and own[0] != {0}:
        raise _needs_others(i, f"the group of this device is {sorted(own[0])}")


def _agree(i: Instruction, results: Sequence[Instruction], shape: Shape) -> None:
    leaves = [s for _, s in shape.leaves()]
    if [s.dims for s in leaves] != [r.shape.dims for r in results]:
        raise _needs_others(i, "its shapes are made for several devices")


def collective(i: Instruction, b: Builder) -> Instruction:
    """In a group of one device, the result is the operands."""
    _alone(i)
    _agree(i, i.operands, i.shape)
    return _whole(b, i.operands, i.shape)


def collective_start(i: Instruction, b: Builder) -> Instruction:
    """The start's result: (operands, results)."""
    _alone(i)
    _agree(i, i.operands, i.shape.elements[1])
    first, second = (_whole(b, i.operands, s) for s in i.shape.elements[:2])
    return b.tuple([first, second])


def _permuted(i: Instruction, b: Builder) -> list[Instruction] | None:
    """The values that this device sends to itself, or zeros; None for the form that writes slices in place."""
    if i.attributes.get("slice_sizes") or any(o.shape.is_tuple for o in i.operands):
        return None
    mode_of(i)  # raises if the ids are not valid for the mode
    pairs = [tuple(pair) for pair in i.attributes.get("source_target_pairs", ())]
    others = sorted({n for pair in pairs if 0 in pair for n in pair if n})
    if others:
        raise _needs_others(i, f"this device sends to or receives from {others}")
    return list(i.operands) if (0, 0) in pairs else [_zeros(b, o) for o in i.operands]


def _zeros(b: Builder, x: Instruction) -> Instruction:
    """Zeros of x's shape, with the same dynamic sizes."""
    zeros = b.constant(0, x.shape.dtype, x.shape.dims)
    return b.op(Op.SELECT, x.shape, b.constant(False, DType.PRED), x, zeros) if x.shape.is_dynamic else zeros


def permute(i: Instruction, b: Builder) -> Instruction | None:
    values = _permuted(i, b)
    return None if values is None else _whole(b, values, i.shape)


def permute_start(i: Instruction, b: Builder) -> Instruction | None:
    """The start's result: (operands, results, contexts…)."""
    values = _permuted(i, b)
    if values is None:
        return None
    first, second = (_whole(b, v, s) for v, s in zip((i.operands, values), i.shape.elements[:2], strict=True))
    return b.tuple([first, second, *(b.constant(0, s.dtype, s.dims) for s in i.shape.elements[2:])])


def ragged(i: Instruction, b: Builder) -> Instruction | None:
    _alone(i)
    return None if any(o.shape.is_dynamic for o in i.operands) else ragged_rows(i, b)


def first_device(_i: Instruction, b: Builder) -> Instruction:
    return b.op(Op.BROADCAST, array(DType.U32), b.constant(0, DType.U32), dimensions=())


def outfeed(i: Instruction, b: Builder) -> Instruction | None:
    """An outfeed of a tuple becomes one of each leaf."""
    value, token = i.operands
    if not value.shape.is_tuple or not value.shape.leaves():
        return None
    leaves = [leaf_of(b, value, index) for index, _ in value.shape.leaves()]
    for number, leaf in enumerate(leaves):
        about = {
            **i.attributes,
            "outfeed_shape": leaf.shape,
            "backend_config": f"{LEAF}{number} of {len(leaves)} of {i.name}",
        }
        token = b.op(Op.OUTFEED, i.shape, leaf, token, **about)
    return token


# --- annotations -----------------------------------------------------------------------------------------------------


def annotation(i: Instruction, b: Builder) -> Instruction | None:
    """Remove an annotation even if it is marked as a side effect: there is no partitioner here to read it. So a sink,
    whose operand nobody sees.

    Of any other custom call, the operands that are tuples become their leaves.
    """
    if i.attributes["custom_call_target"] in SINKS and i.shape == tuple_shape():
        return b.op(Op.TUPLE, i.shape)
    if i.attributes["custom_call_target"] not in ANNOTATIONS or len(i.operands) != 1:
        return flattened(i, b)
    if _sizes(i.shape) != _sizes(i.operands[0].shape):
        return None
    return _again(b, i.operands[0])


RULES = {
    Op.ALL_GATHER: collective,
    Op.ALL_GATHER_DONE: _element(1),
    Op.ALL_GATHER_START: collective_start,
    Op.ALL_REDUCE: collective,
    Op.ALL_REDUCE_DONE: same,
    Op.ALL_REDUCE_START: collective,
    Op.ALL_TO_ALL: collective,
    Op.ASYNC_DONE: _element(1),
    Op.ASYNC_START: async_start,
    Op.ASYNC_UPDATE: same,
    Op.COLLECTIVE_BROADCAST: collective,
    Op.COLLECTIVE_PERMUTE: permute,
    Op.COLLECTIVE_PERMUTE_DONE: _element(1),
    Op.COLLECTIVE_PERMUTE_START: permute_start,
    Op.COPY_DONE: _element(0),
    Op.COPY_START: copy_start,
    Op.CUSTOM_CALL: annotation,
    Op.OUTFEED: outfeed,
    Op.PARTITION_ID: first_device,
    Op.RAGGED_ALL_TO_ALL: ragged,
    Op.REDUCE_SCATTER: collective,
    Op.REPLICA_ID: first_device,
}


def _rules(devices: Devices) -> Mapping[Op, Rewrite]:
    if devices.count == 1:
        return RULES
    ids = {Op.REPLICA_ID: devices.replicas, Op.PARTITION_ID: devices.partitions}
    kept = {op for op, count in ids.items() if count > 1}
    return {op: rule for op, rule in {**RULES, **collective_rules(devices)}.items() if op not in kept}


WITHIN = dict.fromkeys((Op.ADD_DEPENDENCY, Op.DOMAIN, Op.OPT_BARRIER), same)
"""Ops that order work of the host program. They mean nothing within a kernel, which is one unit of work."""
