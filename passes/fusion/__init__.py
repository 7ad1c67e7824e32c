"""Fusion: which instructions share a kernel."""
