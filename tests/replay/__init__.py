"""XLA:CPU's faults of a year as programs, on our stacks; what a gate says of a version that has one."""
