"""What each opcode means, in plain NumPy: one file a family. The table hlo/rules.py names these functions."""
