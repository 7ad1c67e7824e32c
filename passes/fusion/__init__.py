"""Which instructions share a kernel."""
