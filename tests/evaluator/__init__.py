"""Tests of evaluator/."""
