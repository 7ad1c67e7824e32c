"""The testbed command."""
