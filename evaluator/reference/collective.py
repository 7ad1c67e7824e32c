"""Collectives on N simulated devices. A start brings its operands to the meeting of its group, a done waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...hlo.errors import CollectiveError, UnsupportedError
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.replica_groups import mode_of
from ...hlo.shapes import Shape
from .context import Context, Pending, Value
from .device_groups import group_of, paired

Array = np.ndarray
Leaves = list[Array]
Combine = Callable[[Instruction, list[Leaves], int, Context], Leaves]
"""(instruction, the operands of each member in the group's order, this device's place in it, context) -> results."""


def _begin(combine: Combine, instruction: Instruction, operands: Sequence[Array], context: Context) -> Pending:
    """Meet; the pending result is the list of result arrays."""
    members = group_of(instruction, context.device, context.replicas, context.partitions)
    if members is None:
        if instruction.opcode is Op.COLLECTIVE_BROADCAST:  # nobody sends to this device
            return Pending(lambda: [np.zeros_like(o) for o in operands])
        raise CollectiveError(
            f"no group of {instruction.name} names {context.name}",
            location=instruction.location,
            remedy="each device must be in one of its replica_groups",
        )
    pending = context.meet(instruction, members, list(operands))
    place = members.index(context.device)
    return Pending(lambda: combine(instruction, pending.result(), place, context))


def _pack(instruction: Instruction, shape: Shape, results: Leaves) -> Value:
    """The results as a value of `shape`. Raises CollectiveError if the number of devices does not fit the shape."""
    leaves = [leaf for _, leaf in shape.leaves()]
    for leaf, result in zip(leaves, results, strict=True):
        if leaf.dims != result.shape and not leaf.is_dynamic:
            raise CollectiveError(
                f"{instruction.name} gives {list(result.shape)} on this number of devices, where {leaf} is declared",
                location=instruction.location,
                remedy="run it on as many devices as its shapes are made for",
            )
    return tuple(results) if shape.is_tuple else results[0]


def at_once(combine: Combine):
    """The rule of a collective that has no separate start and done."""

    def rule(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
        return _pack(instruction, instruction.shape, _begin(combine, instruction, operands, context).result())

    return rule


# --- what each collective does with the members' operands ------------------------------------------------------------


def _reduced(instruction: Instruction, brought: list[Leaves], _place: int, context: Context) -> Leaves:
    """Reduce the arrays of all members, in the order of the group."""
    region: Computation = instruction.attributes["to_apply"]
    totals = brought[0]
    for other in brought[1:]:
        totals = [
            np.broadcast_to(context.vectorise(region, [a, b]), a.shape) for a, b in zip(totals, other, strict=True)
        ]
    return totals


def _gathered(instruction: Instruction, brought: list[Leaves], _place: int, _context: Context) -> Leaves:
    (dim,) = instruction.dimensions
    return [np.concatenate(parts, axis=dim) for parts in zip(*brought, strict=True)]


def _scattered(instruction: Instruction, brought: list[Leaves], place: int, context: Context) -> Leaves:
    (dim,) = instruction.dimensions
    return [
        _share(instruction, total, dim, len(brought), place) for total in _reduced(instruction, brought, place, context)
    ]


def _share(instruction: Instruction, x: Array, dim: int, count: int, place: int) -> Array:
    if x.shape[dim] % count:
        raise CollectiveError(
            f"{instruction.name} cannot cut {x.shape[dim]} elements into {count} equal shares",
            location=instruction.location,
        )
    return np.split(x, count, axis=dim)[place]


def _exchanged(instruction: Instruction, brought: list[Leaves], place: int, _context: Context) -> Leaves:
    """With dimensions: concatenate block `place` of each member's array. Without: operand `place` of each member."""
    if instruction.dimensions:
        (dim,) = instruction.dimensions
        shares = [_share(instruction, theirs[0], dim, len(brought), place) for theirs in brought]
        return [np.concatenate(shares, axis=dim)]
    if len(brought[0]) != len(brought):
        raise CollectiveError(
            f"{instruction.name} has {len(brought[0])} operands for a group of {len(brought)}",
            location=instruction.location,
            remedy="one operand goes to each member",
        )
    return [theirs[place] for theirs in brought]


def _from_first(_instruction: Instruction, brought: list[Leaves], _place: int, _context: Context) -> Leaves:
    return brought[0]


def _ragged(_instruction: Instruction, brought: list[Leaves], place: int, _context: Context) -> Leaves:
    """Rows input[in : in + size] of each member to output[out : out + size]; the sender says where they go."""
    out = brought[place][1].copy()
    for x, _, *table in brought:
        starts, sizes, targets, _ = [t.reshape(len(brought), -1)[place] for t in table]
        for start, size, to in zip(starts.tolist(), sizes.tolist(), targets.tolist(), strict=True):
            out[to : to + size] = x[start : start + size]
    return [out]


all_reduce = at_once(_reduced)
all_gather = at_once(_gathered)
reduce_scatter = at_once(_scattered)
all_to_all = at_once(_exchanged)
broadcast = at_once(_from_first)
ragged_all_to_all = at_once(_ragged)


