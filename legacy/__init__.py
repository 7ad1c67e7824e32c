"""The old stack: one kernel request -> LLVM IR text, written with llvmlite."""
