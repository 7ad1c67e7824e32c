"""Executable → the same with marks around the run, or around each step too. They share the kernels' code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...codegen.load import LoadedCode, load
from ...codegen.options import EmitOptions
from ...profiling.recorder import Recorder
from ...thunks.host_module import ENTRY, VERSION
from ...thunks.kinds import ProfileThunk, SequentialThunk
from ...thunks.marked import marked, numbered_steps, without_marks
from ..base import CompileOptions, EmitFor
from ..forms import Forms
from . import program as host_program
from .compiler import ir_of
from .estimate import seconds_by_kernel
from .executable import HostExecutable
from .parts import by_stack


def profiled(
    executable: HostExecutable, emit_for: EmitFor | None = None, options: CompileOptions | None = None
) -> Forms:
    """An executable in its forms. Those with marks keep their events until `take_events`; a frame keeps MOST_RECORDED
    at most. emit_for, options: those that it was compiled with; None for one from a file,
    whose kernels are then not inlined into the marked forms' loops.
    """
    nothing, thunks = SequentialThunk(()), executable.thunks

    def with_thunks(thunks: SequentialThunk, recorder: Recorder | None) -> HostExecutable:
        return _with_thunks(executable, thunks, emit_for, options, recorder)

    has_marks = any(isinstance(thunk, ProfileThunk) for thunk in thunks.walk())
    return Forms(
        with_thunks(without_marks(thunks), None) if has_marks else executable,
        with_thunks(marked(thunks, False), Recorder()),
        with_thunks(marked(thunks, True), Recorder()),
        with_thunks(nothing, None),
        with_thunks(marked(nothing, False), Recorder()),
    )


def _with_thunks(
    executable: HostExecutable,
    thunks: SequentialThunk,
    emit_for: EmitFor | None,
    options: CompileOptions | None,
    recorder: Recorder | None,
) -> HostExecutable:
    code = executable.code
    if executable.host_program == "compiled" and numbered_steps(thunks):
        code = _with_host(executable, thunks, emit_for, options)
    image = replace(executable.image, thunks=thunks)
    plan = executable.plan if executable.is_planned else None
    forms = executable.forms
    return HostExecutable(
        image, executable.program, code, executable.target, {}, plan=plan, recorder=recorder, forms=forms
    )


def _with_host(
    executable: HostExecutable, thunks: SequentialThunk, emit_for: EmitFor | None, options: CompileOptions | None
) -> LoadedCode:
    """The code of an executable with the host program of other thunks."""
    if options is None:
        emit = replace(EmitOptions.host(), strict=not executable.image.flush_subnormals)
        options = CompileOptions(emit=emit)
    kernels: Sequence[str] = ()
    seconds: Mapping[str, float] = {}
    if emit_for is not None:
        plan = executable.plan
        seconds = dict(seconds_by_kernel(plan))
        names = host_program.inlined(thunks, seconds, options)
        kernels = ir_of(names, by_stack(plan.emitted, emit_for), options)
    built = host_program.build(thunks, seconds, options, kernels)
    addresses = executable.code.addresses
    imports = {name: at for name, at in addresses.items() if name not in (ENTRY, VERSION)}
    return LoadedCode.together(executable.code, load([built.object.data], imports))
