"""The oracle: the meaning of every opcode in plain NumPy. It shares no code with passes, planner and stacks."""
