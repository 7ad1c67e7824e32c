"""XLA FFI handlers written in Python: the vocabulary of XLA's C++ header, called through the real C ABI."""