def all_reduce_start(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    pending = _begin(_reduced, instruction, operands, context)
    return Pending(lambda: _pack(instruction, instruction.shape, pending.result()))


def all_reduce_done(_instruction: Instruction, operands: Sequence[Pending], _context: Context) -> Value:
    return operands[0].result()


def all_gather_start(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """(operands, results)."""
    pending = _begin(_gathered, instruction, operands, context)
    value = tuple(operands) if len(operands) > 1 else operands[0]
    return (value, Pending(lambda: _pack(instruction, instruction.shape.elements[1], pending.result())))


def pair_done(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return operands[0][1].result()


# --- collective-permute ----------------------------------------------------------------------------------------------


def _permuted(instruction: Instruction, operands: Sequence[Value], context: Context) -> Pending:
    """Each source sends to its targets; a device that no pair names as target gets zeros."""
    if instruction.attributes.get("slice_sizes"):
        return _permuted_in_place(instruction, operands, context)
    pairs = _pairs(instruction, context)
    channel = instruction.attributes.get("channel_id")
    for source, target in pairs:
        if source == context.device:
            context.post(("permute", channel, source, target), list(operands))
    sources = [s for s, t in pairs if t == context.device]
    if not sources:
        return Pending(lambda: [np.zeros_like(o) for o in operands])
    return Pending(lambda: _matching(instruction, operands, _receive(instruction, channel, sources[0], context)))


def _pairs(instruction: Instruction, context: Context) -> Sequence[tuple[int, int]]:
    """The (source, target) pairs, as devices."""
    named = instruction.attributes.get("source_target_pairs", ())
    mode = mode_of(instruction)
    return paired(instruction, named, context.device, context.replicas, context.partitions, mode)


def _receive(instruction: Instruction, channel: int | None, source: int, context: Context) -> Value:
    address = ("permute", channel, source, context.device)
    return context.collect(instruction, [address], f"what {context.name_of(source)} sends")


def _matching(instruction: Instruction, own: Sequence[Array], received: Leaves) -> Leaves:
    if [(x.dtype, x.shape) for x in own] != [(x.dtype, x.shape) for x in received]:
        raise CollectiveError(
            f"{instruction.name} receives {[f'{x.dtype}{list(x.shape)}' for x in received]}",
            location=instruction.location,
            remedy="source and target must run the same collective",
        )
    return received


@dataclass(frozen=True, slots=True)
class _Slice:
    """One of the slices that an array sends. part: its pairs are the part-th of `parts` equal parts of all pairs."""

    array: int
    size: Sequence[int]
    start_in: Sequence[Array]
    start_out: Sequence[Array]
    part: int
    parts: int

    def pairs_of(self, pairs: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        count = len(pairs) // self.parts
        return pairs[self.part * count : (self.part + 1) * count]


def _slices(sizes: Sequence[Sequence[int]], starts_in: Sequence[Value], starts_out: Sequence[Value]) -> list[_Slice]:
    """The slices of all arrays. An array has one slice, whose starts stand alone, or several in a tuple."""
    found: list[_Slice] = []
    for array, starts in enumerate(zip(starts_in, starts_out, strict=True)):
        from_, to = [s if isinstance(s[0], tuple) else (s,) for s in starts]
        for part, (start_in, start_out) in enumerate(zip(from_, to, strict=True)):
            size = sizes[len(found)] if len(found) < len(sizes) else ()
            found.append(_Slice(array, size, start_in, start_out, part, len(from_)))
    return found


def _permuted_in_place(instruction: Instruction, operands: Sequence[Value], context: Context) -> Pending:
    """(inputs, outputs, starts in the inputs, starts in the outputs). Slices overwrite parts of the outputs."""
    single = not isinstance(operands[0], tuple)
    inputs, outputs, starts_in, starts_out = [(o,) if single else o for o in operands]
    sizes = list(instruction.attributes["slice_sizes"])
    slices = _slices(sizes, starts_in, starts_out)
    pairs = _pairs(instruction, context)
    if len(slices) != len(sizes) or any(len(pairs) % s.parts for s in slices):
        raise UnsupportedError(
            "evaluator", "collective-permute of slices that do not match its pairs", location=instruction.location
        )
    channel, arriving = instruction.attributes.get("channel_id"), []
    for s in slices:
        mine, x = s.pairs_of(pairs), inputs[s.array]
        for source, target in mine:
            if source == context.device:
                context.post(("permute", channel, source, target), x[_window(x, s.start_in, s.size)])
        arriving += [(s, source) for source, target in mine if target == context.device][:1]

    def finish() -> Leaves:
        results = [o.copy() for o in outputs]
        for s, source in arriving:
            result = results[s.array]
            result[_window(result, s.start_out, s.size)] = _receive(instruction, channel, source, context)
        return results

    return Pending(finish)


def _window(x: Array, starts: Sequence[Array], size: Sequence[int]) -> tuple[slice, ...]:
    """The start index, clamped as for dynamic-slice."""
    first = [max(0, min(int(s), n - m)) for s, n, m in zip(starts, x.shape, size, strict=True)]
    return tuple(slice(f, f + m) for f, m in zip(first, size, strict=True))


def permute(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    return _pack(instruction, instruction.shape, _permuted(instruction, operands, context).result())


def permute_start(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    """(operands, results, contexts…)."""
    pending = _permuted(instruction, operands, context)
    value = tuple(operands) if len(operands) > 1 else operands[0]
    rest = (np.zeros((), np.uint32),) * (len(instruction.shape.elements) - 2)
    return (value, Pending(lambda: _pack(instruction, instruction.shape.elements[1], pending.result())), *rest)


# --- who am I --------------------------------------------------------------------------------------------------------


def partition_id(_instruction: Instruction, _operands: Sequence[Value], context: Context) -> Array:
    return np.array(context.device % context.partitions, np.uint32)


def replica_id(_instruction: Instruction, _operands: Sequence[Value], context: Context) -> Array:
    return np.array(context.device // context.partitions, np.uint32)
