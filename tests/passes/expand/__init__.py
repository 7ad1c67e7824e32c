"""Tests of passes/expand/."""
