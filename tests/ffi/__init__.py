"""Tests of ffi/."""
