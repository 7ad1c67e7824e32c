"""CUDA as a backend. Not written yet."""
