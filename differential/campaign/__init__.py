"""Fuzzing: processes that draw cases, judge them, shrink what goes wrong and keep one finding for each cause."""
