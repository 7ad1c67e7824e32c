"""Generates modules and inputs from a sequence of choices, as a Hypothesis strategy or again from a printed blob."""
