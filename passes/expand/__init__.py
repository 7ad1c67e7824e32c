"""Opcodes that no stack emits, written as ones that both do."""
