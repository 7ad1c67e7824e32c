"""What each opcode means, in plain NumPy: one file a family. The table hlo/opset.py names these functions."""
