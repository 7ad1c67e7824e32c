"""Where MLIR's Python bindings look for the op classes of the dialect (see ../dialect.py)."""
