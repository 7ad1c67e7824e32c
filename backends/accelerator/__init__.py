"""What back ends for devices have in common: kernels in LLVM IR → device code, and thunks on streams (ADR 65)."""
