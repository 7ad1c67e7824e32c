"""Sorts."""
