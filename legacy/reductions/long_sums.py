"""Long sums of floats as partial sums of fixed size and order, whatever the target and LLVM's cost model.

The fastest dimension is read in lines. Element j of a line goes to lane j of the innermost partial sums. After a fixed
number of terms a lane is added to the same lane of the partial sums outside and starts again, and so on at every level:
no chain of additions is longer than that, and errors grow with the logarithm of the length. In the end the lanes are
added in pairs. They are adjacent in memory and independent, so LLVM makes vectors of any width without reordering
anything. Columns, which are adjacent themselves, have one partial sum a level each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll, over_columns
from ..core.registers import I32, Register, flatten, real_constant, shuffled, splat, unflatten
from ..core.stack import alloca

TERMS = 32
"""Terms of a partial sum. Of 32 additions in a row, the error is about 2**-24 · √32 / 3 = 1.1e-7 in f32."""

OUTSIDE = 16
"""Terms, which are partial sums themselves, of a column's partial sum: it has no lanes whose errors balance each other,
and these additions are rare.
"""

LINES, BALANCED = 64, 16
"""Terms of a partial sum if there are BALANCED lanes or more, whose errors balance each other."""

LEAST_DIGIT = 4
"""Fewer further terms are not worth a loop of their own in the same partial sum."""

LINE_BYTES = 256
"""Bytes of a line's lanes: four vectors of the widest target, so that additions need not wait for each other."""

WIDEST = 64
"""Bytes of a vector of the widest target."""

CHUNK = 64
"""Partial sums that are started, or added to those outside them, as one vector."""

FEW_CHUNKS = 4
"""Up to this number, chunks are treated without a loop."""

UNBOUNDED = 1 << 62
"""A number of terms for sums that are not divided."""


@dataclass(frozen=True, slots=True)
class Level:
    """A loop along a dimension in steps of `span`, inside the loops of larger spans along it.

    apart: what is inside has partial sums of its own, which each iteration ends by adding to those outside.
    """

    dimension: int
    span: int
    apart: bool


