"""Tests of migration/."""
