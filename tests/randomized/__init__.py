"""Random programs through passes, planned memory and both stacks."""
