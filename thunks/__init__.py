"""Thunk kinds, their wire format, and the executors that run a ThunkSequence."""
