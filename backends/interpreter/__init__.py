"""The evaluator as a backend."""
