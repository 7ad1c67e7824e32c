"""Generators of random programs and of random edits."""
