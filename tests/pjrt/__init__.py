"""Tests of pjrt/."""
