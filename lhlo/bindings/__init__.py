"""The package where MLIR's Python bindings look up the dialect's op classes (see ../dialect.py)."""
