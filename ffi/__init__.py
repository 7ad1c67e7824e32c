"""XLA FFI call frames and the custom-call handler registry. Not written yet."""
