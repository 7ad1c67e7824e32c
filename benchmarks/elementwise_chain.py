"""exp(tanh(a*b + a)) on 4M f32, one core: legacy, MLIR and XLA:CPU in one process. All reuse the result's memory.

Run: .venv/bin/python -m testbed.benchmarks.elementwise_chain   (needs jaxlib: ./testbed setup --xla)
XLA reuses memory by donation: an unused argument with the shape of the result is donated, and the result takes it.
"""

from __future__ import annotations

import argparse
import os

import numpy as np


def module_text(size: int) -> str:
    """HLO text of the chain on f32[size]."""
    return f"""HloModule chain

ENTRY e {{
  a = f32[{size}]{{0}} parameter(0)
  b = f32[{size}]{{0}} parameter(1)
  ab = f32[{size}]{{0}} multiply(a, b)
  sum = f32[{size}]{{0}} add(ab, a)
  t = f32[{size}]{{0}} tanh(sum)
  ROOT r = f32[{size}]{{0}} exponential(t)
}}
"""


def xla_chain(a: np.ndarray, b: np.ndarray):
    """A function that runs the chain once through jax.jit with a donated result buffer."""
    import jax
    import jax.numpy as jnp

    chain = jax.jit(lambda a, b, dead: jnp.exp(jnp.tanh(a * b + a)), donate_argnums=2, keep_unused=True)
    device_a, device_b = jax.device_put(a), jax.device_put(b)
    state = [jax.device_put(np.zeros_like(a))]

    def run():
        state[0] = chain(device_a, device_b, state[0]).block_until_ready()
        return state[0]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4 * 1024 * 1024)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--cpu", type=int, default=0)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})  # before XLA starts its threads, so that they share the core

    from testbed.benchmarks.contestants import contestant
    from testbed.benchmarks.paired import race, table
    from testbed.formats.program import Program
    from testbed.formats.text.parser import parse_module

    text = module_text(options.size)
    program = Program("chain", text, parse_module(text, "chain.hlo"))
    generator = np.random.default_rng(0)
    a, b = (generator.uniform(-1, 1, options.size).astype(np.float32) for _ in range(2))
    legacy, mlir = contestant("legacy", program, [a, b]), contestant("mlir", program, [a, b])
    xla = xla_chain(a, b)
    for ours in (legacy, mlir):
        np.testing.assert_allclose(np.asarray(ours.run()[0]), np.asarray(xla()), rtol=2e-6)
    result = race({"xla": xla, "legacy": legacy.run, "mlir": mlir.run}, rounds=options.rounds)
    print(table(result, {"legacy": legacy.compile_seconds, "mlir": mlir.compile_seconds}))


if __name__ == "__main__":
    main()
