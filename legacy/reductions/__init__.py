"""Sums, extrema and windows."""
