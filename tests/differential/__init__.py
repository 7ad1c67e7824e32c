"""Tests of differential/."""
