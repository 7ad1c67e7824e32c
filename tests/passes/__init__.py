"""Tests of passes/."""
