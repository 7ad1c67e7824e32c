"""Compares stacks: judges the results of a program, and runs corpora in worker processes."""
