"""LLVM below the join of the two stacks: optimise, emit object code, load it. Same settings for both, or an A/B means nothing."""
