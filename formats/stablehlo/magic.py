"""How MLIR's bytecode is told from text."""

BYTECODE = b"ML\xefR"
"""The magic number at the start of MLIR bytecode."""


def is_bytecode(code: bytes) -> bool:
    return code.startswith(BYTECODE)
