"""Tests of display/."""
