"""The meaning of each opcode in plain NumPy, one file per family. The table in evaluator/rules.py names them."""
