"""Softmax, log-softmax, layer norm and rms norm over rows, one core: legacy, MLIR and XLA:CPU, interleaved.

Run: .venv/bin/python -m testbed.benchmarks.row_fusion   (needs jaxlib: ./testbed setup --xla)
All run the HLO of the same JAX function. Result memory is reused on all sides (XLA: by donation).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import numpy as np


def functions() -> dict[str, tuple[Callable, int]]:
    """Name → (a function of JAX arrays, its number of arguments besides x, each a vector of a row's length)."""
    import jax
    import jax.numpy as jnp

    def layer_norm(x, gamma, beta):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gamma + beta

    def rms_norm(x, gamma):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma

    def softmax(x):
        e = jnp.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def log_softmax(x):
        d = x - x.max(-1, keepdims=True)
        return d - jnp.log(jnp.exp(d).sum(-1, keepdims=True))

    return {
        "softmax": (softmax, 0),
        "log_softmax": (log_softmax, 0),
        "layer_norm": (layer_norm, 2),
        "rms_norm": (rms_norm, 1),
    }


def hlo_text(function: Callable, inputs: list[np.ndarray]) -> str:
    """The function as unoptimised HLO text."""
    import jax

    return jax.jit(function).lower(*inputs).compiler_ir("hlo").as_hlo_text()


def xla_runner(function: Callable, inputs: list[np.ndarray]) -> Callable:
    """A function that runs `function` once through jax.jit and writes its result over the previous result."""
    import jax

    call = jax.jit(lambda dead, *given: function(*given), donate_argnums=0, keep_unused=True)
    given = [jax.device_put(x) for x in inputs]
    state = [jax.device_put(np.zeros_like(inputs[0]))]

    def run():
        state[0] = call(state[0], *given).block_until_ready()
        return state[0]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--cpu", type=int, default=0)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})  # before XLA starts its threads, so that they share the core

    from testbed.benchmarks.contestants import contestant
    from testbed.benchmarks.paired import race, table
    from testbed.formats.program import Program
    from testbed.formats.text.parser import parse_module

    generator = np.random.default_rng(0)
    for name, (function, vectors) in functions().items():
        inputs = [generator.uniform(-2, 2, (options.rows, options.length)).astype(np.float32)]
        inputs += [generator.uniform(0.5, 1.5, options.length).astype(np.float32) for _ in range(vectors)]
        text = hlo_text(function, inputs)
        program = Program(name, text, parse_module(text, f"{name}.hlo"))
        legacy, mlir = contestant("legacy", program, inputs), contestant("mlir", program, inputs)
        xla = xla_runner(function, inputs)
        for ours in (legacy, mlir):
            np.testing.assert_allclose(np.asarray(ours.run()[0]), np.asarray(xla()), rtol=1e-4, atol=1e-5)
        result = race({"xla": xla, "legacy": legacy.run, "mlir": mlir.run}, rounds=options.rounds)
        print(f"{name} {options.rows}×{options.length}")
        print(table(result, {"legacy": legacy.compile_seconds, "mlir": mlir.compile_seconds}))


if __name__ == "__main__":
    main()
