"""Algebraic rules: one function and one Rule of a family's RULES each."""
