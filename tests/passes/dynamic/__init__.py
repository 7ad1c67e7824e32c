"""Tests of passes/dynamic/."""
