"""Profiling: profile steps around the steps of a plan, the sink of their events, and the profile that it gives."""
