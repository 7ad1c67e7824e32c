"""rng-bit-generator (the same bits as XLA), rng and rng-get-and-update-state."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from .context import Context, Value

Array = np.ndarray


def rng_bit_generator(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
    """(new state, bits), or only bits if the shape is not a tuple."""
    (state,) = operands
    shape = instruction.shape.elements[1] if instruction.shape.is_tuple else instruction.shape
    algorithm = {"rng_philox": philox, "rng_default": philox, "rng_three_fry": three_fry}.get(
        instruction.attributes["algorithm"]
    )
    if algorithm is None:
        raise UnsupportedError(
            "evaluator", f"rng-bit-generator({instruction.attributes['algorithm']})", location=instruction.location
        )
    new_words, bits = algorithm(np.ascontiguousarray(state).view(np.uint64), shape.dims, shape.dtype)
    new_state = new_words.view(state.dtype).reshape(state.shape)
    return (new_state, bits) if instruction.shape.is_tuple else bits


# --- ThreeFry-2x32, 20 rounds (Salmon et al. 2011) -------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def three_fry_2x32(key: tuple[int, int], x0: Array, x1: Array) -> tuple[Array, Array]:
    """The block cipher on pairs (x0, x1) of u32."""
    keys = [np.uint32(key[0]), np.uint32(key[1]), np.uint32(key[0] ^ key[1] ^ 0x1BD11BDA)]
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))
            x1 = x1 ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def three_fry(state: Array, dims: tuple[int, ...], dtype: DType) -> tuple[Array, Array]:
    """(new state, random elements). state: key and counter, each u64.

    A block gives one 64-bit number or two neighbouring 32-bit numbers; narrower types take the low bits of the latter.
    """
    key, counter = int(state[0]), int(state[1])
    halves, split = (dims, None) if dtype.bits == 64 else _half(dims)
    blocks = math.prod(halves)
    counters = (np.uint64(counter) + np.arange(blocks, dtype=np.uint64)).reshape(halves)
    low, high = three_fry_2x32(
        (key & 0xFFFFFFFF, key >> 32), counters.astype(np.uint32), (counters >> np.uint64(32)).astype(np.uint32)
    )
    new = np.array([key, (counter + blocks) % 2**64], np.uint64)
    if split is None:
        bits = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
        return new, bits.view(dtype.numpy)
    both = np.stack([low, high], axis=split + 1)
    both = both.reshape([2 * n if d == split else n for d, n in enumerate(halves)])
    return new, _narrow(both[tuple(slice(0, n) for n in (dims or (1,)))].reshape(dims), dtype)


def _half(dims: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """(dims halved along one dimension, that dimension): the first of even size, or the largest if all are odd."""
    dims = dims or (1,)
    even = [d for d, n in enumerate(dims) if n % 2 == 0]
    split = even[0] if even else dims.index(max(dims))
    return tuple((n + 1) // 2 if d == split else n for d, n in enumerate(dims)), split


def _narrow(bits: Array, dtype: DType) -> Array:
    return bits.astype(np.dtype(f"u{dtype.bytes}")).view(dtype.numpy)


# --- Philox-4x32, 10 rounds ------------------------------------------------------------------------------------------


def philox_4x32(key: tuple[int, int], counter: list[Array]) -> list[Array]:
    """The block cipher on a counter of four u32 words, low word first."""
    k0, k1 = key
    x = [c.astype(np.uint64) for c in counter]
    for _ in range(10):
        first, second = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        mask = np.uint64(0xFFFFFFFF)
        x = [
            (second >> np.uint64(32)) ^ x[1] ^ np.uint64(k0),
            second & mask,
            (first >> np.uint64(32)) ^ x[3] ^ np.uint64(k1),
            first & mask,
        ]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [v.astype(np.uint32) for v in x]


def philox(state: Array, dims: tuple[int, ...], dtype: DType) -> tuple[Array, Array]:
    """(new state, random elements). state: key and a 128-bit counter as u64 (key, low, high).

    In a state of two numbers the key is also the counter's upper half.
    """
    key = int(state[0])
    low, high = int(state[1]), int(state[2] if len(state) > 2 else state[0])
    size, per_block = math.prod(dims), 2 if dtype.bits == 64 else 4
    blocks = -(-size // per_block)
    base = low | high << 64
    lows = np.uint64(low) + np.arange(blocks, dtype=np.uint64)
    highs = np.uint64(high) + (lows < np.uint64(low)).astype(np.uint64)
    counter = [
        lows & np.uint64(0xFFFFFFFF),
        lows >> np.uint64(32),
        highs & np.uint64(0xFFFFFFFF),
        highs >> np.uint64(32),
    ]
    words = philox_4x32((key & 0xFFFFFFFF, key >> 32), counter)
    after = (base + blocks) % 2**128
    new = state.copy()
    new[1] = np.uint64(after & (2**64 - 1))
    if len(state) > 2:
        new[2] = np.uint64(after >> 64)
    flat = np.stack(words, axis=1).reshape(-1)
    if dtype.bits == 64:
        return new, np.ascontiguousarray(flat).view(np.uint64)[:size].view(dtype.numpy).reshape(dims)
    return new, _narrow(flat[:size].reshape(dims), dtype)


# --- rng -------------------------------------------------------------------------------------------------------------


def rng(instruction: Instruction, operands: Sequence[Array], context: Context) -> Array:
    """Uniform in [a, b), or normal with mean a and standard deviation b, from Philox words.

    XLA specifies the distribution only; passes/expand/rng_state.py says which words become which numbers. Rounding may
    produce b itself.
    """
    a, b = operands[:2]
    dims, dtype = instruction.shape.dims, instruction.shape.dtype
    normal = instruction.attributes["distribution"] == "rng_normal"
    wide = dtype.bits == 64
    words = _words(context, math.prod(dims) * (2 if normal else 1), DType.U64 if wide else DType.U32)
    if not (dtype.is_float or normal):
        return _integers(words.reshape(dims), a, b, dtype)
    real = np.float64 if wide else np.float32
    x = (words >> words.dtype.type(12 if wide else 9)).astype(real) * real(2.0 ** (-52 if wide else -23))
    low, high = a.astype(real), b.astype(real)
    if not normal:
        return (x.reshape(dims) * np.subtract(high, low) + low).astype(dtype.numpy)
    halves = x.astype(np.longdouble).reshape(2, -1)  # loops of long double are the same on every processor
    first, second = halves[0], halves[1]
    z = np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)
    return (z.astype(real).reshape(dims) * high + low).astype(dtype.numpy)


def _words(context: Context, count: int, dtype: DType) -> Array:
    """The next `count` words; the context's state advances by the blocks that they take."""
    if not count:
        return np.zeros(0, dtype.numpy)
    state = np.array([context.rng_key, context.rng_state & (2**64 - 1), context.rng_state >> 64], np.uint64)
    new, words = philox(state, (count,), dtype)
    context.rng_state = int(new[1]) | int(new[2]) << 64
    return words


def _integers(words: Array, low: Array, high: Array, dtype: DType) -> Array:
    if dtype is DType.PRED:
        return (words & words.dtype.type(1)) != 0
    word = words.dtype.type
    room, start = word(max(int(high) - int(low), 1)), word(int(low) % 2 ** (8 * words.itemsize))
    return np.asarray(words % room + start).astype(dtype.numpy)


def rng_get_and_update_state(instruction: Instruction, _operands: Sequence[Array], context: Context) -> Array:
    """The 128-bit counter as u64[2], low word first; then adds `delta` to the counter."""
    value = context.rng_state
    context.rng_state = (value + instruction.attributes["delta"]) % 2**128
    words = np.array([value & (2**64 - 1), value >> 64], np.uint64)
    return np.resize(words, math.prod(instruction.shape.dims)).reshape(instruction.shape.dims)
