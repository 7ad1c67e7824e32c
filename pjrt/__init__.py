"""The JAX plugin. Not written yet."""
