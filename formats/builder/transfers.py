"""Ops of XlaBuilder that leave the program: custom calls, infeed, outfeed, send, recv, and collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.attributes import OutputAlias
from ...hlo.opcodes import Op
from ...hlo.shapes import TOKEN, Shape, tuple_shape
from .builder import XlaBuilder
from .movement import reshape, scalars_computation, transpose
from .shapes import ShapeLike
from .structure import create_token
from .values import ComputationLike, XlaOp

Groups = Sequence[Sequence[int]] | str
"""The devices of each group, or HLO's text, '[2,4]<=[8]'; empty: one group of all."""


def custom_call(
    builder: XlaBuilder,
    call_target_name: str,
    operands: Sequence[XlaOp],
    shape: ShapeLike,
    opaque: str = "",
    has_side_effect: bool = False,
    output_operand_aliasing: Sequence[tuple[Sequence[int], tuple[int, Sequence[int]]]] = (),
    literal: Any = None,
    schedule: str = "SCHEDULE_NONE",
    api_version: str = "API_VERSION_ORIGINAL",
    operand_shapes_with_layout: Sequence[ShapeLike] | None = None,
    computation: ComputationLike | None = None,
    **attributes: Any,
) -> XlaOp:
    """A call of foreign code (CustomCall, CustomCallWithLayout, CustomCallWithComputation, CustomCallWithConvDnums).

    opaque: the backend config. output_operand_aliasing: (index of the output, (operand, index in it)), which share
    memory. schedule: SCHEDULE_NONE, SCHEDULE_LATEST or SCHEDULE_EARLIEST. api_version: API_VERSION_ORIGINAL,
    API_VERSION_STATUS_RETURNING, API_VERSION_STATUS_RETURNING_UNIFIED or API_VERSION_TYPED_FFI. literal: an array that
    travels with the call. computation: one that the code calls; a function takes ops of the operands' shapes.
    attributes: any others of custom-call, like window or dim_labels.
    """
    _one_of(builder, "schedule", schedule, SCHEDULES)
    _one_of(builder, "api_version", api_version, API_VERSIONS)
    aliases = tuple(OutputAlias(tuple(out), n, tuple(index)) for out, (n, index) in output_operand_aliasing)
    layouts = None
    if operand_shapes_with_layout is not None:
        layouts = tuple(builder.shape(s) for s in operand_shapes_with_layout)
    called = None
    if computation is not None:
        called = builder.computation(computation, [o.shape for o in operands], "called")
    return builder.add(
        Op.CUSTOM_CALL,
        operands,
        shape,
        custom_call_target=call_target_name,
        operand_layout_constraints=layouts,
        custom_call_has_side_effect=has_side_effect or None,
        output_to_operand_aliasing=aliases or None,
        literal=literal,
        schedule=schedule if schedule != SCHEDULES[0] else None,
        api_version=api_version if api_version != API_VERSIONS[0] else None,
        to_apply=called,
        backend_config=opaque or None,
        **attributes,
    )