def levels_of(
    sizes: Sequence[int], terms: int = 1, most: int = TERMS, outside: int | None = None
) -> tuple[list[Level], int]:
    """(loops over dimensions, the slowest first, so that a partial sum has about `most` terms; terms of the outermost).

    terms: of what is inside the innermost loop. outside: for the partial sums that are made of others, if not `most`.
    """
    found: list[Level] = []
    for dimension in reversed(range(len(sizes))):
        left, span = sizes[dimension], 1
        while left > 1:
            room, apart = _digit(left, most // terms), False
            if left > room and room < LEAST_DIGIT and terms > 1:
                most = outside or most
                room, apart, terms = _digit(left, most), True, 1
            count = min(left, room)
            found.append(Level(dimension, span, apart))
            terms *= count
            span, left = span * count, -(-left // count)
    return found[::-1], terms


def _digit(count: int, most: int) -> int:
    """The terms of the innermost level: `most`, or fewer that divide the count into no more levels."""
    if count <= most or most < 2:
        return min(count, most)
    digits = 2
    while most**digits < count:
        digits += 1
    least = next(base for base in range(2, most + 1) if base**digits >= count)
    return next((base for base in range(most, least - 1, -1) if count % base == 0), most)


def lanes_of(fast: int, widest: int) -> int:
    """The number of lanes for `fast` elements of at most `widest` bytes: a power of two."""
    most = LINE_BYTES // widest
    if fast % most == 0 or fast >= 4 * most:
        return most
    if fast >= most:
        return most // 2
    return min(most // 4, 1 << (fast - 1).bit_length())


class PartialArrays:
    """Partial sums of several quantities for `width` neighbours, at several levels, on the stack.

    starts: for each quantity the value with which its partial sums start; with more than one level, of floats.
    """

    def __init__(self, code: Code, starts: Sequence[Register], width: int):
        self.code, self.starts, self.width = code, list(starts), width
        self.zeros = [register for start in starts for register in flatten(start)]
        self.types = [register.type for register in self.zeros]
        self.levels: list[list[ir.Value]] = []
        self.depth, self.count, self.chunk = -1, width, 1

    def read(self, place: IndexValue) -> list[Register]:
        """The innermost partial sums at a place."""
        registers = [self.code.b.load(slot, typ=slot_type) for slot, slot_type in self._slots(place)]
        return [unflatten(start, registers) for start in self.starts]

    def write(self, place: IndexValue, values: Sequence[Register]) -> None:
        registers = [r for value in values for r in flatten(value)]
        for (slot, _), register in zip(self._slots(place), registers, strict=True):
            self.code.b.store(register, slot)

    def get_vector(self, place: IndexValue, lanes: int) -> ir.Value:
        """The innermost partial sums of one quantity at neighbouring places."""
        (space,), (type_,) = self.levels[self.depth], self.types
        slot = self._at(space, type_, place)
        return self.code.b.load(slot, typ=_vector(type_, lanes), align=_alignment(type_, lanes & -lanes))

    def put_vector(self, place: IndexValue, vector: ir.Value, add: bool) -> None:
        """Set the innermost partial sums of one quantity at neighbouring places, or add to them."""
        b, (space,), (type_,) = self.code.b, self.levels[self.depth], self.types
        slot, align = self._at(space, type_, place), _alignment(type_, vector.type.count & -vector.type.count)
        b.store(b.fadd(b.load(slot, typ=vector.type, align=align), vector) if add else vector, slot, align=align)

    def innermost(self) -> ir.Value:
        """The address of the innermost partial sums of one quantity."""
        (space,) = self.levels[self.depth]
        return space

    def start(self, count: int | None = None, row: int | None = None, clear: bool = True) -> None:
        """Start the outermost partial sums of the first `count` neighbours, which are in rows of `row`. clear: False if
        they are written before they are read.
        """
        self.depth, self.count = -1, self.width if count is None else count
        self.chunk = min(CHUNK, 1 << ((row or self.count) - 1).bit_length())
        self.enter(clear)

    def enter(self, clear: bool = True) -> None:
        """Start new partial sums inside the current ones."""
        self.depth += 1
        if self.depth == len(self.levels):
            self.levels.append([alloca(self.code, type_, _padded(self.width)) for type_ in self.types])
        for zero, space in zip(self.zeros, self.levels[self.depth], strict=True) if clear else ():
            for place, lanes in self._chunks(zero.type):
                slot = self._at(space, zero.type, place)
                self.code.b.store(_splat(self.code, zero, lanes), slot, align=_alignment(zero.type, lanes))

    def leave(self) -> None:
        """Add the innermost partial sums to those outside them."""
        self.depth -= 1
        for type_, target, source in zip(self.types, self.levels[self.depth], self.levels[self.depth + 1], strict=True):
            for place, lanes in self._chunks(type_):
                b, align = self.code.b, _alignment(type_, lanes)
                slots = [self._at(space, type_, place) for space in (target, source)]
                first, second = (b.load(slot, typ=_vector(type_, lanes), align=align) for slot in slots)
                b.store(b.fadd(first, second), slots[0], align=align)

    def _chunks(self, type_: ir.Type) -> Iterator[tuple[IndexValue, int]]:
        """(The first, the number) of neighbours that are treated as one vector of LLVM; beyond the last one is space.

        This takes less time to compile than a loop of scalars, and a few vectors without a loop stay in registers.
        """
        lanes = self.chunk if isinstance(type_, ir.FloatType | ir.DoubleType) else 1
        end = -(-self.count // lanes) * lanes
        if lanes > 1 and end <= FEW_CHUNKS * lanes:
            # One value of all would be taken apart and joined again for each of the target's vectors.
            least = min(lanes, WIDEST // _bytes(type_)) if end * _bytes(type_) <= LINE_BYTES else lanes
            yield from ((place, least) for place in range(0, end, least))
            return
        with self.code.loop(end, step=lanes, unroll=Unroll.DONE if lanes > 1 else over_columns(end)) as i:
            yield i, lanes

    def _slots(self, place: IndexValue) -> list[tuple[ir.Value, ir.Type]]:
        spaces = zip(self.levels[self.depth], self.types, strict=True)
        return [(self._at(space, type_, place), type_) for space, type_ in spaces]

    def _at(self, space: ir.Value, type_: ir.Type, place: IndexValue) -> ir.Value:
        return self.code.b.gep(space, [self.code.value(place)], inbounds=True, source_etype=type_)

    @contextmanager
    def loops(
        self,
        levels: Sequence[Level],
        sizes: Sequence[int],
        positions: list[IndexValue],
        steps: int = 1,
        unroll: Unroll = Unroll.NEVER,
    ) -> Iterator[None]:
        """Loops over dimensions of these sizes. They set the first entries of `positions`, times `steps`."""
        code, opened = self.code, []
        ends: list[IndexValue] = list(sizes)
        positions[: len(sizes)] = [0] * len(sizes)
        for level in levels:
            d = level.dimension
            loop = code.loop(ends[d], step=level.span, unroll=unroll)
            opened.append(loop)
            whole = isinstance(ends[d], int) and ends[d] % level.span == 0
            ends[d] = level.span if whole else code.minimum(code.subtract(ends[d], loop.index), level.span)
            positions[d] = code.add(positions[d], code.multiply(loop.index, steps))
            if level.apart:
                self.enter()
        yield
        for level, loop in zip(reversed(levels), reversed(opened), strict=True):
            if level.apart:
                self.leave()
            loop.close()


class PartialSums(PartialArrays):
    """The sums of several quantities over the same elements, in the lanes of lines.

    sizes: of the dimensions that are reduced, the slowest first; not empty, none of them 0.
    """

    def __init__(
        self,
        code: Code,
        starts: Sequence[Register],
        sizes: Sequence[int],
        most: int | None = None,
        expensive: bool = False,
    ):
        """most: lines whose elements are combined in a lane, if they are not added to other sums. expensive: elements
        take much code, of which LLVM makes a copy for each vector of a line: it has half of the lanes.
        """
        widest = max(8 if isinstance(r.type, ir.DoubleType) else 4 for start in starts for r in flatten(start))
        lanes = lanes_of(sizes[-1], widest)
        super().__init__(code, starts, lanes // 2 if expensive and lanes > BALANCED else lanes)
        self.sizes, self.lane = list(sizes), 0
        self.most = most or (LINES if self.width >= BALANCED else TERMS)
        self.positions: list[IndexValue] = [0] * len(sizes)

    def steps(self, ahead: Callable[[Sequence[IndexValue]], None] | None = None) -> Iterator[list[Register]]:
        """Open the loops, yield the accumulators of the current element, whose place is in `positions`, and close them.
        `put` must be called for each. There are up to two bodies: of whole lines, and of the rest. ahead: called with
        the place of each whole line, outside the loop over it.
        """
        self.start()
        lines, rest = divmod(self.sizes[-1], self.width)
        inner, terms = levels_of([lines], 1, self.most)
        outer, _ = levels_of(self.sizes[:-1], terms + (1 if rest and lines else 0), self.most)
        with self.loops(outer, self.sizes[:-1], self.positions):
            if lines:
                line: list[IndexValue] = [0]
                with self.loops(inner, [lines], line, self.width):
                    if ahead:
                        ahead([*self.positions[:-1], line[0]])
                    yield from self._line(line[0], self.width)
            if rest:
                yield from self._line(lines * self.width, rest)

    def _line(self, start: IndexValue, width: int) -> Iterator[list[Register]]:
        with self.code.loop(width, unroll=over_columns(width)) as i:
            self.positions[-1], self.lane = self.code.add(start, i), i
            yield self.read(i)

    def put(self, values: Sequence[Register]) -> None:
        """Set the accumulators of the current element."""
        self.write(self.lane, values)

    def add_lines(
        self,
        begin: IndexValue,
        end: IndexValue,
        lines: int,
        add: Callable[[IndexValue, IndexValue], None],
        fetch: Callable[[IndexValue], None],
    ) -> None:
        """Call add(start of a line, lane) in loops over whole lines, `lines` of which have partial sums of their own.
        fetch: called for each line before.
        """
        code, width = self.code, self.width
        with code.range(begin, end, width * lines, unroll=Unroll.NEVER) as block:
            self.enter()
            left = code.minimum(code.subtract(end, block), width * lines)
            with code.loop(left, step=width, unroll=Unroll.NEVER) as line:
                start = code.add(block, line)
                fetch(start)
                with code.loop(width, unroll=Unroll.VECTORS) as lane:
                    add(start, lane)
            self.leave()

    def totals(self) -> list[Register]:
        """The sums over all elements, after `steps`."""
        found = [self._tree(type_, space, 1)[0] for type_, space in zip(self.types, self.levels[0], strict=True)]
        return [unflatten(start, found) for start in self.starts]

    def of_columns(self, count: int) -> list[ir.Value]:
        """The sums of every `count`-th element, of one quantity, as registers or vectors."""
        (type_,), (space,) = self.types, self.levels[0]
        return self._tree(type_, space, count)

    def _tree(self, type_: ir.Type, space: ir.Value, count: int) -> list[ir.Value]:
        """The sums of lanes whose numbers differ by multiples of `count`."""
        lanes = min(self.width, WIDEST // _bytes(type_))
        vector, align = _vector(type_, lanes), _alignment(type_, lanes)
        slots = [self._at(space, type_, place) for place in range(0, self.width, lanes)]
        parts = [self.code.b.load(slot, typ=vector, align=align) for slot in slots]
        while len(parts) * lanes > max(lanes, count):
            half = len(parts) // 2
            parts = [self.code.b.fadd(*pair) for pair in zip(parts[:half], parts[half:], strict=True)]
        while lanes > count:
            lanes //= 2
            parts = [self._halves(parts[0], lanes)]
        return parts

    def _halves(self, vector: ir.Value, lanes: int) -> ir.Value:
        """The first `lanes` elements of a vector plus the others; one register for one lane."""
        b = self.code.b
        if lanes == 1:
            return b.fadd(b.extract_element(vector, I32(0)), b.extract_element(vector, I32(1)))
        return b.fadd(*(shuffled(b, vector, range(first, first + lanes)) for first in (0, lanes)))


def _padded(width: int) -> int:
    return -(-width // CHUNK) * CHUNK if width > CHUNK else 1 << (width - 1).bit_length()


def _vector(type_: ir.Type, lanes: int) -> ir.Type:
    return ir.VectorType(type_, lanes) if lanes > 1 else type_


def _alignment(type_: ir.Type, lanes: int) -> int | None:
    """The alignment in bytes of `lanes` neighbours; None for that of one."""
    return min(64, _bytes(type_) * lanes) if lanes > 1 else None


def _bytes(type_: ir.Type) -> int:
    return {ir.FloatType: 4, ir.DoubleType: 8}.get(type(type_), 1)


def nothing(like: Register) -> Register:
    """The sum of no floats, of the form of `like`: −0, because 0 + −0 is 0."""
    return unflatten(like, [real_constant(register.type, -0.0) for register in flatten(like)])


def added(code: Code, a: Register, b: Register) -> Register:
    """a + b of floats, in this order."""
    return unflatten(a, [code.b.fadd(x, y) for x, y in zip(flatten(a), flatten(b), strict=True)])


def _splat(code: Code, value: ir.Value, lanes: int) -> ir.Value:
    """A vector of `lanes` times the value; the value for one."""
    return value if lanes == 1 else splat(code.b, value, lanes)
