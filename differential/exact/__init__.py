"""Kernels without tolerances: over a finite field both stacks and the HLO agree bit for bit, or one is wrong."""
