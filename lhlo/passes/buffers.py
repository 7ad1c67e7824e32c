"""Passes on the buffers of a program: copies that nobody needs, steps that nobody reads, reads of nothing."""

from __future__ import annotations

from mlir import ir

from ...hlo.analysis.effects import has_side_effect
from ...planning.plan import AllocationKind, BufferSlice
from ..entry import Entry, entry_of_function
from ..program import Places
from ..read import is_mixed
from ..table import OPCODE
from ..to_hlo import Reader
from .bytes_used import Bytes, is_step, nested, place_of, reads, scratch_of, undefined, writes, written_in
from .canonicalize import functions, make_view


def _entries(module: ir.Operation) -> list[Entry]:
    return [entry_of_function(f) for f in functions(module) if "lhlo.program" in f.attributes]


def _block(entry: Entry) -> ir.Block:
    return entry.function.regions[0].blocks[0]


def results_of(entry: Entry) -> Bytes:
    """The bytes that the caller sees after the program."""
    whole = [a for a in entry.allocations if a.kind is AllocationKind.RESULT or a.result >= 0]
    return Bytes([*(BufferSlice(a.index, 0, a.size) for a in whole), *entry.elsewhere.values()])


# --- steps that nobody reads -----------------------------------------------------------------------------------------
def remove_dead_steps(module: ir.Operation) -> None:
    """Erase kernels and copies whose results no later step reads and no caller sees."""
    for entry in _entries(module):
        dead: list[ir.Operation] = []
        _live_before(_block(entry), results_of(entry), entry.places, dead)
        for op in dead:
            op.erase()


def _live_before(block: ir.Block, after: Bytes, places: Places, dead: list[ir.Operation] | None) -> Bytes:
    """The bytes that are read before they are written, from the start of a block on. dead: gets the steps to erase."""
    live = after.copy()
    for op in reversed([o.operation for o in block.operations]):
        if is_step(op):
            if not any(live.overlaps(p) for p in writes(op, places)) and not _has_effect(op):
                if dead is not None:
                    dead.append(op)
                continue
            for place in writes(op, places):
                live.remove(place)
        elif op.name == "lhlo.while":
            live = _live_before_loop(op, live, places, dead)
        elif op.name == "lhlo.case":
            found = [_live_before(inner, live, places, dead) for inner in nested(op)]
            live = Bytes()
            for one in found:
                live.update(one)
        for place in reads(op, places):
            live.add(place)
    return live


def _live_before_loop(op: ir.Operation, after: Bytes, places: Places, dead: list[ir.Operation] | None) -> Bytes:
    condition, body = nested(op)
    tested = after.copy()
    for place in reads(op, places):
        tested.add(place)
    at_end = tested.copy()  # live after the condition: what the body needs, too
    while True:
        before_condition = _live_before(condition, at_end, places, None)
        grown = tested.copy()
        grown.update(_live_before(body, before_condition, places, None))
        if grown == at_end:
            break
        at_end.update(grown)
    before = _live_before(condition, at_end, places, dead)
    _live_before(body, before, places, dead)
    return before


def _has_effect(op: ir.Operation) -> bool:
    return op.name in OPCODE and has_side_effect(Reader().step(op))


# --- copies ----------------------------------------------------------------------------------------------------------
def forward_copies(module: ir.Operation) -> None:
    """Let steps read the source of a copy instead of its target, while both hold the same bytes.

    A step whose operands change loses its `kernel` name, as its kernel may be another one. remove-dead-steps then
    erases copies that nobody reads.
    """
    for entry in _entries(module):
        _forward(_block(entry), entry, {})


def _forward(block: ir.Block, entry: Entry, held: dict[BufferSlice, tuple[ir.Value, BufferSlice]]) -> None:
    """held: target of a copy → (source memref, its bytes), for copies that still hold at the start of the block."""
    places = entry.places
    for op in [o.operation for o in block.operations]:
        for inner in nested(op):  # a loop's body runs again: what it writes does not hold at its start
            changed = Bytes()
            for each in nested(op):
                changed.update(written_in(each, places))
            _forward(inner, entry, _still(held, changed))
        if is_step(op):
            _read_sources(op, entry, held)
        changed = Bytes(writes(op, places))
        for inner in nested(op):
            changed.update(written_in(inner, places))
        for target in [t for t in held if t not in _still(held, changed)]:
            del held[target]
        if op.name == "memref.copy":
            source, target = (place_of(v, places) for v in op.operands)
            if not source.overlaps(target):
                held[target] = op.operands[0], source


def _still(
    held: dict[BufferSlice, tuple[ir.Value, BufferSlice]], changed: Bytes
) -> dict[BufferSlice, tuple[ir.Value, BufferSlice]]:
    return {t: s for t, s in held.items() if not changed.overlaps(t) and not changed.overlaps(s[1])}


def _read_sources(op: ir.Operation, entry: Entry, held: dict[BufferSlice, tuple[ir.Value, BufferSlice]]) -> None:
    places = entry.places
    holder = op.regions[len(op.regions) - 1].blocks[0].operations[0].operation if is_mixed(op) else op
    count = len(reads(op, places))
    own = Bytes(writes(op, places))
    for number in range(count):
        value = holder.operands[number]
        place = place_of(value, places)
        if place not in held or own.overlaps(place) or own.overlaps(held[place][1]):
            continue
        source = held[place][0]
        if source.type != value.type:
            source = make_view(source, 0, value.type, _after(source, entry))
        holder.operands[number] = source
        if "kernel" in op.attributes:
            del op.attributes["kernel"]


def _after(value: ir.Value, entry: Entry) -> ir.InsertionPoint:
    """Directly behind the memref, so that the new view is known wherever the memref is."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


# --- checks ----------------------------------------------------------------------------------------------------------
def check_buffers(module: ir.Operation) -> None:
    """Raise VerificationError for a step that reads bytes which no way to it has written."""
    for entry in _entries(module):
        known = [a for a in entry.allocations if a.kind in (AllocationKind.PARAMETER, AllocationKind.CONSTANT)]
        _written_after(_block(entry), Bytes(BufferSlice(a.index, 0, a.size) for a in known), entry.places)


def _written_after(block: ir.Block, before: Bytes, places: Places) -> Bytes:
    """The bytes that have a value at the end of a block, on every way there."""
    known = before.copy()
    for op in [o.operation for o in block.operations]:
        if op.name == "lhlo.while":
            condition, body = nested(op)
            known = _written_after(condition, known, places)
            _need(op, known, places)
            _written_after(body, known, places)  # the condition runs on more than it had at first
            continue
        _need(op, known, places)
        if op.name == "lhlo.case":
            ends = [_written_after(inner, known, places) for inner in nested(op)]
            known = ends[0]
            for end in ends[1:]:
                known.keep(end)
        for place in writes(op, places):
            known.add(place)
        if (scratch := scratch_of(op)) is not None:
            known.remove(scratch)
    return known


def _need(op: ir.Operation, known: Bytes, places: Places) -> None:
    for place in reads(op, places):
        if not known.contains(place):
            raise undefined(op, place)
