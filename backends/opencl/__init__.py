"""OpenCL devices with SPIR-V and unified shared memory, through ctypes (ADR 65)."""
