"""Kernels over a finite field: floats stand for elements of Z_p, and their arithmetic is exact (docs/exact.md)."""
