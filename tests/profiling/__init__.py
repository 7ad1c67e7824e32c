"""Tests of profiling/."""
