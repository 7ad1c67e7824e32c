"""Writes a jitted function of JAX as a folder that every command takes: the program with its source lines, and arrays.

Run: python examples/profile_from_jax.py FOLDER (needs JAX), then ./testbed profile FOLDER --by source
"""

import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import testbed


def step(params, batch, rate):
    """One step of gradient descent on a network of two layers; the scopes are for pictures and profiles."""

    def loss(params):
        with jax.named_scope("hidden"):
            hidden = jnp.tanh(batch["x"] @ params["w1"] + params["b1"])
        with jax.named_scope("output"):
            return jnp.mean((hidden @ params["w2"] - batch["y"]) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    with jax.named_scope("update"):
        return jax.tree.map(lambda p, g: p - rate * g, params, gradient), value


def write(folder: Path, function, *arguments) -> None:
    """The folder form: module.stablehlo.mlir and io.npz, with a leaf of the arguments and results for each entry."""
    folder.mkdir(parents=True, exist_ok=True)
    lowered = jax.jit(function).lower(*arguments)
    text = lowered.as_text(debug_info=True)  # without debug_info there are no source lines and no scopes
    (folder / "module.stablehlo.mlir").write_text(text)
    inputs = jax.tree.leaves(arguments)
    results = jax.tree.leaves(jax.jit(function)(*arguments))
    arrays = {f"in{n}": np.asarray(x) for n, x in enumerate(inputs)}
    arrays |= {f"out{n}": np.asarray(x) for n, x in enumerate(results)}
    np.savez(folder / "io.npz", **arrays)  # type: ignore[arg-type]


def main() -> None:
    rng = np.random.default_rng(0)

    def draw(*dims):
        return rng.standard_normal(dims, dtype=np.float32)

    params = {"w1": draw(32, 64), "b1": draw(64), "w2": draw(64, 1)}
    batch = {"x": draw(128, 32), "y": draw(128, 1)}
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    print(folder)
    write(folder, step, params, batch, np.float32(0.1))
    module = testbed.load(folder)
    assert [p.name for p in module.entry.parameters][-1] == "rate.1"  # named after the argument


if __name__ == "__main__":
    main()
