"""Draws loops over tables: each step reads some places of a table, old and new ones, and writes others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .folds import region_of
from .program import Body
from .values import Value

LENGTHS = (3, 4, 5, 7, 9)
RESTS: tuple[tuple[int, ...], ...] = ((), (3,), (8,), (17,), (70,), (2, 3), (4, 8), (600,))
"""Dimensions of a table besides the one that the loop counts along."""


class TableStep:
    """One step of a loop: the versions of each table so far, and where along `axis` the step may read and write."""

    def __init__(self, inner: Body, tables: Sequence[Value], axis: int, counter: Value, places: Value) -> None:
        self.inner, self.draw, self.axis = inner, inner.source, axis
        self.versions = [[t] for t in tables]
        self.counter, self.places = counter, places
        dims = tables[0].dims
        self.sizes = tuple(1 if d == axis else self.draw.choice((n, n, n, 1)) for d, n in enumerate(dims))
        if dims[axis] > 3 and self.draw.chance(15):
            self.sizes = tuple(2 if d == axis else n for d, n in enumerate(self.sizes))

    def _scalar(self, number: int) -> Value:
        return self.inner.scalar(DType.S32, number)

    def _place(self) -> Instruction:
        """Of the counter, one beside it, one that data names, or a constant; some lie beside the table."""
        kind, made = self.draw.integer(0, 9), self.counter.instruction
        if kind < 6:
            by = (0, 0, -1, -1, 1, -2)[kind]
            if not by:
                return made
            return self.inner.instruction(Op.ADD, (made, self._scalar(by).instruction), made.shape)
        if kind < 9:
            one = Shape(DType.S32, (1,))
            read = (self.places.instruction, made)
            found = self.inner.instruction(Op.DYNAMIC_SLICE, read, one, dynamic_slice_sizes=(1,))
            return self.inner.instruction(Op.RESHAPE, (found,), Shape(DType.S32))
        return self._scalar(self.draw.integer(-1, 9)).instruction

    def _starts(self) -> list[Instruction]:
        """A place along the axis, and 0 elsewhere; where the part is smaller than the table, sometimes another one."""
        found = []
        for d, size in enumerate(self.sizes):
            anywhere = d == self.axis or (size < self.versions[0][0].dims[d] and self.draw.chance(50))
            found.append(self._place() if anywhere else self._scalar(0).instruction)
        return found

    def read(self) -> None:
        """A part of any version of a table: what was overwritten since has to be copied or read before."""
        versions = self.draw.choice(self.versions)
        table = versions[-1] if self.draw.chance(40) else self.draw.choice(versions)
        shape = Shape(table.dtype, self.sizes)
        how = {"dynamic_slice_sizes": self.sizes}
        made = self.inner.instruction(Op.DYNAMIC_SLICE, (table.instruction, *self._starts()), shape, **how)
        self.inner.keep(made, exact=False)

    def write(self) -> None:
        versions = self.draw.choice(self.versions)
        table = versions[-1] if self.draw.chance(90) else versions[0]
        update = self.inner.of(table.dtype, self.sizes)
        shape = table.instruction.shape
        if len(table.dims) == 1 and self.sizes == (1,) and self.draw.chance(40):
            made = self._scattered(table, update)
        else:
            read = (table.instruction, update.instruction, *self._starts())
            made = self.inner.instruction(Op.DYNAMIC_UPDATE_SLICE, read, shape)
        if self.draw.chance(20):
            made = self._selected(made, table)
        versions.append(self.inner.keep(made, exact=False))

    def _scattered(self, table: Value, update: Value) -> Instruction:
        index = self.inner.instruction(Op.RESHAPE, (self._place(),), Shape(DType.S32, (1,)))
        element = self.inner.instruction(Op.RESHAPE, (update.instruction,), Shape(table.dtype))
        return self.inner.instruction(
            Op.SCATTER,
            (table.instruction, index, element),
            table.instruction.shape,
            to_apply=region_of(self.inner, Op.MAXIMUM if not table.dtype.is_complex else Op.ADD, table.dtype),
            update_window_dims=(),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=0,
        )

    def _selected(self, made: Instruction, table: Value) -> Instruction:
        """The new version or the old one, whole."""
        limit = self._scalar(self.draw.integer(0, 3)).instruction
        read = (self.counter.instruction, limit)
        test = self.inner.instruction(Op.COMPARE, read, Shape(DType.PRED), direction="NE")
        values = (made, table.instruction) if self.draw.chance(70) else (table.instruction, made)
        return self.inner.instruction(Op.SELECT, (test, *values), table.instruction.shape)


def draw_step(inner: Body, state: Sequence[Value], axis: int, grow: Callable[[Body, int], None]) -> list[Instruction]:
    """Add a step to a loop's body. state: counter, places, tables. Returns the tables' new values."""
    draw, step = inner.source, TableStep(inner, state[2:], axis, state[0], state[1])
    step.read()
    for kind in [draw.integer(0, 9) for _ in range(draw.integer(1, 6))]:
        if kind < 4:
            step.read()
        elif kind < 6:
            grow(inner, 1)
        else:
            step.write()
    step.write()
    return [versions[-1].instruction for versions in step.versions]


def drawn_tables(body: Body) -> tuple[list[Value], int]:
    """(Places and the tables of a loop, the axis along which it counts); places are rather not far beside a table."""
    draw = body.source
    length, rest = draw.choice(LENGTHS), draw.choice(RESTS)
    axis = draw.choice((0, 0, len(rest)))
    dims = (*rest[:axis], length, *rest[axis:])
    dtype = draw.choice(body.program.types)
    tables = [body.of(dtype, dims) for _ in range(draw.choice((1, 1, 2)))]
    if draw.chance(50):
        places = body.constant(DType.S32, (length,), [draw.integer(-2, length + 1) for _ in range(length)])
    else:
        places = body.of(DType.S32, (length,))
    return [places, *tables], axis
