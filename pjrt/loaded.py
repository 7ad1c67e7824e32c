"""A loaded program: the C record by which native code runs it, and its runs through Python."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.host.addresses import address_of
from ..backends.host.by_pointers import copies_of, new_run, runs_by_pointers
from ..backends.host.memory import POOL, size_class
from . import api, repro
from .buffers import Buffer, array_at
from .client import client
from .compile import Compiled
from .errors import PjrtError
from .native import words_at
from .records import COPY, EXECUTABLE, INPUT_LEAF, MOST_CONTEXTS, OUTPUT_LEAF, PAIR, W
from .settings import settings

if TYPE_CHECKING:
    from .native import Native

_numbers = itertools.count(1)


class Loaded:
    """handle: the address of the record. references: handles that the framework holds."""

    def __init__(self, compiled: Compiled, native: Native):
        self.compiled, self.native = compiled, native
        self.device = client().devices[compiled.device]
        self.memory = self.device.memories[0]
        self.references, self.deleted = 1, False
        self.answers: dict[str, Any] = {}
        self._kept: list[object] = []
        self._contexts = np.zeros(MOST_CONTEXTS, np.uint64)
        self._states: list[np.ndarray] = []
        self._adding = threading.Lock()
        self.templates = [
            native.template(self.memory.handle, self.device.handle, api.TYPE_OF[slot.dtype], slot.dims, slot.bytes)
            for slot in compiled.results
        ]
        self.words = np.zeros(len(EXECUTABLE), np.uint64)
        self.handle = address_of(self.words)
        executable = compiled.executable
        self._put("key", next(_numbers))
        self._put("replicas", 1)
        self._put("partitions", 1)
        self._put("outputs", len(compiled.results))
        self._put("inputs", len(compiled.parameters))
        leaves = (*executable.inputs, *executable.outputs)
        self.is_native = runs_by_pointers(executable) and all(leaf.order is None for leaf in leaves)
        if self.is_native:
            self._fill()

    def _put(self, word: str, value: int) -> None:
        self.words[W["executable"][word]] = value

    def _rows(self, name: str, rows: Sequence[Sequence[int]], words: tuple[str, ...]) -> None:
        made = np.array(rows, np.uint64).reshape(len(rows), len(words))
        self._kept.append(made)
        self._put(name, address_of(made))

    def _fill(self) -> None:
        """Fill in what native runs read."""
        executable, compiled, w = self.compiled.executable, self.compiled, W["buffer"]
        signature, image, _ = executable.parts
        nowhere = len(image.allocations)
        inputs, outputs = signature.inputs, signature.outputs
        places = signature.variable
        rows: list[tuple[int, ...]] = []
        for slot in compiled.parameters:
            known = slot.leaf is not None
            mask = inputs[slot.leaf].alignment - 1 if slot.leaf is not None else 0
            rows.append((mask, places[slot.leaf] if known and slot.leaf is not None else nowhere))
        self._rows("input_leaves", rows, INPUT_LEAF)
        rows = []
        for slot, template in zip(compiled.results, self.templates, strict=True):
            template[w["release"]], template[w["owned"]] = self.native.release_to_pool, 1
            if slot.leaf is None:
                template[w["release"]], template[w["data"]] = 0, self.native.ready_event
                rows.append((nowhere, 0, address_of(template), template.nbytes))
            else:
                shelf = POOL.shelf(size_class(slot.bytes))
                rows.append((places[len(inputs) + slot.leaf], shelf, address_of(template), template.nbytes))
        self._rows("output_leaves", rows, OUTPUT_LEAF)
        given = {slot.leaf: n for n, slot in enumerate(compiled.parameters) if slot.leaf is not None}
        taken = {slot.leaf: n for n, slot in enumerate(compiled.results) if slot.leaf is not None}
        pairs = [
            (given[source], taken[target], outputs[target].bytes, given[source] in compiled.donated)
            for source, target in signature.aliased
        ]
        self._rows("pair_rows", pairs, PAIR)
        self._put("pairs", len(pairs))
        donated = np.array(sorted(compiled.donated), np.uint64)
        self._kept.append(donated)
        self._put("donated", len(donated))
        self._put("donated_rows", address_of(donated))
        copies = [(taken[number], s.allocation, s.offset, s.size) for number, s in copies_of(executable)]
        self._rows("copies", copies, COPY)
        self._put("copied", len(copies))
        self._put("contexts", address_of(self._contexts))
        self._put("native", 1)

    def add_context(self) -> bool:
        """Make the state of one more native run. False if there are enough, or one is idle. Raises OutOfMemoryError."""
        with self._adding:
            ready = int(self.words[W["executable"]["ready"]])
            if not self.is_native or ready == MOST_CONTEXTS or any(not words[0] for words in self._states):
                return False
            run = new_run(self.compiled.executable)
            words = np.array([0, run.bases, run.control], np.uint64)
            self._kept.append(run)
            self._states.append(words)
            self._put("run", run.function)
            self._put("loops", len(run.loops))
            self._put("loop_word", run.loops.start)
            self._put("position", run.position)
            self._contexts[ready] = address_of(words)
            self._put("ready", ready + 1)
            return True

    # -- runs through Python -------------------------------------------------------------------------------------------
    def run(self, handles: list[int], kept: frozenset[int]) -> list[int]:
        """The handles of the results. kept: inputs that must not be given up. Raises PjrtError or what a run raises."""
        compiled = self.compiled
        if len(handles) != len(compiled.parameters):
            what = f"{compiled.name} takes {len(compiled.parameters)} arguments, {len(handles)} given"
            raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, what)
        donated = compiled.donated - kept
        for number in sorted(donated):
            if handles.count(handles[number]) > 1:
                what = "Attempt to donate the same buffer twice in Execute()"
                raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, what)
        buffers = [Buffer(handle) for handle in handles]
        self._hold(handles)
        try:
            given = zip(buffers, compiled.parameters, strict=True)
            inputs = [buffer.array() for buffer, slot in given if slot.leaf is not None]
            made, outputs = self._places()
            try:
                results = self._execute(inputs, outputs)
                for array, result, slot in zip(outputs, results, self._arrays(), strict=True):
                    if array is None:
                        np.copyto(array_at(made[slot][1], result.dtype, result.shape), result)
            except BaseException:
                for handle, _ in made:
                    self.native.drop(handle)
                raise
        finally:
            for handle in handles:
                self.native.drop(handle)
        for number in donated:
            self.native.delete(handles[number])
        return [handle for handle, _ in made]

    def _execute(self, inputs: list[np.ndarray], outputs: list[np.ndarray | None]) -> list[np.ndarray]:
        """Run, and keep what fails, or differs from a shadow, where the user has named a folder for it."""
        executable, folder = self.compiled.executable, settings().repro
        try:
            results = executable.execute(inputs, outputs)
        except Exception as error:
            if folder is not None:
                repro.keep_failure(folder, executable.program, inputs, error)
            raise
        if executable.has_shadows:
            repro.note_shadows(folder, executable.shadow_report())
        return results

    def _hold(self, handles: list[int]) -> None:
        for handle in handles:
            self.native.hold(handle)

    def _arrays(self) -> list[int]:
        """The numbers of results that are arrays."""
        return [n for n, slot in enumerate(self.compiled.results) if slot.leaf is not None]

    def _places(self) -> tuple[list[tuple[int, int]], list[np.ndarray | None]]:
        """A buffer and its address for each result, and the arrays on them; None for one that is to be copied there."""
        made: list[tuple[int, int]] = []
        arrays: list[np.ndarray | None] = []
        for slot, template in zip(self.compiled.results, self.templates, strict=True):
            if slot.leaf is None:
                made.append((self.native.new_buffer(template, self.native.ready_event), 0))
                continue
            made.append(self.native.pool_buffer(template, slot.bytes))
            leaf = self.compiled.executable.outputs[slot.leaf]
            fits = leaf.order is None and leaf.bytes == slot.bytes and slot.bytes > 0
            arrays.append(array_at(made[-1][1], leaf.dtype, leaf.dims) if fits else None)
        return made, arrays


def call_execute(native: Any, args: Any, loaded: Loaded) -> None:
    """LoadedExecutable_Execute for what its native form leaves."""
    if args.num_devices != 1:
        raise PjrtError(api.ErrorCode.UNIMPLEMENTED, f"a run on {args.num_devices} devices")
    if loaded.deleted:
        raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, f"{loaded.compiled.name}: the executable has been deleted")
    options = api.structure("PJRT_ExecuteOptions").from_address(args.options)
    count = options.num_non_donatable_input_indices
    kept = frozenset(words_at(options.non_donatable_input_indices, count)) if count else frozenset()
    handles = list(words_at(words_at(args.argument_lists, 1)[0], args.num_args)) if args.num_args else []
    results = loaded.run(handles, kept)
    if results:
        words_at(words_at(args.output_lists, 1)[0], len(results))[:] = results
    if args.device_complete_events:
        words_at(args.device_complete_events, 1)[0] = native.ready_event
