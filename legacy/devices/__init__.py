"""Kernels that groups of a device's items compute."""
