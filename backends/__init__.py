"""Interfaces of back ends (Platform, StreamExecutor, Compiler, Executable, TransferManager) and their registry."""
