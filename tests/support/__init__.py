"""Helpers of the tests: check, corpora, simulated devices."""
