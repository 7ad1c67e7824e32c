"""gather as an elemental rule, and scatter at a kernel's root.

gather clamps its start indices, so that every slice is inside the operand; scatter skips windows that are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np
from llvmlite import ir

from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction, Literal
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import array
from ..core.builder import Code, IndexValue, Unroll, over_columns
from ..core.graph import walk
from ..core.registers import I64, flatten
from ..core.stack import StackArray
from ..core.view import View
from ..loops.elemental import Elemental, ElementRule, Index, Reads
from ..loops.form import Results
from ..loops.memory import Pointer, immediate, load, store
from ..loops.ranges import Steps
from .concatenate import is_few, picked
from .shape import clamped_start, widened_start
from .update import copy_operand

AHEAD = 256
"""Batch positions of a scatter whose indices are computed together, before their windows are combined: no vectors can
be made of a loop that stores where an index says, and a remainder alone takes as long as the rest of its turn.
"""

FEW = 64
"""Batch positions in a row up to which their indices are not computed apart: two loops more are code for LLVM."""


@dataclass(frozen=True, slots=True)
class Addressing:
    """How a batch position addresses the operand. components[k]: the operand dimension that element k of an index
    vector indexes. batching: operand dimension → dimension of the batch.
    """

    indices: Instruction
    vector_dim: int
    components: Sequence[int]
    batching: Mapping[int, int]

    @staticmethod
    def of(instruction: Instruction, indices: Instruction, components: str, batching: str, partners: str) -> Addressing:
        """Read the addressing of an instruction. The last three arguments are names of its attributes."""
        a = instruction.attributes
        vector_dim = a["index_vector_dim"]
        pairs = zip(a.get(batching, ()), a.get(partners, ()), strict=True)
        return Addressing(indices, vector_dim, a[components], {d: b - (b > vector_dim) for d, b in pairs})

    @property
    def batch_dims(self) -> list[int]:
        """Sizes of the dimensions of the indices, without the index vector's."""
        return [size for d, size in enumerate(self.indices.shape.dims) if d != self.vector_dim]

    def places(self, code: Code, batch: Sequence[IndexValue]) -> list[Index]:
        """Where the elements of the index vector at a batch position are."""
        shape, found = self.indices.shape, []
        for component in range(len(self.components)):
            at = list(batch)
            if self.vector_dim < shape.rank:
                at.insert(self.vector_dim, component)
            found.append(Index.at(code, shape, at))
        return found

    def numbers(self, e: Elemental, batch: Sequence[IndexValue]) -> Reads:
        """The index vector at a batch position, as a tuple of integers."""
        found = []
        for place in self.places(e.code, batch):
            found.append((yield self.indices, place))
        return tuple(found)


