"""Tests of xla_kernels/."""
