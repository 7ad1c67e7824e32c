"""Platform, StreamExecutor, Compiler, Executable, TransferManager: the base interfaces and their registry."""
