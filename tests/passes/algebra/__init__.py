"""Tests of passes/algebra/."""
