"""Tests of legacy/."""
