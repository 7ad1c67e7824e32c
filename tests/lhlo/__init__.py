"""Tests of lhlo/."""
