"""Benchmarks: paired, interleaved comparisons in one process, and the scripts that produce the project's figures."""
