"""The evaluator as a back end."""
