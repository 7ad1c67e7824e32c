"""StableHLO text and bytecode, converted by jaxlib in a child process."""
