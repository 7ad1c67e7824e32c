"""Analyses of a module: costs, trip counts, windows, row kernels, side effects."""
