"""The new stack: one kernel request -> LHLO -> MLIR -> LLVM IR text."""
