"""Builds causal attention with XlaBuilder, compiles it on both stacks and compares them with numpy.

Run: python examples/build_attention.py
"""

import numpy as np

import testbed
from testbed import XlaBuilder, XlaOp, ops


def softmax(x: XlaOp) -> XlaOp:
    """Softmax over the last dimension."""
    last, rest = x.rank - 1, range(x.rank - 1)
    largest = ops.reduce(x, -np.inf, ops.max, [last])
    e = ops.exp(x - ops.broadcast_in_dim(largest, x.dims, rest))
    return e / ops.broadcast_in_dim(ops.reduce(e, 0.0, ops.add, [last]), x.dims, rest)


def attention(b: XlaBuilder, heads: int, length: int, size: int) -> testbed.Module:
    shape = ("f32", (heads, length, size))
    q, k, v = (ops.parameter(b, n, shape, name) for n, name in enumerate("qkv"))
    with b.scope("attention"):
        scores = ops.dot_general(q, k, (((2,), (2,)), ((0,), (0,)))) / np.sqrt(size)
        rows, columns = (ops.iota(b, ("s32", scores.dims), d) for d in (1, 2))
        weights = softmax(ops.select(columns <= rows, scores, -np.inf))
        return b.build(ops.dot_general(weights, v, (((2,), (1,)), ((0,), (0,)))))


def main() -> None:
    module = attention(XlaBuilder("attention"), heads=4, length=64, size=16)
    q, k, v = np.random.default_rng(0).standard_normal((3, 4, 64, 16), dtype=np.float32)
    scores = np.where(np.tri(64, dtype=bool), q @ k.transpose(0, 2, 1) / 4, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    for emitters in ("legacy", "mlir"):
        executable = testbed.compile(module, emitters)
        error = np.abs(executable(q, k, v) - want).max()
        print(f"{emitters}: {executable}, largest error {error:.1e}")
        assert error < 1e-5


if __name__ == "__main__":
    main()
