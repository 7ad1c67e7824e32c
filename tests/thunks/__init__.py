"""Tests of thunks/."""
