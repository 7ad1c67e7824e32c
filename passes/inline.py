"""Inline calls, and fusions inside fusions: copy each called computation right to where it ends up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ..hlo.analysis.effects import has_side_effect
from ..hlo.errors import TestbedError
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import CONTROL_PREDECESSORS
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from .rewriting import Names, relink, relink_computation, rename_predecessors, with_attributes

MOST_INSTRUCTIONS = 1_000_000
"""Instructions of one computation after inlining: calls of calls may double with each level."""

_OUTSIDE = frozenset({Op.CALL})
_IN_FUSIONS = frozenset({Op.CALL, Op.FUSION})

Opcodes = frozenset[Op]


def inline_calls(module: Module) -> Module:
    """Replace each call, and each fusion inside a fusion, by the instructions of the called computation.

    Computations that are only called so are dropped. Raises TestbedError for more than MOST_INSTRUCTIONS.
    """
    fused = {c for i in module.instructions() if i.opcode is Op.FUSION for c in i.called()}
    inlined = {c: _IN_FUSIONS if c in fused else _OUTSIDE for c in module.computations}
    if not any(i.opcode in inlined[c] for c in module.computations for i in c.calling):
        return module
    names, kept = Names.of(module), _kept(module.entry, inlined)
    sizes: dict[tuple[Computation, Opcodes], int] = {}
    done: dict[Computation, Computation] = {}
    for computation in module.computations:
        for opcodes in (_OUTSIDE, _IN_FUSIONS):
            sizes[computation, opcodes] = _size(computation, opcodes, sizes)
        if computation not in kept:
            continue
        opcodes = inlined[computation]
        _refuse_too_many(computation, sizes[computation, opcodes])
        if any(i.opcode in opcodes for i in computation.calling):
            done[computation] = _Inlining(computation, opcodes, done, names).run()
        else:
            done[computation] = relink_computation(computation, done)
    return Module(module.name, tuple(done.values()), done[module.entry], module.attributes)


def _kept(entry: Computation, inlined: Mapping[Computation, Opcodes]) -> Collection[Computation]:
    """The entry, and what something other than an inlined op calls."""
    kept, stack = {entry}, [(entry, inlined[entry])]
    seen = set(stack)
    while stack:
        computation, opcodes = stack.pop()
        for i in computation.calling:
            for callee in i.called():
                place = (callee, opcodes if i.opcode in opcodes else inlined[callee])
                if i.opcode not in opcodes:
                    kept.add(callee)
                if place not in seen:
                    seen.add(place)
                    stack.append(place)
    return kept


def _size(computation: Computation, opcodes: Opcodes, sizes: Mapping[tuple[Computation, Opcodes], int]) -> int:
    """Instructions of a computation after inlining. sizes: of the computations that it calls."""
    called = sum(sizes[i.called()[0], opcodes] - 1 for i in computation.calling if i.opcode in opcodes)
    return len(computation.instructions) + called


def _refuse_too_many(computation: Computation, size: int) -> None:
    if size > MOST_INSTRUCTIONS:
        raise TestbedError(
            f"computation {computation.name} has more than {MOST_INSTRUCTIONS:,} instructions with all that it calls",
            remedy="let nested calls not double with each level: use a result again instead of calling twice",
        )


@dataclass(slots=True)
class _Frame:
    """A computation that is being copied. call: what calls it; None for the outermost. steps: what is left of it.

    new, renamed: the copy of each instruction, and its name. effects: what copies with side effects have to wait for.
    result: what the copy of the root has to wait for.
    """

    computation: Computation
    steps: Iterator[Instruction]
    call: Instruction | None = None
    arguments: tuple[Instruction, ...] = ()
    effects: tuple[str, ...] = ()
    result: tuple[str, ...] = ()
    new: dict[Instruction, Instruction] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def waits(self, i: Instruction) -> tuple[str, ...]:
        """The control predecessors that a copy gets besides its own."""
        if has_side_effect(i):
            return tuple(dict.fromkeys(self.effects + (self.result if i is self.computation.root else ())))
        return self.result if i is self.computation.root else ()


class _Inlining:
    """One computation with everything that it calls, depth first with a stack of its own."""

    def __init__(
        self,
        computation: Computation,
        opcodes: Opcodes,
        done: Mapping[Computation, Computation],
        names: Names,
    ):
        self.outer, self.opcodes, self.done, self.names = computation, opcodes, done, names
        self.out: dict[Instruction, None] = {}
        self.stack = [_Frame(computation, iter(computation.instructions))]

    def run(self) -> Computation:
        while True:
            frame = self.stack[-1]
            old = next(frame.steps, None)
            if old is not None:
                self.copy(frame, old)
                continue
            root = frame.new[frame.computation.root]
            if frame.call is None:
                return Computation(self.outer.name, tuple(self.out), root, self.outer.attributes)
            self.stack.pop()
            caller = self.stack[-1]
            caller.new[frame.call] = root
            caller.renamed[frame.call.name] = root.name

    def copy(self, frame: _Frame, old: Instruction) -> None:
        if old.opcode is Op.PARAMETER and frame.call is not None:
            frame.new[old] = frame.arguments[old.parameter_number]
            frame.renamed[old.name] = frame.new[old].name
            return
        operands = tuple(frame.new[o] for o in old.operands)
        if old.opcode in self.opcodes:
            self.enter(frame, old, operands)
            return
        made = old if operands == old.operands else old.replace(operands=operands)
        if frame.call is not None:
            made = made.replace(name=self.names.fresh(old.name))
        made = rename_predecessors(relink(made, self.done), frame.renamed)
        waits = frame.waits(old)
        if waits:
            own = made.attributes.get(CONTROL_PREDECESSORS, ())
            made = with_attributes(made, **{CONTROL_PREDECESSORS: tuple(own) + waits})
        if made.name != old.name:
            frame.renamed[old.name] = made.name
        frame.new[old] = made
        self.out[made] = None

    def enter(self, frame: _Frame, call: Instruction, operands: tuple[Instruction, ...]) -> None:
        own = tuple(frame.renamed.get(n, n) for n in call.attributes.get(CONTROL_PREDECESSORS, ()))
        result = frame.result if call is frame.computation.root else ()
        callee = call.called()[0]
        self.stack.append(_Frame(callee, iter(callee.instructions), call, operands, own + frame.effects, own + result))
