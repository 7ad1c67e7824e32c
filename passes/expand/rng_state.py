"""Expand rng and rng-get-and-update-state into arithmetic on one state, which loops and branches carry along.

The state is a 128-bit counter with the same value at the start of every run. rng draws Philox-4x32 words from it, with
2^32 · the number of the device as key, and advances it by the number of blocks used. Uniform numbers use the upper
bits of one word, normal numbers the Box-Muller transform (1958) of two. XLA promises a distribution only; the evaluator
draws the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.conventions import FIRST_STATE
from ...hlo.devices import ONE_DEVICE, Devices
from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL, CONTROL_PREDECESSORS, branches, control_computations
from ...hlo.opcodes import Op
from ...hlo.shapes import array, tuple_shape
from ..building import Builder
from ..expansion import after
from ..fusion.unfuse import take_apart
from ..rewriting import Names, callees_first, with_attributes
from .rng import philox

RANDOM = frozenset({Op.RNG, Op.RNG_GET_AND_UPDATE_STATE})
WORD = array(DType.U64)
State = list[Instruction]  # low and high half of the counter, u64 scalars


def expand_rng_state(module: Module, devices: Devices = ONE_DEVICE) -> Module:
    """Replace rng and rng-get-and-update-state outside regions by arithmetic on a state that the module carries."""
    if not RANDOM & module.opcodes:
        return module
    module = take_apart(module, lambda i: i.opcode is Op.FUSION and bool(RANDOM & i.called()[0].opcodes))
    if not any(RANDOM & c.opcodes for c in control_computations(module)):
        return module
    threader = _Threader(Names.of(module), devices)
    b = Builder(threader.names, "rng")
    state = [b.constant(FIRST_STATE >> shift & (2**64 - 1), DType.U64) for shift in (0, 64)]
    root, _ = threader.body(b, module.entry, {}, state)
    entry = Computation(module.entry.name, tuple(b.instructions), root, module.entry.attributes)
    return Module(module.name, callees_first(entry), entry, module.attributes)


class _Threader:
    def __init__(self, names: Names, devices: Devices):
        self.names, self.devices = names, devices
        self._drawing: dict[Computation, bool] = {}

    def draws(self, computation: Computation) -> bool:
        """Whether the computation, or a loop or branch in it, draws random numbers."""
        known = self._drawing.get(computation)
        if known is None:
            inner = (c for i in computation.instructions if i.opcode in CONTROL for c in i.called())
            known = self._drawing[computation] = bool(RANDOM & computation.opcodes) or any(map(self.draws, inner))
        return known

    def body(
        self, b: Builder, old: Computation, values: dict[Instruction, Instruction], state: State
    ) -> tuple[Instruction, State]:
        """Add all instructions to the builder. Returns the root and the state after them."""
        for i in old.instructions:
            if i in values:
                continue
            b.stem, b.location = i.name, i.location
            operands = tuple(values[o] for o in i.operands)
            moved = i if operands == i.operands else i.replace(operands=operands)
            if i.opcode in RANDOM:
                values[i], state = self.taken(moved, b, state)
            elif i.opcode in CONTROL and any(map(self.draws, i.called())):
                values[i], state = self.control(moved, b, state)
            else:
                values[i] = b.add(moved)
        return values[old.root], state

    def taken(self, i: Instruction, b: Builder, state: State) -> tuple[Instruction, State]:
        """Expand one random op. Returns its value, with the name and control predecessors of `i`, and the new state."""
        made = Builder(self.names, i.name, i.location)
        if i.opcode is Op.RNG:
            value, state = draw(i, made, state, device_key(made, self.devices))
        else:
            value = made.fit(made.concatenate([made.reshape(s, (1,)) for s in state], 0), i.shape)
            state = _advanced(made, state, i.attributes["delta"])
        value = made.finish(value, i)
        before = i.attributes.get(CONTROL_PREDECESSORS)
        if before:
            waiting = after(made, tuple(before))
            value, state = waiting[value], [waiting.get(s, s) for s in state]
        b.instructions += made.instructions
        b.computations += made.computations
        return value, state

    def control(self, i: Instruction, b: Builder, state: State) -> tuple[Instruction, State]:
        carried = tuple_shape(i.shape, WORD, WORD)
        if i.opcode is Op.WHILE:
            if self.draws(i.attributes["condition"]):
                raise UnsupportedError(
                    "plan", "rng in the condition of a loop", location=i.location, remedy="draw in the body"
                )
            start = b.op(Op.TUPLE, carried, i.operands[0], *state)
            changed = {k: self.callee(i.attributes[k], keep=k == "body") for k in ("condition", "body")}
            made = with_attributes(i, **changed).replace(operands=(start,), shape=carried)
        else:
            starts = [b.op(Op.TUPLE, tuple_shape(x.shape, WORD, WORD), x, *state) for x in i.operands[1:]]
            new = tuple(self.callee(c, keep=True) for c in branches(i))
            pair = {"true_computation": new[0], "false_computation": new[-1]}
            listed = {"branch_computations": new} if "branch_computations" in i.attributes else pair
            made = with_attributes(i, **listed).replace(operands=(i.operands[0], *starts), shape=carried)
        value, *state = b.elements(b.add(made))
        return value, state

    def callee(self, old: Computation, keep: bool) -> Computation:
        """A body, condition or branch with the state added to its parameter, and to its result if `keep`."""
        b = Builder(self.names, "rng")
        (p,) = old.parameters
        whole = b.add(p.replace(shape=tuple_shape(p.shape, WORD, WORD)))
        value, *state = b.elements(whole)
        root, state = self.body(b, old, {p: value}, state)
        if keep:
            root = b.op(Op.TUPLE, tuple_shape(root.shape, WORD, WORD), root, *state)
        return Computation(old.name, tuple(b.instructions), root, old.attributes)


def _advanced(b: Builder, state: State, delta: int) -> State:
    low = b.binary(Op.ADD, state[0], delta % 2**64)
    carry = b.convert(b.compare(low, "LT", state[0]), DType.U64)
    return [low, b.binary(Op.ADD, b.binary(Op.ADD, state[1], (delta >> 64) % 2**64), carry)]


# --- distributions ---------------------------------------------------------------------------------------------------


def device_key(b: Builder, devices: Devices) -> Instruction:
    """The key of this device: the number of the device in the upper half of a u64."""
    key = b.constant(0, DType.U64)
    ids = (Op.REPLICA_ID, devices.replicas, devices.partitions), (Op.PARTITION_ID, devices.partitions, 1)
    for op, count, stride in ids:
        if count > 1:
            number = b.convert(b.op(op, array(DType.U32)), DType.U64)
            key = b.binary(Op.ADD, key, b.binary(Op.MULTIPLY, number, stride << 32))
    return key


def draw(i: Instruction, b: Builder, state: State, key: Instruction) -> tuple[Instruction, State]:
    """The numbers of an rng, and the state after it. key: of the device."""
    first, second = map(b.plain, i.operands[:2])
    dims, dtype = i.shape.dims, i.shape.dtype
    normal = i.attributes["distribution"] == "rng_normal"
    bits = DType.U64 if dtype.bits == 64 else DType.U32
    count = math.prod(dims) * (2 if normal else 1)
    if not count:
        return b.constant(0, dtype, dims), state
    (_, *moved), words = philox(b, [key, *state], (count,), bits)
    if normal:
        made = _normal(b, words, first, second, dims)
    elif dtype.is_float:
        made = _uniform(b, words, first, second, dims)
    else:
        made = _integers(b, b.reshape(words, dims), first, second)
    return b.fit(b.convert(made, dtype), i.shape), moved


def fractions(b: Builder, words: Instruction) -> Instruction:
    """Numbers in [0, 1) from the upper 23 bits as f32, or the upper 52 bits as f64."""
    wide, kept = (DType.F64, 52) if words.shape.dtype is DType.U64 else (DType.F32, 23)
    upper = b.binary(Op.SHIFT_RIGHT_LOGICAL, words, words.shape.dtype.bits - kept)
    return b.binary(Op.MULTIPLY, b.convert(upper, wide), 2.0**-kept)


def _uniform(b: Builder, words: Instruction, low: Instruction, high: Instruction, dims: Sequence[int]) -> Instruction:
    x = b.reshape(fractions(b, words), dims)
    low, high = (b.convert(v, x.shape.dtype) for v in (low, high))
    return b.binary(Op.ADD, b.binary(Op.MULTIPLY, x, b.binary(Op.SUBTRACT, high, low)), low)


def _normal(
    b: Builder, words: Instruction, mean: Instruction, deviation: Instruction, dims: Sequence[int]
) -> Instruction:
    size = math.prod(dims)
    x = fractions(b, words)
    radius = b.unary(Op.LOG, b.binary(Op.SUBTRACT, b.constant(1, x.shape.dtype), b.slice_in(x, 0, 0, size)))
    radius = b.unary(Op.SQRT, b.binary(Op.MULTIPLY, radius, -2.0))
    turn = b.binary(Op.MULTIPLY, b.slice_in(x, 0, size, 2 * size), 2 * math.pi)
    z = b.reshape(b.binary(Op.MULTIPLY, radius, b.unary(Op.COSINE, turn)), dims)
    mean, deviation = (b.convert(v, x.shape.dtype) for v in (mean, deviation))
    return b.binary(Op.ADD, b.binary(Op.MULTIPLY, z, deviation), mean)


def _integers(b: Builder, words: Instruction, low: Instruction, high: Instruction) -> Instruction:
    """Integers in [low, high), or low if that is empty; for pred, either value."""
    if low.shape.dtype is DType.PRED:
        return b.compare(b.binary(Op.AND, words, 1), "NE", 0)
    start, end = (b.convert(v, words.shape.dtype) for v in (low, high))
    room = b.select(b.compare(low, "LT", high), b.binary(Op.SUBTRACT, end, start), b.constant(1, words.shape.dtype))
    return b.binary(Op.ADD, b.binary(Op.REMAINDER, words, room), start)
