"""Expand collectives between several devices: what remains is exchanges of bytes along the outermost dimension.

An exchange is an all-gather of single rows, an all-to-all of rows, a collective-permute, or a collective-broadcast,
each of one array. All else are ops of one device: reducers are applied to the rows in the order of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...hlo.conventions import PART
from ...hlo.devices import Devices
from ...hlo.dtypes import DType
from ...hlo.errors import CollectiveError, UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.replica_groups import Groups, device_groups, device_pairs
from ...hlo.shapes import Shape, array
from ..building import Builder, Rewrite, apply_pointwise, is_pointwise
from .ragged_all_to_all import moved_rows

LARGE = 1 << 16
"""Bytes from which an all-reduce exchanges parts: each device reduces one, and gathers those of the others."""

STARTS = {
    Op.ALL_GATHER_START: Op.ALL_GATHER,
    Op.ALL_REDUCE_START: Op.ALL_REDUCE,
    Op.COLLECTIVE_PERMUTE_START: Op.COLLECTIVE_PERMUTE,
}


def collective_rules(devices: Devices) -> Mapping[Op, Rewrite]:
    """The rules for programs of several devices. They leave exchanges as they are."""
    rules: dict[Op, Rewrite] = {op: _at_once(devices, results) for op, results in _RESULTS.items()}
    for start, op in STARTS.items():
        rules[start] = _started(devices, _RESULTS[op], pair=start is not Op.ALL_REDUCE_START)
    return rules


def _at_once(devices: Devices, results: Results) -> Rewrite:
    def rule(i: Instruction, b: Builder) -> Instruction | None:
        if _is_exchange(i, devices):
            return None
        return _whole(b, _fitting(i, results(_Collective(i, b, devices)), i.shape), i.shape)

    return rule


def _started(devices: Devices, results: Results, pair: bool) -> Rewrite:
    """The rule of a start. pair: its result is (operands, results, contexts…), else the results."""

    def rule(i: Instruction, b: Builder) -> Instruction:
        shape = i.shape.elements[1] if pair else i.shape
        value = _whole(b, _fitting(i, results(_Collective(i, b, devices)), shape), shape)
        if not pair:
            return value
        given = _whole(b, i.operands, i.shape.elements[0])
        return b.tuple([given, value, *(b.constant(0, s.dtype, s.dims) for s in i.shape.elements[2:])])

    return rule


def _whole(b: Builder, values: Sequence[Instruction], shape: Shape) -> Instruction:
    return b.tuple(values) if shape.is_tuple else values[0]


def _is_exchange(i: Instruction, devices: Devices) -> bool:
    """Whether a collective is one of the exchanges that remain."""
    if len(i.operands) != 1 or not i.operands[0].shape.is_array or not i.shape.is_array or i.shape.is_dynamic:
        return False
    dims = i.operands[0].shape.dims
    if i.opcode is Op.ALL_GATHER:
        count = max(map(len, device_groups(i, devices, "plan")))
        return i.dimensions == (0,) and i.shape.dims == (count, *dims[1:]) and dims[:1] == (1,)
    if i.opcode is Op.ALL_TO_ALL:
        return i.dimensions == (0,) and str(i.attributes.get("backend_config", "")).startswith(PART)
    return i.opcode in (Op.COLLECTIVE_BROADCAST, Op.COLLECTIVE_PERMUTE) and not i.attributes.get("slice_sizes")


def _fitting(i: Instruction, results: Sequence[Instruction], shape: Shape) -> Sequence[Instruction]:
    leaves = [leaf for _, leaf in shape.leaves()]
    for leaf, result in zip(leaves, results, strict=True):
        if leaf.dims != result.shape.dims:
            raise CollectiveError(
                f"{i.name} gives {list(result.shape.dims)} on this number of devices, where {leaf} is declared",
                location=i.location,
                remedy="compile it for as many devices as its shapes are made for",
            )
    return results


@dataclass(frozen=True)
class _Collective:
    """A collective that is being expanded."""

    i: Instruction
    b: Builder
    devices: Devices

    def __post_init__(self) -> None:
        if any(s.is_dynamic for o in (self.i, *self.i.operands) for _, s in o.shape.leaves()):
            raise self.unsupported(
                "of dynamic dimensions", "give every dimension a fixed size; XLA:CPU refuses it, too"
            )

    def unsupported(self, what: str, remedy: str) -> UnsupportedError:
        return UnsupportedError("plan", f"{self.i.opcode.value} {what}", location=self.i.location, remedy=remedy)

    @cached_property
    def groups(self) -> Groups:
        return device_groups(self.i, self.devices, "plan")

    @cached_property
    def count(self) -> int:
        """Devices of the largest group."""
        return max(map(len, self.groups))

    @property
    def is_alone(self) -> bool:
        """Whether each device is a group by itself."""
        return self.count == 1 and len(self.groups) == self.devices.count

    @property
    def is_even(self) -> bool:
        return all(len(group) == self.count for group in self.groups)

    def require_even(self) -> None:
        if not self.is_even:
            raise CollectiveError(
                f"{self.i.name} has groups of {sorted({len(g) for g in self.groups})} devices",
                location=self.i.location,
                remedy="only an all-reduce may have groups of different sizes",
            )

    # -- exchanges -----------------------------------------------------------------------------------------------------
    def exchange(self, opcode: Op, x: Instruction, shape: Shape, **attributes: Any) -> Instruction:
        """An exchange that messages call by the name of this collective."""
        opname = STARTS.get(self.i.opcode, self.i.opcode).value
        about = {"backend_config": f"{PART}{opname} {self.i.name}"}
        return self.b.op(opcode, shape, self.b.plain(x), **attributes, **about)

    @property
    def named(self) -> dict[str, Any]:
        """The attributes that say who takes part."""
        keys = ("replica_groups", "channel_id", "use_global_device_ids")
        return {key: self.i.attributes[key] for key in keys if key in self.i.attributes}

    @property
    def named_for_rows(self) -> dict[str, Any] | None:
        """The same for an all-to-all, which has no global ids; None if it cannot say who takes part."""
        if self.i.opcode is Op.ALL_TO_ALL or "channel_id" not in self.named:
            return self.named
        if self.devices.replicas > 1:
            return None
        return {"channel_id": self.named["channel_id"], "replica_groups": self.groups}

    def gathered(self, x: Instruction) -> Instruction:
        """[devices, …x]: the arrays of the group, in its order; zeros behind those of a smaller group."""
        row = self.b.reshape(x, (1, *x.shape.dims))
        shape = array(x.shape.dtype, self.count, *x.shape.dims)
        return self.exchange(Op.ALL_GATHER, row, shape, dimensions=(0,), **self.named)

    def exchanged(self, rows: Instruction, named: dict[str, Any]) -> Instruction:
        """Row k of the result is this device's row of the k-th device of the group."""
        return self.exchange(Op.ALL_TO_ALL, rows, array(rows.shape.dtype, *rows.shape.dims), dimensions=(0,), **named)

    def passed_on(self, x: Instruction, pairs: Sequence[Sequence[int]]) -> Instruction:
        """x of the source of this device's pair, in which it is the target; zeros if there is none."""
        named: dict[str, Any] = {"source_target_pairs": tuple(map(tuple, pairs))}
        named |= {"channel_id": self.i.attributes["channel_id"]} if "channel_id" in self.i.attributes else {}
        return self.exchange(Op.COLLECTIVE_PERMUTE, x, array(x.shape.dtype, *x.shape.dims), **named)

    def is_target(self, pairs: Sequence[Sequence[int]]) -> Instruction:
        """Whether this device is the target of a pair."""
        some = self.i.replace(attributes={**self.i.attributes, "source_target_pairs": tuple(map(tuple, pairs))})
        targets = {target: 1 for _, target in device_pairs(some, self.devices, "plan")}
        return self.b.compare(self.looked_up(targets), "GT", 0)

    # -- shares --------------------------------------------------------------------------------------------------------
    def shares(self, x: Instruction, dimension: int) -> Instruction:
        """[devices, …]: x cut into equal shares along a dimension."""
        dims, count = x.shape.dims, self.count
        self.require_even()
        if dims[dimension] % count:
            raise CollectiveError(
                f"{self.i.name} cannot cut {dims[dimension]} elements into {count} equal shares",
                location=self.i.location,
            )
        cut = (*dims[:dimension], count, dims[dimension] // count, *dims[dimension + 1 :])
        order = (dimension, *(d for d in range(len(cut)) if d != dimension))
        return self.b.transpose(self.b.reshape(x, cut), order)

    def joined(self, rows: Instruction, dimension: int) -> Instruction:
        """The rows of [devices, …], one behind the other along a dimension."""
        count, *dims = rows.shape.dims
        order = (*range(1, dimension + 1), 0, *range(dimension + 1, rows.shape.rank))
        whole = (*dims[:dimension], count * dims[dimension], *dims[dimension + 1 :])
        return self.b.reshape(self.b.transpose(rows, order), whole)

    def rows(self, x: Instruction) -> list[Instruction]:
        """The rows of [devices, …]."""
        count, *dims = x.shape.dims
        return [self.b.reshape(self.b.slice_in(x, 0, n, n + 1), dims) for n in range(count)]

    # -- reductions ----------------------------------------------------------------------------------------------------
    def folded(self, rows: Sequence[Instruction]) -> Instruction:
        """The rows of a group reduced from the first to the last."""
        total, least = rows[0], min(map(len, self.groups))
        for number, row in enumerate(rows[1:], 1):
            combined = self.combined(total, row)
            total = combined if number < least else self.b.select(self.is_member(number), combined, total)
        return total

    def combined(self, x: Instruction, y: Instruction) -> Instruction:
        region = self.i.attributes["to_apply"]
        if is_pointwise(region):
            return apply_pointwise(self.b, region, [x, y])[0]
        shapes = [p.shape for p in region.parameters]
        own = self.b.region("reducer", shapes, lambda b, p: b.inline(region, p))
        return self.b.op(Op.MAP, x.shape, x, y, dimensions=tuple(range(x.shape.rank)), to_apply=own)

    def looked_up(self, by_device: Mapping[int, int]) -> Instruction:
        """The s32 that a table has for this device."""
        b, u32 = self.b, array(DType.U32)
        replica, partition = b.op(Op.REPLICA_ID, u32), b.op(Op.PARTITION_ID, u32)
        device = b.binary(Op.ADD, b.binary(Op.MULTIPLY, replica, self.devices.partitions), partition)
        table = b.constant(np.array([by_device.get(d, 0) for d in range(self.devices.count)]), DType.S32)
        return b.reshape(b.dynamic_slice(table, [b.convert(device, DType.S32)], (1,)), ())

    def is_member(self, place: int) -> Instruction:
        """Whether the group of this device has a device at this place."""
        sizes = {device: len(group) for group in self.groups for device in group}
        return self.b.compare(self.looked_up(sizes), "GT", place)

    def place(self) -> Instruction:
        """The place of this device in its group."""
        return self.looked_up({device: place for group in self.groups for place, device in enumerate(group)})

    def reduced(self, x: Instruction) -> Instruction:
        if self.is_alone:
            return x
        named = self.named_for_rows
        if named is None or not self.is_even or x.shape.bytes < LARGE:
            return self.folded(self.rows(self.gathered(x)))
        b, size, count = self.b, x.shape.size, self.count
        part = -(-size // count)
        flat = b.concatenate([b.reshape(x, (size,)), *self.filling(x, count * part - size)], 0)
        mine = self.folded(self.rows(self.exchanged(b.reshape(flat, (count, part)), named)))
        whole = b.reshape(self.gathered(mine), (count * part,))
        return b.reshape(b.slice_in(whole, 0, 0, size), x.shape.dims)

    def filling(self, x: Instruction, count: int) -> list[Instruction]:
        return [self.b.constant(0, x.shape.dtype, (count,))] if count else []

    def scattered(self, x: Instruction) -> Instruction:
        """This device's share of the reduced x."""
        (dimension,) = self.i.dimensions
        self.require_even()
        if self.is_alone:
            return x
        cut, named = self.shares(x, dimension), self.named_for_rows
        if named is not None:
            return self.folded(self.rows(self.exchanged(cut, named)))
        total, b = self.folded(self.rows(self.gathered(x))), self.b
        sizes = list(x.shape.dims)
        sizes[dimension] //= self.count
        zero = b.constant(0, DType.S32)
        starts = [zero] * x.shape.rank
        starts[dimension] = b.binary(Op.MULTIPLY, self.place(), sizes[dimension])
        return b.dynamic_slice(total, starts, sizes)


# -- the results of each collective ------------------------------------------------------------------------------------
Results = Callable[[_Collective], list[Instruction]]


def _all_reduce(c: _Collective) -> list[Instruction]:
    return [c.reduced(x) for x in c.i.operands]


def _all_gather(c: _Collective) -> list[Instruction]:
    (dimension,) = c.i.dimensions
    c.require_even()
    return [x if c.is_alone else c.joined(c.gathered(x), dimension) for x in c.i.operands]


def _reduce_scatter(c: _Collective) -> list[Instruction]:
    return [c.scattered(x) for x in c.i.operands]


def _all_to_all(c: _Collective) -> list[Instruction]:
    """With dimensions, shares of the one array; else one array for each device of the group."""
    c.require_even()
    if c.is_alone:
        return list(c.i.operands)
    if c.i.dimensions:
        (x,), (dimension,) = c.i.operands, c.i.dimensions
        return [c.joined(c.exchanged(c.shares(x, dimension), c.named), dimension)]
    if len(c.i.operands) != c.count:
        raise CollectiveError(
            f"{c.i.name} has {len(c.i.operands)} operands for a group of {c.count}",
            location=c.i.location,
            remedy="one operand goes to each member",
        )
    given = c.b.concatenate([c.b.reshape(x, (1, *x.shape.dims)) for x in c.i.operands], 0)
    return c.rows(c.exchanged(given, c.named))


def _broadcast(c: _Collective) -> list[Instruction]:
    op, named = Op.COLLECTIVE_BROADCAST, c.named
    return [c.exchange(op, x, array(x.shape.dtype, *x.shape.dims), **named) for x in c.i.operands]


def _permute(c: _Collective) -> list[Instruction]:
    if c.i.attributes.get("slice_sizes") or any(o.shape.is_tuple for o in c.i.operands):
        return _permute_slices(c)
    device_pairs(c.i, c.devices, "plan")
    return [c.passed_on(x, c.i.attributes.get("source_target_pairs", ())) for x in c.i.operands]


def _permute_slices(c: _Collective) -> list[Instruction]:
    """Operands: inputs, outputs, starts in the inputs, starts in the outputs. An array has one slice, or several in a
    tuple; each of these has an equal part of the pairs. Slices overwrite parts of the outputs.
    """
    b, sizes, pairs = c.b, list(c.i.attributes["slice_sizes"]), c.i.attributes.get("source_target_pairs", ())
    single = not c.i.operands[0].shape.is_tuple
    results = []
    for x, out, *starts in zip(*([o] if single else b.elements(o) for o in c.i.operands), strict=True):
        from_, to = (_each_slice(b, s) for s in starts)
        if len(pairs) % len(from_) or len(to) != len(from_) or len(sizes) < len(from_):
            raise c.unsupported("of slices that do not match its pairs", "give each slice as many pairs")
        share = len(pairs) // len(from_)
        for part, (start_in, start_out) in enumerate(zip(from_, to, strict=True)):
            own = pairs[part * share : (part + 1) * share]
            got = c.passed_on(b.dynamic_slice(x, start_in, sizes.pop(0)), own)
            out = b.select(c.is_target(own), b.dynamic_update_slice(out, got, start_out), out)
        results.append(out)
    return results


def _each_slice(b: Builder, starts: Instruction) -> list[list[Instruction]]:
    """The starts of each slice, one number for each dimension."""
    elements = b.elements(starts)
    return [b.elements(e) for e in elements] if elements[0].shape.is_tuple else [elements]


def _ragged(c: _Collective) -> list[Instruction]:
    """All rows of the group are gathered; of each sender's table a device reads the part for itself."""
    c.require_even()
    b, (x, out, *table) = c.b, c.i.operands
    if c.is_alone:
        return [moved_rows(b, x, out, table[:3])]
    groups = table[0].shape.size // c.count
    if table[0].shape.size % c.count:
        raise CollectiveError(
            f"{c.i.name} has tables of {table[0].shape.size} numbers for a group of {c.count}", location=c.i.location
        )
    zero = b.constant(0, DType.S32)
    mine = []
    for t in table[:3]:
        rows = c.gathered(b.reshape(b.convert(t, DType.S64), (c.count, groups)))
        mine.append(b.dynamic_slice(rows, [zero, c.place(), zero], (c.count, 1, groups)))
    first = b.binary(Op.MULTIPLY, b.iota(DType.S64, mine[0].shape.dims, 0), x.shape.dims[0])
    starts, *rest = (b.reshape(t, (c.count * groups,)) for t in (b.binary(Op.ADD, mine[0], first), *mine[1:]))
    return [moved_rows(b, c.joined(c.gathered(x), 0), out, [starts, *rest])]


_RESULTS: Mapping[Op, Results] = {
    Op.ALL_GATHER: _all_gather,
    Op.ALL_REDUCE: _all_reduce,
    Op.ALL_TO_ALL: _all_to_all,
    Op.COLLECTIVE_BROADCAST: _broadcast,
    Op.COLLECTIVE_PERMUTE: _permute,
    Op.RAGGED_ALL_TO_ALL: _ragged,
    Op.REDUCE_SCATTER: _reduce_scatter,
}
