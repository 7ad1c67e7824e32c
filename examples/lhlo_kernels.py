"""A kernel generator: writes LHLO kernels, runs them on both stacks and compares them with the same programs in HLO.

Run: python examples/lhlo_kernels.py [--time]
"""

import sys
import time
from collections.abc import Callable

import numpy as np

import testbed
from testbed import LhloBuilder, XlaBuilder, XlaOp, ops

Function = Callable[..., XlaOp]


def softmax(x: XlaOp) -> XlaOp:
    """Softmax of each row. One kernel: both reductions and the work between them share a row's walk."""
    largest = ops.reduce(x, -np.inf, ops.max, [1])
    e = ops.exp(x - ops.broadcast_in_dim(largest, x.dims, [0]))
    return e / ops.broadcast_in_dim(ops.reduce(e, 0.0, ops.add, [1]), x.dims, [0])


def scores(q: XlaOp, k: XlaOp) -> XlaOp:
    return ops.dot_general(q, k, (((1,), (1,)), ((), ())))


def weights(s: XlaOp) -> XlaOp:
    return softmax(s * 0.125)


def attention_hlo(q: XlaOp, k: XlaOp, v: XlaOp) -> XlaOp:
    return ops.dot(weights(scores(q, k)), v)


def attention_lhlo(length: int, size: int) -> LhloBuilder:
    """Products into one matrix of scores, on which the row kernel works in place."""
    b = LhloBuilder("attention")
    q, k, v = (b.parameter(("f32", (length, size))) for _ in range(3))
    out, s = b.result(("f32", (length, size))), b.temporary(("f32", (length, length)))
    b.kernel(scores, [q, k], [s])
    b.kernel(weights, [s], [s])
    b.kernel(ops.dot, [s, v], [out])
    return b


def gelu(x: XlaOp, y: XlaOp) -> XlaOp:
    return x * 0.5 * (1.0 + ops.tanh(0.7978845608 * (x + 0.044715 * x * x * x))) + y


def norm(x: XlaOp) -> XlaOp:
    return ops.sqrt(ops.reduce(x * x, 0.0, ops.add, [1]))


def one_kernel(name: str, function: Function, shapes: list[str], result: str) -> LhloBuilder:
    b = LhloBuilder(name)
    b.kernel(function, [b.parameter(s) for s in shapes], [b.result(result)])
    return b


def newton(x: XlaOp, a: XlaOp) -> XlaOp:
    """A step of Newton's method towards sqrt(a)."""
    return 0.5 * (x + a / x)


def newton_hlo(a: XlaOp) -> XlaOp:
    def body(state: XlaOp) -> list[XlaOp]:
        i, x, a = state[0], state[1], state[2]
        return [i + 1, newton(x, a), a]

    return ops.while_(lambda state: state[0] < 8, body, [np.int32(0), a, a])[1]


def newton_lhlo(count: int) -> LhloBuilder:
    """Eight steps as a loop on one buffer, in place."""
    b = LhloBuilder("newton")
    a, x = b.parameter(("f32", (count,))), b.result(("f32", (count,)))
    i, more, zero = b.temporary("s32[]"), b.temporary("pred[]"), b.constant(np.int32(0))
    b.copy(a, x)
    b.copy(zero, i)

    def condition() -> None:
        b.kernel(lambda i: i < 8, [i], [more])

    def body() -> None:
        b.kernel(lambda x, a, i: (newton(x, a), i + 1), [x, a, i], [x, i])

    b.while_(more, condition, body, trip_count=8)
    return b


def programs() -> dict[str, tuple[LhloBuilder, Function, list[str]]]:
    """name → (LHLO, the same in HLO, the parameters' shapes)."""
    return {
        "attention": (attention_lhlo(128, 64), attention_hlo, ["f32[128,64]"] * 3),
        "elementwise": (one_kernel("gelu", gelu, ["f32[65536]"] * 2, "f32[65536]"), gelu, ["f32[65536]"] * 2),
        "reduction": (one_kernel("norm", norm, ["f32[256,1024]"], "f32[256]"), norm, ["f32[256,1024]"]),
        "control flow": (newton_lhlo(4096), newton_hlo, ["f32[4096]"]),
    }


def hlo_of(name: str, function: Function, shapes: list[str]) -> testbed.Module:
    b = XlaBuilder(name.replace(" ", "_"))
    return b.build(function(*[ops.parameter(b, n, shape) for n, shape in enumerate(shapes)]))


def seconds(executables: list[Callable[[], object]], rounds: int = 41) -> list[float]:
    """The fastest of interleaved runs of each."""
    best = [float("inf")] * len(executables)
    for _ in range(rounds):
        for n, run in enumerate(executables):
            start = time.perf_counter()
            for _ in range(20):
                run()
            best[n] = min(best[n], (time.perf_counter() - start) / 20)
    return best


def main(timed: bool) -> None:
    for name, (builder, function, shapes) in programs().items():
        lhlo, module = builder.build(), hlo_of(name, function, shapes)
        draw = np.random.default_rng(0)
        inputs = [draw.uniform(0.5, 2, leaf.dims).astype(np.float32) for leaf in module.parameter_shapes]
        (want,) = testbed.evaluate(module, inputs)
        for emitters in ("legacy", "mlir"):
            own, other = testbed.compile(lhlo, emitters), testbed.compile(module, emitters)
            error = float(np.abs(own(*inputs) - want).max() / np.abs(want).max())
            line = f"{name:<12} {emitters:<6} largest error {error:.1e}"
            if timed:
                a, b = seconds([lambda: own.execute(inputs), lambda: other.execute(inputs)])  # noqa: B023
                line += f", {a * 1e6:.1f} µs, from HLO {b * 1e6:.1f} µs: {a / b:.2f}"
            print(line)
            assert error < 1e-5, name


if __name__ == "__main__":
    main("--time" in sys.argv[1:])
