"""Canonical forms of dots, convolutions and layouts."""
