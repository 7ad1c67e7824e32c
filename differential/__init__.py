"""Generate, compare, reduce and bisect differences between stacks."""
