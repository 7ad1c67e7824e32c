"""What is computed from a module: costs, trip counts, windows, rows, effects."""
