"""Planning turns a module into a Plan: schedule, liveness, buffers, in-place reuse, partition, kernel requests."""
