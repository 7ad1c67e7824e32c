"""Ops held to the evaluator on both stacks."""
