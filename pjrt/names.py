"""The name that JAX knows the platform by: JAX_PLATFORMS=testbed."""

PLATFORM = "testbed"
