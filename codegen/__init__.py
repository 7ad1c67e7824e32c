"""LLVM for both stacks, with the same settings: optimise IR, emit object code, load it."""
