"""What IR is built with: builders, types, functions that kernels share."""
