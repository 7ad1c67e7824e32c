"""Algebraic rules, one row each."""
