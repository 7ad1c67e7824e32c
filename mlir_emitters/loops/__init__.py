"""Elements of a kernel in memory, and loop nests over them."""
