"""Random numbers: bits of both generators, and distributions made of them."""

from __future__ import annotations

import numpy as np

from ..workload import Case, Register, jax, jnp, module_text

RANDOM = Register("random")

KEY = np.array([1, 2], np.uint32)


def _philox() -> Case:
    body = "ROOT r = (u64[2]{0}, u32[1048576]{0}) rng-bit-generator(state), algorithm=rng_philox"
    return Case((np.array([1, 2], np.uint64),), module_text([("state", "u64[2]{0}")], body))


RANDOM.hlo("philox_bits_2^20", _philox)


@RANDOM.jax("threefry_bits_2^20")
def _bits() -> Case:
    return Case((KEY,), function=lambda key: jax.random.bits(key, (1 << 20,), np.uint32))


@RANDOM.jax("threefry_uniform_2^20")
def _uniform() -> Case:
    return Case((KEY,), function=lambda key: jax.random.uniform(key, (1 << 20,)))


@RANDOM.jax("threefry_normal_2^20")
def _normal() -> Case:
    return Case((KEY,), function=lambda key: jax.random.normal(key, (1 << 20,)))


@RANDOM.jax("dropout_2^20")
def _dropout() -> Case:
    def run(key, x):
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)

    return Case((KEY, np.linspace(-1, 1, 1 << 20, dtype=np.float32)), function=run)
