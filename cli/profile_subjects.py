"""What `testbed profile` measures: a module on a stack, or a program in a .tbx file; or reads, where it was saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..backends.executables import Executable
    from ..backends.forms import Forms
    from ..backends.host.executable import HostExecutable
    from ..profiling.recorder import Recording
    from ..profiling.report import Report
    from .inputs import HasInputs, Inputs

DEFAULT = "ledger"
HOST = "host"


@dataclass(frozen=True)
class Subject:
    """spec: a MODULE, a .tbx file or a saved profile. emitters: flags; None if the user gave none."""

    spec: str
    emitters: str | None


@dataclass(frozen=True)
class Options:
    """How to measure. iterations: None for as many as fit. platform: the name of that which runs it."""

    inputs: Inputs
    iterations: int | None
    host_program: str
    counters: bool
    platform: str = HOST


@dataclass(frozen=True)
class Profiled:
    """A report, and the events of some of its runs; none if it was saved."""

    report: Report
    recordings: Sequence[Recording] = ()


def subjects_of(modules: Sequence[str], emitters: str | None) -> list[Subject]:
    """Each module on each stack. emitters: names of stacks with commas between them, or flags."""
    from ..migration.flags import STACK_NAMES, XLA_STACKS

    names = [name.strip() for name in emitters.split(",")] if emitters is not None else []
    several = len(names) > 1 and all(name in (*STACK_NAMES, *XLA_STACKS) for name in names)
    chosen: Sequence[str | None] = list(dict.fromkeys(names)) if several else [emitters]
    for flags in chosen:
        if flags in ("evaluator", "xla", "optimized"):
            raise click.UsageError(f"a profile needs compiled kernels, and {flags} has none")
    return [Subject(module, flags) for module in modules for flags in chosen]


def is_saved(spec: str) -> bool:
    return Path(spec).suffix.lower() == ".json"


def is_program(spec: str) -> bool:
    """Whether a file is one of `testbed compile`, by its name or its first bytes."""
    path = Path(spec)
    if path.suffix.lower() == ".tbx":
        return True
    if spec == "-" or not path.is_file():
        return False
    from ..formats.program import read_bytes
    from ..thunks.wire.container import MAGIC

    return read_bytes(path)[: len(MAGIC)] == MAGIC


def saved_or_measured(subject: Subject, options: Options) -> list[Profiled]:
    """The profiles of a subject. Raises what reading, compiling and running it raise."""
    if is_saved(subject.spec):
        from ..formats.program import read_text
        from ..profiling.report import from_json

        _refuse_flags(subject, "a saved profile")
        return [Profiled(report) for report in from_json(read_text(Path(subject.spec)), subject.spec)]
    if is_program(subject.spec):
        return [_of_file(subject, options)]
    return [_of_module(subject, options)]


def _refuse_flags(subject: Subject, what: str) -> None:
    if subject.emitters is not None:
        raise click.UsageError(f"{subject.spec} is {what}: leave out its flags")


def _of_module(subject: Subject, options: Options) -> Profiled:
    from ..backends.base import CompileOptions
    from ..backends.host.profiled import profiled
    from ..migration import Flags
    from ..migration.compile import compile_program, emitters_of
    from ..migration.platforms import parse_platform, prepare_on_platform
    from ..migration.programs import load_program

    program = load_program(subject.spec)
    if options.platform != HOST:
        prepared = prepare_on_platform(
            parse_platform(options.platform), program, subject.emitters, options.host_program
        )
        stacks = subject.emitters or ",".join(sorted({stack for _, stack in prepared.kernels}))
        return _on_device(program, stacks, prepared.executable, options)
    flags = Flags.parse(subject.emitters or DEFAULT)
    compiling = CompileOptions(host_program=options.host_program)
    executable = compile_program(program, flags, compiling)
    forms = profiled(executable, emitters_of(program, flags, compiling), compiling)
    return _measured(program, subject.emitters or DEFAULT, forms, options)


def _of_file(subject: Subject, options: Options) -> Profiled:
    from ..backends.host.loader import load_executable
    from ..backends.host.profiled import profiled
    from ..backends.registry import platform
    from ..formats.program import read_bytes
    from ..migration.platforms import parse_platform
    from .exec import LoadedProgram

    _refuse_flags(subject, "compiled already")
    of_host: HostExecutable | None = None
    executable: Executable
    if options.platform == HOST:
        executable = of_host = load_executable(subject.spec)
    else:
        compiler = platform(parse_platform(options.platform)).compiler()
        executable = compiler.load_executable(read_bytes(Path(subject.spec)))
    program = LoadedProgram(Path(subject.spec).stem, executable.program)
    stacks = ",".join(sorted({stack for _, stack in executable.kernels})) or "no kernels"
    if of_host is None:
        return _on_device(program, stacks, executable, options)
    return _measured(program, stacks, profiled(of_host), options)


def _on_device(program: HasInputs, emitters: str, executable: Executable | None, options: Options) -> Profiled:
    """The profile of a program on another platform, by the events of its queue."""
    from ..backends.accelerator.executable import DeviceExecutable
    from ..backends.accelerator.profiled import profiled
    from ..backends.device import BackendError

    if not isinstance(executable, DeviceExecutable):
        what = f"platform {options.platform} notes no times of kernels"
        raise BackendError(what, remedy="give one with a queue: opencl, cuda or rocm")
    return _measured(program, f"{emitters}@{options.platform}", profiled(executable), options)


def _measured(program: HasInputs, emitters: str, forms: Forms, options: Options) -> Profiled:
    from ..backends.host.executable import HostExecutable
    from ..benchmarks.contestants import aligned
    from ..benchmarks.counted import counted
    from ..benchmarks.profiles import measure, report

    values = [aligned(x) for x in options.inputs.values(program, expected=False).inputs]
    measured = measure(forms, values, options.iterations)
    made = report(program.name, emitters, forms, measured)
    if options.counters:
        assert isinstance(forms.plain, HostExecutable)
        made = counted(made, forms.plain, values)
    return Profiled(made, measured.recordings)
