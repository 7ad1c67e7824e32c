"""Paired A/B measurements of the stacks."""
