"""Algebraic rewrite rules, one table row each."""
