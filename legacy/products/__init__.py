"""Dots and convolutions."""
