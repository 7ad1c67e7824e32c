"""GPUs behind the C interface that CUDA and HIP have in common: functions, memory, streams, kernels (ADR 63)."""
