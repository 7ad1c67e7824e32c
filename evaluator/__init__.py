"""The oracle inside: what every opcode means, in plain NumPy. It shares no code with passes, planner and stacks."""
