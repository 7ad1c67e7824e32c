"""Tests of passes/cleanup/."""
