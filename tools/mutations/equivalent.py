"""Mutants that no test can notice, each with the reason why what they change is the same."""

EQUIVALENT: dict[str, str] = {}
