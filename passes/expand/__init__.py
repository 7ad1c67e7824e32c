"""Expanders: rewrite opcodes that no stack emits into opcodes that both emit."""
