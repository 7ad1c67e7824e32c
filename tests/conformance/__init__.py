"""Tests that compare ops on both stacks with the evaluator."""
