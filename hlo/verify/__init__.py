"""The verifier: shape inference by family, and the structure of a module."""
