"""Very large products of a batch that are only a step to another product, as scores of attention are: made a part of
the batch at a time, in a loop, so that only the scores of one part exist.

What lies between both products works within an element of the batch: elementwise ops, reductions and broadcasts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opclasses import CONTROL_PREDECESSORS, ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field
from ...hlo.shapes import array
from ..building import Builder
from ..expansion import expand_ops

LARGE = 1 << 28
"""Minimum bytes of a product that is made in parts. The loop copies each part of what it reads and writes: smaller
scores (12 heads of 512 × 64) took 1.03 of the time on one core, and 1.1 on two.
"""

PART = 1 << 22
"""Bytes of a part at most, of which one element of the batch is the least."""

_BETWEEN = (ELEMENTWISE | {Op.BROADCAST, Op.REDUCE, Op.RESHAPE, Op.DOT}) - {Op.STOCHASTIC_CONVERT}

_STORED = frozenset({Op.PARAMETER, Op.GET_TUPLE_ELEMENT})
"""Values as large as the product that the loop may read: they are there anyway."""

Users = Mapping[str, frozenset[str]]


def batch_loops(module: Module) -> Module:
    """Make such products in loops."""
    if Op.DOT not in module.opcodes:
        return module
    if not any(i.opcode is Op.DOT and i.shape.bytes >= LARGE for c in module.computations for i in c.instructions):
        return module
    users: dict[str, set[str]] = {}
    for c in module.computations:
        for i in c.instructions:
            for o in i.operands:
                users.setdefault(o.name, set()).add(i.name)
        users.setdefault(c.root.name, set()).add("")  # somebody else reads it
    return expand_ops(module, {Op.DOT: partial(_in_parts, users={k: frozenset(v) for k, v in users.items()})})


@dataclass(eq=False, slots=True)
class _Chain:
    """What is made within the loop.

    dims: the dimension of the batch of each value, None for those that all parts share. inside: values that are made in
    the loop, operands first. leaves: values that it reads.
    """

    dims: dict[Instruction, int | None] = field(default_factory=dict)
    inside: list[Instruction] = field(default_factory=list)
    leaves: list[Instruction] = field(default_factory=list)


def _in_parts(i: Instruction, b: Builder, users: Users) -> Instruction | None:
    batch = [i.shape.dims[k] for k in range(len(i.attributes.get("lhs_batch_dims", ())))]
    if not batch or len(i.operands) != 2 or not i.shape.size:
        return None
    along = max(range(len(batch)), key=batch.__getitem__)
    first = _source(i, users)
    if first is None or batch[along] < 2:
        return None
    chain = _chain(i, along, first, users)
    if chain is None:
        return None
    each = first.shape.bytes // batch[along]
    part = max(n for n in range(1, batch[along]) if batch[along] % n == 0 and (n == 1 or n * each <= PART))
    return _loop(i, b, chain, along, part)


def _source(i: Instruction, users: Users) -> Instruction | None:
    """The large product that only the operands of a dot are made of."""
    stack, seen = list(i.operands), set(i.operands)
    while stack:
        x = stack.pop()
        if x.opcode is Op.DOT and x.shape.bytes >= LARGE and len(x.operands) == 2:
            return x
        if x.opcode in _BETWEEN - {Op.DOT} and x.shape.is_array and x.name in users:
            fresh = {*x.operands} - seen
            seen |= fresh
            stack += fresh
    return None


def _chain(root: Instruction, along: int, first: Instruction, users: Users) -> _Chain | None:
    """What lies between `first` and the root; None if it does not work within elements of the batch, or if something
    else reads it.
    """
    chain, made_of_first = _Chain(), _above(root, first)
    done: set[Instruction] = set()
    stack: list[tuple[Instruction, int | None, bool]] = [(root, along, False)]
    while stack:
        x, d, finished = stack.pop()
        if finished:
            chain.inside.append(x)
            continue
        if x in done:
            if chain.dims[x] != d:
                return None
            continue
        done.add(x)
        chain.dims[x] = d
        full = x.shape.is_array and x.shape.size == first.shape.size
        if d is None or not (x in made_of_first or full) or x.opcode not in _BETWEEN:
            if x in made_of_first or (full and x.opcode not in _STORED):
                return None
            chain.leaves.append(x)
            continue
        read = _read(x, d) if x.opcode is not Op.DOT or x in (root, first) else None
        if read is None or CONTROL_PREDECESSORS in x.attributes:
            return None
        stack.append((x, d, True))
        stack += [(o, k, False) for o, k in zip(x.operands, read, strict=True)]
    made = {x.name for x in chain.inside}
    private = all(users.get(x.name, frozenset()) <= made for x in chain.inside if x is not root)
    return chain if private and first in done else None


def _above(root: Instruction, first: Instruction) -> set[Instruction]:
    """The values between a product and the root that are made of it, both included."""
    readers: dict[Instruction, list[Instruction]] = {}
    stack, seen = [root], {root}
    while stack:
        x = stack.pop()
        for o in dict.fromkeys(x.operands) if x is root or x.opcode in _BETWEEN - {Op.DOT} else ():
            readers.setdefault(o, []).append(x)
            if o not in seen:
                seen.add(o)
                stack.append(o)
    found, stack = {first}, [first]
    while stack:
        fresh = [x for x in readers.get(stack.pop(), ()) if x not in found]
        found.update(fresh)
        stack += fresh
    return found


def _read(x: Instruction, d: int) -> list[int | None] | None:
    """The dimension of each operand that follows dimension d of a value; None in place of all if one does not."""
    if x.opcode is Op.DOT:
        sides = [x.attributes.get(f"{side}_batch_dims", ()) for side in ("lhs", "rhs")]
        return [side[d] for side in sides] if d < len(sides[0]) else None
    if x.opcode is Op.BROADCAST:
        at = tuple(x.dimensions)
        return [at.index(d) if d in at else None]
    if x.opcode is Op.REDUCE:
        kept = [k for k in range(x.operands[0].shape.rank) if k not in x.dimensions]
        return [kept[d], None] if len(x.operands) == 2 else None
    if x.opcode is Op.RESHAPE:
        before, source = math.prod(x.shape.dims[:d]), x.operands[0].shape.dims
        fits = [k for k, n in enumerate(source) if n == x.shape.dims[d] and math.prod(source[:k]) == before]
        return [fits[-1]] if fits else None
    return [d if o.shape.dims == x.shape.dims else None for o in x.operands]


def _loop(i: Instruction, b: Builder, chain: _Chain, along: int, part: int) -> Instruction:
    result = b.broadcast(b.constant(0, i.shape.dtype), i.shape.dims)
    leaves = [b.plain(x) for x in chain.leaves]

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        *given, made = values
        start, zero = b.binary(Op.MULTIPLY, k, part), b.constant(0, DType.S32)
        new: dict[Instruction, Instruction] = {}
        for leaf, x in zip(chain.leaves, given, strict=True):
            d = chain.dims[leaf]
            if d is not None:
                starts = [start if n == d else zero for n in range(x.shape.rank)]
                dims = _shorter(x, d, part)
                x = b.op(Op.DYNAMIC_SLICE, array(x.shape.dtype, *dims), x, *starts, dynamic_slice_sizes=dims)
            new[leaf] = x
        for x in chain.inside:
            d = chain.dims[x]
            assert d is not None
            shape = array(x.shape.dtype, *_shorter(x, d, part))
            new[x] = b.op(x.opcode, shape, *(new[o] for o in x.operands), **x.attributes)
        starts = [start if n == along else zero for n in range(i.shape.rank)]
        return [*given, b.op(Op.DYNAMIC_UPDATE_SLICE, made.shape, made, new[i], *starts)]

    return b.counted(i.shape.dims[along] // part, [*leaves, result], step)[-1]


def _shorter(x: Instruction, d: int, part: int) -> tuple[int, ...]:
    return tuple(part if k == d else n for k, n in enumerate(x.shape.dims))