def gather(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    source, indices = instruction.operands
    code, a = e.code, instruction.attributes
    if not source.shape.size:  # nothing to gather from
        return immediate(Literal(array(source.shape.dtype), np.zeros((), source.shape.dtype.numpy)))
    addressing = Addressing.of(
        instruction, indices, "start_index_map", "operand_batching_dims", "start_indices_batching_dims"
    )
    offset_dims, multi = a["offset_dims"], index.multi
    batch = [p for d, p in enumerate(multi) if d not in offset_dims]
    offsets = iter([multi[d] for d in offset_dims])
    numbers = yield from addressing.numbers(e, batch)
    starts = dict(zip(addressing.components, numbers, strict=True))
    positions: list[IndexValue] = []
    for d, (size, length) in enumerate(zip(source.shape.dims, a["slice_sizes"], strict=True)):
        start: IndexValue = 0
        if d in addressing.batching:
            start = batch[addressing.batching[d]]
        elif d in starts:
            start = clamped_start(code, indices, starts[d], size - max(length, 1))
        whole = d in a["collapsed_slice_dims"] or d in addressing.batching
        positions.append(start if whole else code.add(start, next(offsets)))
    place = Index.at(code, source.shape, positions)
    if source.opcode is Op.CONCATENATE and source.dimensions[0] in starts and is_few(e.view, source):
        return (yield from picked(e, source, place))
    return (yield source, place)


@dataclass(frozen=True, slots=True)
class Scattering:
    """copies: the numbers of the operands that are copied first, as they are not in the place of their results. ahead:
    indices, and updates of one element, that are computed for a block of windows at a time.
    """

    copies: tuple[int, ...]
    ahead: tuple[Instruction, ...]

    @staticmethod
    def of(view: View, results: Results) -> Scattering:
        root, many = results.root, len(results.leaves)
        arrays, indices, updates = root.operands[:many], root.operands[many], root.operands[many + 1 :]
        held = [view.leaves.get(array) == leaf.argument for array, leaf in zip(arrays, results.leaves, strict=True)]
        copies = tuple(n for n, there in enumerate(held) if not there)
        windows = [updates[0].shape.dims[d] for d in root.attributes["update_window_dims"]]
        batch = [n for d, n in enumerate(indices.shape.dims) if d != root.attributes["index_vector_dim"]] or [1]
        if batch[-1] <= FEW or view.by_element:
            return Scattering(copies, ())
        read = dict.fromkeys([indices, *(updates if math.prod(windows) == 1 else ())])
        return Scattering(copies, tuple(i for i in read if _is_made(view, i)))


def _is_made(view: View, instruction: Instruction) -> bool:
    return any(i.opcode in ELEMENTWISE for i in walk([instruction], view.leaves))


class Scatter:
    """A scatter at a kernel's root. Each window of the updates is combined into the results, in order of the batch.

    results: the memory of each result. If it is the operand's memory, the update happens in place. steps: only windows
    at their positions are combined, after a look at all.
    """

    def __init__(
        self,
        e: Elemental,
        instruction: Instruction,
        results: Sequence[Pointer],
        given: Scattering,
        steps: Steps | None = None,
    ):
        self.e, self.instruction, self.results, self.given, self.steps = e, instruction, results, given, steps
        self.shapes = [shape for _, shape in instruction.shape.leaves()]
        many = len(results)
        self.arrays, self.updates = instruction.operands[:many], instruction.operands[many + 1 :]
        self.addressing = Addressing.of(
            instruction,
            instruction.operands[many],
            "scatter_dims_to_operand_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
        )
        a, self.dims = instruction.attributes, self.shapes[0].dims
        self.window_dims: Sequence[int] = a["update_window_dims"]
        gone = {*a["inserted_window_dims"], *self.addressing.batching}
        kept = [d for d in range(len(self.dims)) if d not in gone]
        self.window = {d: self.updates[0].shape.dims[w] for d, w in zip(kept, self.window_dims, strict=True)}

    def emit(self) -> None:
        code = self.e.code
        for n in self.given.copies:
            copy_operand(self.e, self.arrays[n], self.shapes[n], self.results[n], self.steps)
        if not self.updates[0].shape.size:
            return
        *outer, inner = self.addressing.batch_dims or [1]
        loops = [code.loop(size) for size in outer]
        around = [loop.index for loop in loops]
        if self.given.ahead:
            self._update_blocks(around, inner, self.given.ahead)
        else:
            loops.append(code.loop(inner))
            self._update([*around, loops[-1].index][: len(self.addressing.batch_dims)])
        for loop in reversed(loops):
            loop.close()

    def _update_blocks(self, around: Sequence[IndexValue], count: int, ahead: Sequence[Instruction]) -> None:
        """Combine the windows of a row of batch positions. ahead: what is computed for a block of them at a time."""
        e, code = self.e, self.e.code
        with code.loop(count, step=AHEAD, unroll=Unroll.NEVER) as block:
            size = AHEAD if count % AHEAD == 0 else code.minimum(code.subtract(count, block), AHEAD)
            with code.loop(count if count <= AHEAD else size) as fill:
                batch = [*around, code.add(block, fill)]
                held = []
                for instruction, place in self._elements(ahead, batch):
                    value = e.value(instruction, place)
                    held.append(StackArray(code, value, min(AHEAD, count)))
                    held[-1].write(fill, value)
            with code.loop(count if count <= AHEAD else size) as i:
                batch = [*around, code.add(block, i)]
                for (instruction, place), kept in zip(self._elements(ahead, batch), held, strict=True):
                    value = kept.read(i)
                    for register in flatten(value):
                        code.define(register, code.scope)
                    e.bind(instruction, place, value)
                self._update(batch)

    def _elements(
        self, ahead: Sequence[Instruction], batch: Sequence[IndexValue]
    ) -> Iterator[tuple[Instruction, Index]]:
        """What is read at a batch position of these operands."""
        code, within = self.e.code, [0] * len(self.window)
        for instruction in ahead:
            if instruction is self.addressing.indices:
                yield from ((instruction, place) for place in self.addressing.places(code, batch))
            if instruction in self.updates:
                yield instruction, Index.at(code, instruction.shape, self._source(batch, within))

    def _update(self, batch: Sequence[IndexValue]) -> None:
        """Combine the window of one batch position, if it is inside the operand."""
        code, addressing = self.e.code, self.addressing
        starts: dict[int, IndexValue] = {d: batch[b] for d, b in addressing.batching.items()}
        inside: ir.Value | None = None
        numbers = self.e.run(addressing.numbers(self.e, batch))
        for d, number in zip(addressing.components, numbers, strict=True):
            starts[d] = widened_start(code, addressing.indices, number)
            limit = I64(self.dims[d] - self.window.get(d, 1))
            fits = code.b.icmp_unsigned("<=", code.value(starts[d]), limit)  # unsigned: negative starts are too large
            inside = fits if inside is None else code.b.and_(inside, fits)
        if self.steps is not None:
            mine = self._in_steps(self.steps, starts)
            inside = mine if inside is None else code.b.and_(inside, mine)
        if inside is None:
            self._window(batch, starts)
            return
        with code.when(inside):
            self._window(batch, starts)

    def _in_steps(self, steps: Steps, starts: Mapping[int, IndexValue]) -> ir.Value:
        """Whether the step of a window is one of these; of a window that is not inside it may be any."""
        code = self.e.code
        step: IndexValue = 0
        for d in steps.dimensions:
            step = code.add(code.multiply(step, self.dims[d]), starts.get(d, 0))
        count = code.value(code.subtract(steps.end, steps.begin))
        return code.b.icmp_unsigned("<", code.value(code.subtract(step, steps.begin)), count)

    def _window(self, batch: Sequence[IndexValue], starts: Mapping[int, IndexValue]) -> None:
        code, loops = self.e.code, []
        within: dict[int, IndexValue] = {}
        order = [d for d in reversed(self.shapes[0].minor_to_major) if d in self.window]
        for d in order:  # of short rows, LLVM would make vectors across, with gathers
            loops.append(
                code.loop(self.window[d], unroll=over_columns(self.window[d]) if d == order[-1] else Unroll.FREELY)
            )
            within[d] = loops[-1].index
        target = [code.add(starts.get(d, 0), within.get(d, 0)) for d in range(len(self.dims))]
        self._combine(target, self._source(batch, [within[d] for d in sorted(self.window)]))
        for loop in reversed(loops):
            loop.close()

    def _source(self, batch: Sequence[IndexValue], within: Sequence[IndexValue]) -> list[IndexValue]:
        """The position of an element of an update: batch and window positions, each in its dimension."""
        remaining, windows = iter(batch), dict(zip(self.window_dims, within, strict=True))
        rank = self.updates[0].shape.rank
        return [windows[d] if d in windows else next(remaining) for d in range(rank)]

    def _combine(self, target: Sequence[IndexValue], source: Sequence[IndexValue]) -> None:
        e, code = self.e, self.e.code
        places = [
            (p, s.dtype, Index.at(code, s, target).offset(s)) for p, s in zip(self.results, self.shapes, strict=True)
        ]
        new = [e.value(u, Index.at(code, u.shape, source)) for u in self.updates]
        old = [load(code, *place) for place in places]
        value = e.apply(self.instruction.called()[0], [*old, *new])
        values = value if self.instruction.shape.is_tuple else (value,)
        for place, combined in zip(places, values, strict=True):
            store(code, *place, combined)


def refuse(instruction: Instruction) -> NoReturn:
    """Raise UnsupportedError for an op that is supported only as the root of a kernel."""
    raise UnsupportedError(
        "legacy",
        f"{instruction.opcode.value} inside a fusion",
        location=instruction.location,
        remedy=f"let the results of the {instruction.opcode.value} be the fusion's results, each once",
    )


def scatter(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    refuse(instruction)
    yield


RULES: dict[Op, ElementRule] = {Op.GATHER: gather, Op.SCATTER: scatter}
