"""The verifier: shape inference for each family of opcodes, and checks of a module's structure."""
