"""Tests of hlo/."""
