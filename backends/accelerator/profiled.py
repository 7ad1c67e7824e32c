"""A program of a device → the same with marks, whose times are those of the queue's profiling events."""

from __future__ import annotations

from dataclasses import replace

from ...profiling.recorder import Recorder
from ...thunks.kinds import ProfileThunk, SequentialThunk
from ...thunks.marked import marked, without_marks
from ..forms import Forms
from .executable import DeviceExecutable


def profiled(executable: DeviceExecutable) -> Forms:
    """The executable in its forms, which share its kernels."""
    nothing, thunks = SequentialThunk(()), executable.thunks
    has_marks = any(isinstance(thunk, ProfileThunk) for thunk in thunks.walk())
    return Forms(
        _with_thunks(executable, without_marks(thunks), None) if has_marks else executable,
        _with_thunks(executable, marked(thunks, False), Recorder()),
        _with_thunks(executable, marked(thunks, True), Recorder()),
        _with_thunks(executable, nothing, None),
        _with_thunks(executable, marked(nothing, False), Recorder()),
    )


def _with_thunks(executable: DeviceExecutable, thunks: SequentialThunk, recorder: Recorder | None) -> DeviceExecutable:
    image = replace(executable.image, thunks=thunks)
    return executable.another(image, recorder)