SCHEDULES = ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
API_VERSIONS = (
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
"""XLA's values of both, the default first."""


def _one_of(builder: XlaBuilder, what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        builder.fail(f"unknown {what} {value!r}", f"choose from {', '.join(known)}")


# -- the host ---------------------------------------------------------------------------------------------------------
def infeed(builder: XlaBuilder, shape: ShapeLike, config: str = "") -> XlaOp:
    """Data of this shape from the host (Infeed)."""
    return infeed_with_token(create_token(builder), shape, config)[0]


def infeed_with_token(token: XlaOp, shape: ShapeLike, config: str = "") -> XlaOp:
    """(data, token) from the host, after the token (InfeedWithToken)."""
    b = token.builder
    return b.add(Op.INFEED, [token], tuple_shape(b.shape(shape), TOKEN), infeed_config=config or None)


def outfeed(operand: XlaOp, shape_with_layout: ShapeLike | None = None, outfeed_config: str = "") -> XlaOp:
    """Data to the host (Outfeed); the result is a token."""
    token = operand.builder.add(Op.AFTER_ALL)
    return outfeed_with_token(operand, token, shape_with_layout, outfeed_config)


def outfeed_with_token(
    operand: XlaOp, token: XlaOp, shape_with_layout: ShapeLike | None = None, outfeed_config: str = ""
) -> XlaOp:
    """Data to the host after the token (OutfeedWithToken); the result is a token."""
    b = operand.builder
    shape = operand.shape if shape_with_layout is None else b.shape(shape_with_layout)
    return b.add(Op.OUTFEED, [operand, token], outfeed_shape=shape, outfeed_config=outfeed_config or None)


def send_with_token(operand: XlaOp, token: XlaOp, channel_id: int, is_host_transfer: bool = False) -> XlaOp:
    """Data to the other end of a channel (SendWithToken, SendToHost); the result is a token."""
    rest: dict[str, Any] = {"channel_id": channel_id, "is_host_transfer": is_host_transfer or None}
    return operand.builder.add(Op.SEND_DONE, [operand.builder.add(Op.SEND, [operand, token], **rest)], **rest)


def recv_with_token(token: XlaOp, shape: ShapeLike, channel_id: int, is_host_transfer: bool = False) -> XlaOp:
    """(data, token) from the other end of a channel (RecvWithToken, RecvFromHost)."""
    b = token.builder
    rest: dict[str, Any] = {"channel_id": channel_id, "is_host_transfer": is_host_transfer or None}
    start = b.add(Op.RECV, [token], tuple_shape(b.shape(shape), Shape(b.dtype("u32")), TOKEN), **rest)
    return b.add(Op.RECV_DONE, [start], **rest)


# -- collectives ------------------------------------------------------------------------------------------------------
def replica_id(builder: XlaBuilder) -> XlaOp:
    """The number of the replica, a u32 (ReplicaId)."""
    return builder.add(Op.REPLICA_ID)


def partition_id(builder: XlaBuilder) -> XlaOp:
    """The number of the partition, a u32 (PartitionId)."""
    return builder.add(Op.PARTITION_ID)


def all_reduce(
    operands: XlaOp | Sequence[XlaOp],
    computation: ComputationLike,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Elements combined over the devices of each group (AllReduce, AllReduceTuple)."""
    xs = _listed(operands)
    region = scalars_computation(xs[0], computation, [xs[0], xs[0]], "reducer")
    rest = _group_attributes(replica_groups, channel_id, use_global_device_ids)
    return xs[0].builder.add(Op.ALL_REDUCE, xs, to_apply=region, **rest)


def cross_replica_sum(operand: XlaOp, replica_groups: Groups = ()) -> XlaOp:
    """The sum over the replicas of each group (CrossReplicaSum)."""
    return all_reduce(operand, lambda a, b: a + b, replica_groups)


def all_gather(
    operand: XlaOp,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """The operands of a group of shard_count devices, one after the other along a dimension (AllGather)."""
    rest = _group_attributes(replica_groups, channel_id, use_global_device_ids)
    shape = _scaled(operand, all_gather_dimension, shard_count, 1)
    return operand.builder.add(Op.ALL_GATHER, [operand], shape, dimensions=(all_gather_dimension,), **rest)


def reduce_scatter(
    operand: XlaOp,
    computation: ComputationLike,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Each device's part of the combined operands of its group (ReduceScatter)."""
    region = scalars_computation(operand, computation, [operand, operand], "reducer")
    rest = _group_attributes(replica_groups, channel_id, use_global_device_ids)
    shape = _scaled(operand, scatter_dimension, 1, shard_count)
    return operand.builder.add(
        Op.REDUCE_SCATTER, [operand], shape, dimensions=(scatter_dimension,), to_apply=region, **rest
    )


def _scaled(operand: XlaOp, dimension: int, times: int, over: int) -> Shape:
    if not 0 <= dimension < operand.rank:
        operand.builder.fail(f"{operand.shape} has no dimension {dimension}")
    if over < 1 or operand.dims[dimension] % over:
        operand.builder.fail(f"dimension {dimension} of {operand.shape} has no {over} equal parts")
    dims = list(operand.dims)
    dims[dimension] = dims[dimension] * times // over
    return Shape(operand.dtype, tuple(dims))


def all_to_all(
    operand: XlaOp,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
) -> XlaOp:
    """Part k of each device along split_dimension goes to device k of its group, which puts the parts together along
    concat_dimension (AllToAll).
    """
    _scaled(operand, split_dimension, 1, split_count)
    rest = _group_attributes(replica_groups, channel_id, None)
    whole = Shape(operand.dtype, operand.dims)
    moved = operand.builder.add(Op.ALL_TO_ALL, [operand], whole, dimensions=(split_dimension,), **rest)
    if split_dimension == concat_dimension:
        return moved
    sizes: list[int] = []
    for d, n in enumerate(operand.dims):
        sizes += [split_count, n // split_count] if d == split_dimension else [n]
    order: list[int] = []
    for d in range(operand.rank):
        order += [split_dimension] * (d == concat_dimension) + [d + 1 if d >= split_dimension else d]
    result = list(operand.dims)
    result[split_dimension] //= split_count
    _scaled(operand, concat_dimension, 1, 1)
    result[concat_dimension] *= split_count
    return reshape(transpose(reshape(moved, sizes), order), result)


def all_to_all_tuple(operands: Sequence[XlaOp], replica_groups: Groups = (), channel_id: int | None = None) -> XlaOp:
    """Operand k of each device goes to device k of its group; the result is a tuple (AllToAllTuple)."""
    b, shapes = operands[0].builder, [Shape(o.dtype, o.dims) for o in operands]
    return b.add(Op.ALL_TO_ALL, operands, tuple_shape(*shapes), **_group_attributes(replica_groups, channel_id, None))


def collective_broadcast(operand: XlaOp, replica_groups: Groups = (), channel_id: int | None = None) -> XlaOp:
    """The operand of the first device of each group (CollectiveBroadcast)."""
    rest = _group_attributes(replica_groups, channel_id, None)
    return operand.builder.add(Op.COLLECTIVE_BROADCAST, [operand], **rest)


def collective_permute(
    operand: XlaOp, source_target_pairs: Sequence[tuple[int, int]], channel_id: int | None = None
) -> XlaOp:
    """The operand of the device that is the source of this one; zeros without a source (CollectivePermute)."""
    return operand.builder.add(
        Op.COLLECTIVE_PERMUTE, [operand], source_target_pairs=source_target_pairs, channel_id=channel_id
    )


def _listed(operands: XlaOp | Sequence[XlaOp]) -> list[XlaOp]:
    return [operands] if isinstance(operands, XlaOp) else list(operands)


def _group_attributes(groups: Groups, channel_id: int | None, use_global_device_ids: bool | None) -> dict[str, Any]:
    found = {"replica_groups": groups, "channel_id": channel_id}
    return found if use_global_device_ids is None else {**found, "use_global_device_ids": use_global_device_ids}


__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_tuple",
    "collective_broadcast",
    "collective_permute",
    "cross_replica_sum",
    "custom_call",
    "infeed",
    "infeed_with_token",
    "outfeed",
    "outfeed_with_token",
    "partition_id",
    "recv_with_token",
    "reduce_scatter",
    "replica_id",
    "send_with_token",
]
