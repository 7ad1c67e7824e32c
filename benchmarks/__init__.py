"""Benchmarks: paired, interleaved comparisons in one process, and the scripts behind the project's figures."""
