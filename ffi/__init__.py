"""XLA FFI: the C ABI, the registry of custom-call handlers, and the host side that calls them."""
