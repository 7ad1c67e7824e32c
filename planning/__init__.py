"""Module to Plan: schedule, liveness, buffers, in-place reuse, partition, kernel requests."""
