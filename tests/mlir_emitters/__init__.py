"""Tests of mlir_emitters/."""
