"""Loops and conditionals."""
