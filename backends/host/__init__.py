"""The host CPU as a backend."""
