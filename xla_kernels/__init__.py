"""Kernels that XLA:CPU's own emitters made, read from a folder of `--xla_dump_to`: matched with the instructions of the
scheduled module beside them, and called through adaptors with this package's kernel ABI.
"""
