"""What back ends for devices have in common: host-ABI LLVM IR → device code, and runs of thunks on a stream (ADR 65)."""
