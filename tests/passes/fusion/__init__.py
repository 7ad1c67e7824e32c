"""Tests of passes/fusion/."""
