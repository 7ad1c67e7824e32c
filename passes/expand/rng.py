"""Expand rng-bit-generator into integer arithmetic: ThreeFry-2x32 (20 rounds), Philox-4x32 (10 rounds), bit for bit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ..building import Builder
from ..expansion import expand_ops

U32, U64 = DType.U32, DType.U64
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)


def expand_rng(module: Module) -> Module:
    """Replace rng-bit-generators of integers outside kernels by the arithmetic of their algorithm."""
    return expand_ops(module, {Op.RNG_BIT_GENERATOR: bits_by_arithmetic})


def bits_by_arithmetic(i: Instruction, b: Builder) -> Instruction | None:
    shape = i.shape.elements[1] if i.shape.is_tuple else i.shape
    generate = ALGORITHMS.get(i.attributes["algorithm"])
    if generate is None or not shape.dtype.is_integer or shape.dtype.bits < 8:
        return None
    if not shape.size:
        none = b.constant(0, shape.dtype, shape.dims)
        return b.tuple([b.plain(i.operands[0]), none]) if i.shape.is_tuple else none
    words = _words(b, b.plain(i.operands[0]))
    new, bits = generate(b, words, shape.dims, shape.dtype)
    return b.tuple([_state(b, new, i.operands[0]), bits]) if i.shape.is_tuple else bits


def _words(b: Builder, state: Instruction) -> list[Instruction]:
    """The state as u64 scalars."""
    state = b.reshape(state, (state.shape.size,))
    scalars = [b.reshape(b.slice_in(state, 0, n, n + 1), ()) for n in range(state.shape.size)]
    if state.shape.dtype.bits == 64:
        return [b.bits(s, U64) for s in scalars]
    halves = [b.convert(b.bits(s, U32), U64) for s in scalars]
    return [_join(b, low, high) for low, high in zip(halves[::2], halves[1::2], strict=True)]


def _state(b: Builder, words: Sequence[Instruction], old: Instruction) -> Instruction:
    """u64 scalars in the type and shape of the old state."""
    if old.shape.dtype.bits == 64:
        parts = list(words)
    else:
        parts = [half for w in words for half in _halves(b, w)]
    whole = b.concatenate([b.reshape(p, (1,)) for p in parts], 0)
    return b.reshape(b.bits(whole, old.shape.dtype), old.shape.dims)


def _halves(b: Builder, x: Instruction) -> tuple[Instruction, Instruction]:
    """The (low, high) u32 halves of a u64."""
    return b.convert(x, U32), b.convert(b.binary(Op.SHIFT_RIGHT_LOGICAL, x, 32), U32)


def _join(b: Builder, low: Instruction, high: Instruction) -> Instruction:
    """A u64 from its low and high half, both given as u64."""
    return b.binary(Op.OR, low, b.binary(Op.SHIFT_LEFT, high, 32))


Generated = tuple[list[Instruction], Instruction]


def three_fry(b: Builder, words: Sequence[Instruction], dims: Sequence[int], dtype: DType) -> Generated:
    """One 64-bit number per block, or two 32-bit ones that are adjacent along the halved dimension."""
    key, counter = words
    halves, split = (tuple(dims), -1) if dtype.bits == 64 else half_of(dims)
    blocks = math.prod(halves)
    counters = b.binary(Op.ADD, b.iota(U64, (blocks,), 0), counter)
    low, high = _three_fry_rounds(b, _halves(b, key), *_halves(b, counters))
    new = [key, b.binary(Op.ADD, counter, blocks)]
    if split < 0:
        whole = _join(b, b.convert(low, U64), b.convert(high, U64))
        return new, b.bits(b.reshape(whole, dims), dtype)
    pieces = [b.reshape(b.reshape(x, halves), (*halves[: split + 1], 1, *halves[split + 1 :])) for x in (low, high)]
    both = b.concatenate(pieces, split + 1)
    doubled = b.reshape(both, [2 * n if d == split else n for d, n in enumerate(halves)])
    return new, b.convert(b.reshape(b.slice_in(doubled, split, 0, (dims or (1,))[split]), dims), dtype)


def half_of(dims: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """(The shape with its first even dimension halved, or its largest if all are odd, rounded up; that dimension)."""
    dims = tuple(dims) or (1,)
    even = [d for d, n in enumerate(dims) if n % 2 == 0]
    split = even[0] if even else dims.index(max(dims))
    return tuple((n + 1) // 2 if d == split else n for d, n in enumerate(dims)), split


def _three_fry_rounds(
    b: Builder, key: tuple[Instruction, Instruction], x0: Instruction, x1: Instruction
) -> tuple[Instruction, Instruction]:
    keys = [*key, b.binary(Op.XOR, b.binary(Op.XOR, key[0], key[1]), PARITY)]
    x0, x1 = b.binary(Op.ADD, x0, keys[0]), b.binary(Op.ADD, x1, keys[1])
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = b.binary(Op.ADD, x0, x1)
            left = b.binary(Op.SHIFT_LEFT, x1, rotation)
            right = b.binary(Op.SHIFT_RIGHT_LOGICAL, x1, 32 - rotation)
            x1 = b.binary(Op.XOR, b.binary(Op.OR, left, right), x0)
        x0 = b.binary(Op.ADD, x0, keys[(group + 1) % 3])
        x1 = b.binary(Op.ADD, x1, b.binary(Op.ADD, keys[(group + 2) % 3], group + 1))
    return x0, x1


def philox(b: Builder, words: Sequence[Instruction], dims: Sequence[int], dtype: DType) -> Generated:
    """Four 32-bit numbers per block.

    words: the key and a 128-bit counter (low, high); in a state of two words the key is also the upper half.
    """
    key, low, high = words[0], words[1], words[2] if len(words) > 2 else words[0]
    size = math.prod(dims)
    blocks = -(-size // (2 if dtype.bits == 64 else 4))
    lows = b.binary(Op.ADD, b.iota(U64, (blocks,), 0), low)
    carry = b.convert(b.compare(lows, "LT", b.broadcast(low, (blocks,))), U64)
    highs = b.binary(Op.ADD, carry, high)
    out = _philox_rounds(b, _halves(b, key), [*_halves(b, lows), *_halves(b, highs)])
    if dtype.bits == 64:
        wide = [b.convert(w, U64) for w in out]
        out = [_join(b, wide[0], wide[1]), _join(b, wide[2], wide[3])]
    flat = b.reshape(b.concatenate([b.reshape(w, (blocks, 1)) for w in out], 1), (blocks * len(out),))
    bits = b.reshape(b.slice_in(flat, 0, 0, size), dims)
    after = b.binary(Op.ADD, low, blocks)
    above = b.binary(Op.ADD, high, b.convert(b.compare(after, "LT", low), U64))
    new = [key, after, above][: len(words)]
    return new, b.bits(bits, dtype) if dtype.bits == 64 else b.convert(bits, dtype)


def _philox_rounds(b: Builder, key: tuple[Instruction, Instruction], x: Sequence[Instruction]) -> list[Instruction]:
    factors = [b.constant(m, U32, x[0].shape.dims) for m in MULTIPLIERS]
    for turn in range(10):
        keys = [b.binary(Op.ADD, k, turn * w % 2**32) if turn else k for k, w in zip(key, WEYL, strict=True)]
        high = [b.binary(Op.MULHI, v, m) for v, m in zip((x[2], x[0]), reversed(factors), strict=True)]
        low = [b.binary(Op.MULTIPLY, v, m) for v, m in zip((x[2], x[0]), reversed(factors), strict=True)]
        first, second = (
            b.binary(Op.XOR, b.binary(Op.XOR, h, v), k) for h, v, k in zip(high, (x[1], x[3]), keys, strict=True)
        )
        x = [first, low[0], second, low[1]]
    return list(x)


ALGORITHMS = {"rng_three_fry": three_fry, "rng_philox": philox, "rng_default": philox}
