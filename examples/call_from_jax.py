"""Compiles a jitted function of JAX with the MLIR stack and calls it with JAX's own trees of arguments.

Run: python examples/call_from_jax.py (needs JAX)
"""

import jax
import jax.numpy as jnp
import numpy as np

import testbed


@jax.jit
def step(params, batch, rate=0.1):
    """One step of gradient descent on a linear model."""

    def loss(params):
        return jnp.mean((batch["x"] @ params["w"] + params["b"] - batch["y"]) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradient), value


def main() -> None:
    rng = np.random.default_rng(0)
    params = {"w": rng.standard_normal(3, dtype=np.float32), "b": np.float32(0)}
    batch = {"x": rng.standard_normal((8, 3), dtype=np.float32), "y": rng.standard_normal(8, dtype=np.float32)}

    executable = testbed.compile(step.lower(params, batch), "mlir")
    print(executable)
    new, loss = executable(params, batch)
    want, want_loss = step(params, batch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), (new, loss), (want, want_loss))
    print(f"loss {loss:.6f}, as JAX's")


if __name__ == "__main__":
    main()
