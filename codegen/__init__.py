"""LLVM below the join: optimise, emit objects, load them, describe targets."""
