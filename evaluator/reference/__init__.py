"""What each opcode means, in plain NumPy: one file a family. The table evaluator/rules.py names these functions."""
