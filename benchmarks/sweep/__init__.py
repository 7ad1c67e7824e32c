"""Sweeps over many small programs against XLA:CPU: `python -m testbed.benchmarks.sweep SUITE`."""
