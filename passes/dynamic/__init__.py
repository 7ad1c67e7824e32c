"""Bounded dynamic dimensions become static ones."""
