"""Stacks compared: judge the results of a program, and run whole corpora in worker processes."""
