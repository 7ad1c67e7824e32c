"""Simplification of loops and conditionals."""
