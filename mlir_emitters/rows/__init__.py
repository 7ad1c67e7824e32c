"""Kernels that work on one row after the other, or on many side by side."""
