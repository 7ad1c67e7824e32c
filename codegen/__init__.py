"""LLVM below the join of the two stacks: optimise, emit object code, load it; the same settings for both."""
