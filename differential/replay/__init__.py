"""XLA:CPU's faults of a year as programs: the suite, what a run of it measures, and what a gate says of it."""
