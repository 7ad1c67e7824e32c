"""Errors of long sums and products, against exact results: `python -m testbed.benchmarks.long.numerics`."""
