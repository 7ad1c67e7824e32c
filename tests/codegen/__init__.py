"""Tests of codegen/."""
