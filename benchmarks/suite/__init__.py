"""The benchmark suite: many small programs of every kind on XLA, on both stacks and on other compilers, side by side.

Run: .venv/bin/python -m testbed.benchmarks.suite --help. docs/benchmarks.md tells how to read what it prints.
"""
