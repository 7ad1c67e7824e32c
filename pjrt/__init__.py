"""The JAX plugin: a PJRT plugin in Python, whose hot functions are native (docs/jax.md)."""
