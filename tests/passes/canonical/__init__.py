"""Tests of passes/canonical/."""
