"""Tests of passes/control/."""
