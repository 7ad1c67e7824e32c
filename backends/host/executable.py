"""A compiled program on the host: checks inputs, places inputs and results in memory, runs the thunks."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...codegen.threads import threads
from ...hlo.errors import InputError
from ...hlo.later import np
from ...thunks.kinds import ConditionalThunk, ProfileThunk, SequentialThunk, WhileThunk
from ..executables import Executable
from .interruptible import LONG, QUICK, in_main_thread, run_aside

if TYPE_CHECKING:
    from ...codegen.cache import ObjectCache
    from ...codegen.forms import ChosenForms
    from ...codegen.load import LoadedCode
    from ...codegen.options import Target
    from ...ffi.sites import Sites
    from ...hlo.ir import Module
    from ...planning.plan import Plan
    from ...profiling.profile import Profile
    from ...profiling.recorder import Recorder, Recording
    from ...profiling.sink import Sink
    from ...thunks.check_log import Findings
    from ...thunks.executor import Executor, Observer
    from ...thunks.host_module import HostModule
    from ...thunks.image import Image
    from ...thunks.outside import Port
    from ...thunks.wire.program import Entry
    from ..device import DeviceMemory, Stream
    from .feeds import Queues
    from .leaves import Leaf
    from .memory_checks import MemoryChecks
    from .outside import Outside
    from .shadows import Report, Shadows
    from .signature import Signature


MOST_RECORDED = 1 << 22
"""Events that a frame keeps for a recorder: 64 MiB, of which only what is written takes memory."""


_RUNS = itertools.count()
"""Runs that could have prepared the native entry. The first one of a process does not: preparing takes longer than
compiling a small program, and a process may run nothing else.
"""


class HostExecutable(Executable):
    """A compiled program. Threads may execute it in parallel: each run uses its own arena."""

    __slots__ = ("_native",)  # an array, Program.words, which native functions read; or None

    def __init__(
        self,
        image: Image,
        program: Module,
        code: LoadedCode,
        target: Target,
        timings: Mapping[str, float],
        stages: tuple[tuple[str, str], ...] = (),
        cache: ObjectCache | None = None,
        red_zones: bool = False,
        plan: Plan | None = None,
        recorder: Recorder | None = None,
        host_text: Callable[[], str] | None = None,
        shadows: Shadows | None = None,
        built: HostModule | None = None,
        checks_memory: bool = False,
        forms: Mapping[str, ChosenForms] | None = None,
    ):
        """built: the host program in the code, if it was made of these thunks in this process. checks_memory: whether
        all runs are as those of `execute_checked`. forms: kernel → its forms, of the stacks that say them; of a program
        from a file there are none.
        """
        # A program that is only loaded needs nothing of all this (loader.py).
        from ...thunks.check_log import log_of
        from ...thunks.events import MOST_EVENTS
        from ...thunks.executor import Executor
        from ...thunks.host_program import host_program_of
        from ...thunks.patched import runs_natively
        from .contexts import Context, Contexts
        from .signature import Signature

        self.image, self.program, self.code, self._plan = image, program, code, plan
        self.thunks, self.target = image.thunks, target
        self.kernels = tuple((kernel.symbol, kernel.emitter) for kernel in image.kernels)
        self.timings, self.stages, self.forms = timings, stages, forms or {}
        self._signature, self._border = Signature.of(image), image.border
        variable = self._signature.variable
        handlers = [kernel.symbol for kernel in image.kernels if kernel.emitter == "ffi"]
        host = host_program_of(image.thunks, code, cache, handlers, built)
        flush, most = image.flush_subnormals, MOST_EVENTS if recorder is None else MOST_RECORDED
        self._executor = Executor(image.thunks, code.address, variable, cache, flush, most, host, handlers)
        self._recorder = recorder
        self._events = _sink(image.thunks, self._executor) if recorder is None else None
        self._checks = log_of(image.thunks)
        self._shadows = shadows
        self._is_long = image.seconds >= LONG
        self._red_zones, self._cache, self._host_text = red_zones, cache, host_text
        self._contexts = Contexts(functools.partial(Context, self._signature, image))
        self._native: np.ndarray | None = None
        self.outside = _outside(image, program.name)
        self._sites = _sites(code, handlers)
        notes = self._events is not None or self._checks is not None
        begins = self._sites is not None and self._sites.begins
        self.checks_memory = checks_memory
        observed = red_zones or checks_memory or notes or begins or self.outside is not None
        branches = any(
            isinstance(thunk, ConditionalThunk) or (isinstance(thunk, WhileThunk) and thunk.trip_count is None)
            for thunk in self.thunks.walk()
        )
        self._is_even = not (branches or handlers or self._border or self.outside is not None)
        self._enters = not (self._border or observed) and runs_natively(self._executor)
        self._may_enter = self._enters and not self._is_long
        self._entering = threading.Lock()

    @property
    def plan(self) -> Plan:
        """The plan that it was compiled from. Raises InputError if it was loaded from a file, which has none."""
        if self._plan is None:
            raise InputError("an executable from a file has no plan", remedy="compile the module in this process")
        return self._plan

    def serialize(self, key: bytes | None = None) -> bytes:
        """The program as the bytes of a .tbx file, for `testbed.deserialize_and_load`. key: signs them.

        Raises InputError for trees of JAX with classes of the user's own.
        """
        return b"".join(self._pieces(key))

    def save(self, path: str | os.PathLike[str], key: bytes | None = None) -> None:
        """Write the .tbx file that `testbed.load_executable` reads, whole or not at all. key: signs it."""
        from pathlib import Path

        from ...formats.whole_files import write_whole

        write_whole(Path(path), lambda file: file.writelines(self._pieces(key)))

    def _pieces(self, key: bytes | None) -> Iterator[bytes | memoryview]:
        from .files import pieces

        return pieces(self.entry, self.image, self.code, self.host_bytecode, self.target, key)

    @property
    def entry(self) -> Entry:
        """How callers know the program, as a file holds it."""
        from .files import entry_of

        return entry_of(self.program)

    @property
    def host_program(self) -> str:
        """How kernels are called: 'compiled' or 'interpreted'."""
        return "interpreted" if self._executor.program is None else "compiled"

    @functools.cached_property
    def host_bytecode(self) -> bytes:
        """The compiled host program as MLIR's bytecode; empty if it is interpreted."""
        from ...thunks.host_build import host_bytecode

        return host_bytecode(self._host_text(), self._cache) if self._host_text else b""

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        leaves = self._signature.inputs
        return leaves if self._border is None else leaves[: len(self._border.shapes)]

    @property
    def outputs(self) -> tuple[Leaf, ...]:
        leaves = self._signature.outputs
        return leaves if self._border is None else leaves[: self._border.outputs]

    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        observer: Observer | None = None,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        """Run once. outputs: arrays that receive the results, None for a new one. They must not overlap any other
        array.

        donated: numbers of inputs that may be overwritten. If the module aliases such an input to a result, it becomes
        it.

        New results are aligned to 64 bytes and own their memory. A result whose layout is not row-major is a strided
        view. Inputs and results with dynamic dimensions have their actual sizes; arrays in `outputs` have the bounds.
        observer: called for each thunk (slower). Raises InputError if an input or output does not fit.

        Ctrl-C in the main thread raises KeyboardInterrupt at once. The kernel that was running then goes on for as long
        as it takes, and may still write to `outputs` and donated inputs: drop them.
        """
        native = self._contexts.native
        if native is not None and observer is None and not donated:
            results = native.execute(self._native, tuple(inputs), None if outputs is None else tuple(outputs))
            if results is not None:
                return results
        return self._execute(inputs, outputs, observer, donated)

    def execute_checked(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        """Run once in the checking mode (memory_checks.py): kernels run with junk around their arguments.

        Raises MemoryCheckError for a kernel that reads memory that is not its own or was not written, or leaves
        elements of a result unwritten; RedZoneError for one that writes outside of its arguments; InputError if the
        executable has no plan.
        """
        return self._execute(inputs, None, None, (), checked=True)

    @functools.cached_property
    def _memory_checks(self) -> MemoryChecks:
        from .memory_checks import MemoryChecks

        return MemoryChecks(self.code, self.image, self._plan, self._cache)

    def _execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None,
        observer: Observer | None,
        donated: Collection[int],
        port: Port | None = None,
        checked: bool = False,
    ) -> list[np.ndarray]:
        """As `execute`, for all that the native functions leave to Python. port: of a device among several. checked: as
        `execute_checked`.
        """
        if port is None and self.outside is not None:
            if self.outside.devices.count > 1:
                remedy = "call execute_replicated(inputs of each device)"
                raise InputError(f"{self.program.name} was compiled for {self.outside.devices}", remedy=remedy)
            return self._on_all(lambda _, alone: self._execute(inputs, outputs, observer, donated, alone, checked))[0]
        if self._may_enter and next(_RUNS):
            self._enter()
        if self._border is not None:
            inputs, outputs = self._border.padded(inputs), self._sized(outputs)
        signature = self._signature
        addresses, kept = signature.place_inputs(inputs)  # kept: arrays that must outlive the run
        places, results = signature.place_outputs(outputs)
        if signature.aliased or donated:
            from .donation import place_aliased

            signature.refuse_overlaps(addresses + places)
            place_aliased(signature, inputs, donated, addresses, kept, places, results, outputs)
        addresses += places
        context = self._contexts.take()
        if self._red_zones and observer is None:
            from .red_zones import RedZones

            observer = RedZones(self.code, self._executor.runner, self.image.flush_subnormals, context.address)
        elif (self.checks_memory or checked) and observer is None:
            from .memory_checks import MemoryRun

            observer = MemoryRun(self._memory_checks, context.address)

        def run() -> None:
            sink = self._events or self._checks or self._recorder
            context.run(self._executor, addresses, observer, sink, port, self._sites)
            if self._shadows is not None and self._checks is not None:
                self._shadows.take(self._checks.findings(), context.address)
            for number, slice in signature.copied:
                ctypes.memmove(places[number], context.address(slice.allocation) + slice.offset, slice.size)

        def give_back() -> None:  # also after an exception: a run reads nothing of the arena that it has not written
            context.go_on()
            self._contexts.give_back(context, self._executor)

        if self._is_long and in_main_thread():
            work = run if self._sites is None else self._sites.carried(run)
            start = time.perf_counter()
            run_aside(work, context.stop, give_back, keep=(self, kept, results))
            if self._is_even and (time.perf_counter() - start) * threads() < QUICK:
                self._is_long, self._may_enter = False, self._enters
        else:
            try:
                run()
            finally:
                give_back()
        return results if self._border is None else self._border.cut(results)

    def fill_temporaries(self, byte: int) -> None:
        """Write a byte all over the temporary memory of the next run: what reads it too early shows each time."""
        context = self._contexts.take()
        context.fill(byte)
        self._contexts.give_back(context, self._executor)

    def execute_async_on_stream(self, stream: Stream, arguments: Sequence[DeviceMemory]) -> list[DeviceMemory]:
        from .on_stream import execute_on_stream

        return execute_on_stream(self, stream, arguments)

    def execute_replicated(self, inputs: Sequence[Sequence[Any]]) -> list[list[np.ndarray]]:
        """Run once on all devices that the program was compiled for, each on a thread of its own; the results of each.

        inputs: the leaves for each device; a device's number is replica · partitions + partition. Raises InputError for
        inputs that do not fit, and CollectiveError if devices wait for what never comes, or longer than
        `outside.wait_limit` seconds. What one device raises ends all.
        """
        devices = self.image.devices
        if len(inputs) != devices.count:
            what = f"{len(inputs)} lists of inputs for {devices.count} devices ({devices})"
            raise InputError(what, remedy="compile it with CompileOptions(replicas=…, partitions=…)")
        if self.outside is None:
            return [self.execute(given) for given in inputs]
        return self._on_all(lambda device, port: self._execute(inputs[device], None, None, (), port))

    def _on_all(self, run: Callable[[int, Port], list[np.ndarray]]) -> list[list[np.ndarray]]:
        """What run(device, port) returns on a thread for each device."""
        assert self.outside is not None
        return self.outside.on_all(run if self._sites is None else self._sites.carried(run))

    def infeed(self, *leaves: Any, device: int = 0) -> None:
        """Append a value to a device's infeed, one array per leaf. Raises InputError if the program takes none like it.

        A run waits for it up to `outside.wait_limit` seconds.
        """
        self._queues(device).put(leaves)

    def close_infeed(self) -> None:
        """Say that no more values come: a run that reads more than there are fails at once, on any device."""
        if self.outside is not None:
            for device in range(self.outside.devices.count):
                self.outside.queues(device).close()

    def outfeed(self, device: int = 0, timeout: float = 0.0) -> list[np.ndarray]:
        """The next value of a device's outfeed, one array per leaf. Raises InputError if there is none within `timeout`
        seconds.
        """
        return self._queues(device).get(timeout)

    def _queues(self, device: int) -> Queues:
        if self.outside is None:
            raise InputError(f"{self.program.name} has neither an infeed nor an outfeed")
        return self.outside.queues(device)

    def profile(self, clear: bool = False) -> Profile:
        """The times of each step, over all runs so far. clear: forget them.

        Raises InputError if the program notes none.
        """
        if self._events is None and not self.thunks.thunks:
            from ...profiling.profile import Profile

            return Profile((), 0, 0, 0.0)  # no step, and no event: whether it was asked for shows nowhere
        if self._events is None:
            raise InputError(
                f"{self.program.name} was compiled without a profile", remedy="use CompileOptions(profile=True)"
            )
        made = self._events.profile(clear)
        if self._plan is None:
            return made
        from ...profiling.facts import facts_of

        facts = facts_of(self._plan, dict(self.kernels), self.program.attributes, self.form_names)
        return made.with_facts(facts)

    @property
    def has_profile(self) -> bool:
        """Whether runs note the times of steps."""
        return self._events is not None

    @property
    def has_shadows(self) -> bool:
        """Whether kernels of another stack run behind some of its own, and are compared with them."""
        return self._shadows is not None

    def shadow_report(self) -> Report:
        """What shadow kernels found in the last run. Raises InputError if it has none."""
        if self._shadows is None:
            raise InputError(f"{self.program.name} has no shadow kernels", remedy="compile it with the flags 'shadow'")
        return self._shadows.report()

    def findings(self) -> Findings:
        """What the checks in the program found in its last run.

        Raises InputError if it has none.
        """
        if self._checks is None:
            raise InputError(
                f"{self.program.name} was compiled without checks", remedy="use CompileOptions(debug='nan')"
            )
        return self._checks.findings()

    @property
    def has_red_zones(self) -> bool:
        """Whether it was compiled with red zones."""
        return self._red_zones

    @property
    def is_planned(self) -> bool:
        """Whether it has a plan."""
        return self._plan is not None

    def event_cost(self) -> float:
        """Nanoseconds that a mark costs in a row of marks."""
        from ...thunks.events import event_cost

        runner = self._executor.runner
        return event_cost(runner.run, runner.profile)

    @property
    def form_names(self) -> dict[str, str]:
        """Kernel → the names of its forms."""
        return {kernel: " + ".join(forms.names) for kernel, forms in self.forms.items()}

    @property
    def parts(self) -> tuple[Signature, Image, Executor]:
        """What runs by addresses alone need (by_pointers.py)."""
        return self._signature, self.image, self._executor

    @property
    def enters(self) -> bool:
        """Whether runs need nothing of Python, apart from handlers."""
        return self._enters

    @property
    def has_handlers(self) -> bool:
        """Whether it calls handlers of custom calls."""
        return self._sites is not None

    @property
    def is_recording(self) -> bool:
        """Whether it has a recorder for its events."""
        return self._recorder is not None

    def take_events(self) -> list[Recording]:
        """What runs noted since the last call, of an executable with a recorder (profiled.py). None may run now."""
        assert self._recorder is not None
        for events in self._contexts.noted():
            self._recorder.add(events.marks, events.times, events.lost)
        return self._recorder.take()

    def _enter(self) -> None:
        """Prepare the native entry, at the first run: the trees of arguments and results are known by then."""
        with self._entering:
            if not self._may_enter:
                return
            from .contexts import IDLE_CONTEXTS
            from .entry import Program, native_entry

            native = native_entry(HostExecutable, "_native", Executable.__call__, self._cache)
            if native is not None:
                loops = any(isinstance(thunk, WhileThunk) for thunk in self.thunks.walk())
                seconds = self.image.seconds
                program = Program(self._signature, self.calling, seconds, loops, IDLE_CONTEXTS, self._sites)
                self._native = program.words
                self._contexts.enter(native, program)
            self._may_enter = False

    def _sized(self, outputs: Sequence[np.ndarray | None] | None) -> Sequence[np.ndarray | None] | None:
        """The caller's outputs, followed by None for each size of a dynamic result."""
        border = self._border
        return outputs if outputs is None or border is None else [*outputs, *[None] * len(border.results)]


def _sites(code: LoadedCode, symbols: Sequence[str]) -> Sites | None:
    """The call sites of handlers, by their kernels; None without any. Raises UnsupportedError for an unknown target."""
    if not symbols:
        return None
    from ...ffi.sites import Sites

    return Sites(code, symbols)


def _outside(image: Image, name: str) -> Outside | None:
    """The devices and feeds of a program; None if it depends on its memory only."""
    if not image.depends_on_device:
        return None
    from .outside import Outside

    return Outside(image, name)


def _sink(thunks: SequentialThunk, executor: Executor) -> Sink | None:
    """What collects the events of all runs; None if the program has no profile thunks."""
    if not any(isinstance(thunk, ProfileThunk) for thunk in thunks.walk()):
        return None
    from ...profiling.profile import Row
    from ...profiling.sink import Sink
    from ...thunks.events import event_cost, intervals

    rows = [Row(i.id, i.name, i.what, i.depth) for i in intervals(thunks)]
    return Sink(rows, event_cost(executor.runner.run, executor.runner.profile))
