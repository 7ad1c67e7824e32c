"""Edits that turn a module into another valid one: operands, opcodes, attributes, constants, layouts, sizes, types.

An edit takes its choices from a source. It raises LookupError where it finds nothing to edit; what it makes may be
invalid. In modules with loops integer scalars are not changed, so that the loops end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...hlo.attributes import PadDim, SliceDim, Window
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Literal, Module, expand
from ...hlo.opclasses import IMPURE, control_computations
from ...hlo.opcodes import Op
from ...hlo.opset import BINARY, OPSET, UNARY
from ...hlo.shapes import Shape, tuple_shape
from ...passes.rewriting import Names, rebuild, with_attributes
from ..reduce.case import Small
from ..reduce.sizes import resized, retyped
from .elementwise import DIRECTIONS
from .source import Source
from .values import FLOATS, SIGNED, UNSIGNED

Add = Callable[[Instruction], Instruction]
Edit = Callable[[Module, Source], Module]

KEPT = IMPURE | {Op.PARAMETER, Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.WHILE, Op.CONDITIONAL, Op.AFTER_ALL, Op.CONSTANT}
PREDICATES = {Op.IS_FINITE, Op.COMPARE}
ARITHMETIC = (UNARY | BINARY) - PREDICATES
"""Unary and binary ops whose result has their operands' type, or its real or complex one."""

WILD = {Op.POWER, Op.TAN, Op.CBRT, Op.RSQRT, Op.LOG, Op.DIVIDE, Op.REMAINDER, Op.ATAN2, Op.MULHI, Op.SINH, Op.COSH}
"""Ops that never replace others: their results grow or jump for small changes of an operand."""


def _places(module: Module, wanted: Callable[[Instruction], bool]) -> list[tuple[Computation, Instruction]]:
    """Instructions that may be edited: those outside reducers and other scalar regions."""
    looped = Op.WHILE in module.opcodes
    host = control_computations(module)
    return [
        (c, i)
        for c in host
        for i in c.instructions
        if wanted(i) and not (looped and i.shape.is_array and not i.shape.rank and i.shape.dtype.is_integer)
    ]


def _edited(module: Module, where: Computation, change: Callable[[Instruction, Add], Instruction | None]) -> Module:
    return rebuild(module, lambda c: expand(c, change) if c.name == where.name else c)


def _plain(i: Instruction) -> bool:
    return i.shape.is_array and not i.shape.is_dynamic and i.opcode not in KEPT


def swap_operand(module: Module, draw: Source) -> Module:
    """Replace an operand by another value of the same shape."""
    where, chosen = draw.choice(_places(module, lambda i: _plain(i) and bool(i.operands)))
    number = draw.integer(0, len(chosen.operands) - 1)
    old = chosen.operands[number]
    before = where.instructions[: where.instructions.index(chosen)]
    other = draw.choice([i for i in before if i is not old and i.shape == old.shape and i.shape.is_array])
    names = [*(o.name for o in chosen.operands[:number]), other.name, *(o.name for o in chosen.operands[number + 1 :])]
    made: dict[str, Instruction] = {}

    def change(i: Instruction, add: Add) -> Instruction | None:
        if i.name == chosen.name:
            return i.replace(operands=tuple(made.get(n, o) for n, o in zip(names, i.operands, strict=True)))
        made[i.name] = i
        return None

    return _edited(module, where, change)


def other_op(module: Module, draw: Source) -> Module:
    """Replace an elementwise op by another one of the same signature, or change the direction of a comparison."""

    def alike(i: Instruction) -> list[Op]:
        row = OPSET[i.opcode]
        if i.opcode not in ARITHMETIC:
            return []
        if any(o.shape.dtype is not i.shape.dtype for o in i.operands) or i.shape.dtype.is_complex:
            return []
        return [
            o
            for o, r in OPSET.items()
            if o in ARITHMETIC and (r.family, r.low) == (row.family, row.low) and i.shape.dtype in r.dtypes
            and o not in WILD | {Op.COMPLEX, Op.REAL, Op.IMAG, i.opcode}
        ]  # fmt: skip

    where, chosen = draw.choice(
        _places(module, lambda i: i.shape.is_array and (i.opcode is Op.COMPARE or (_plain(i) and bool(alike(i)))))
    )
    if chosen.opcode is Op.COMPARE and Op.WHILE not in module.opcodes:
        now = chosen.attributes["direction"]
        made = with_attributes(chosen, direction=draw.choice([d for d in DIRECTIONS if d != now]))
    else:
        made = chosen.replace(opcode=draw.choice(alike(chosen)), attributes={})
    return _edited(module, where, lambda i, _: made.replace(operands=i.operands) if i.name == chosen.name else None)


def special_constant(module: Module, draw: Source) -> Module:
    """Replace some or all elements of a constant by values that incorrect rewrites often get wrong."""
    where, chosen = draw.choice(
        _places(module, lambda i: i.opcode is Op.CONSTANT and not i.literal.is_elided and i.shape.size < 10_000)
    )
    dtype, array = chosen.shape.dtype, np.array(chosen.literal.array)
    if not array.size:
        return module
    values = _special(dtype)
    count = array.size if draw.chance(30) else draw.integer(1, min(3, array.size))
    one = draw.choice(values)
    for at in draw.sample(range(array.size), count):
        array.reshape(-1)[at] = one if count == array.size else draw.choice(values)
    literal = Literal(chosen.shape, array)
    return _edited(module, where, lambda i, _: with_attributes(i, literal=literal) if i.name == chosen.name else None)


def _special(dtype: DType) -> list:
    if dtype is DType.PRED:
        return [False, True]
    if dtype.is_integer:
        least, most = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if dtype.is_signed else (0, 2**dtype.bits - 1)
        return [np.array(v).astype(dtype.numpy)[()] for v in (0, 1, 2, least, most)]
    numbers = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, *((np.inf, -np.inf, np.nan) if dtype.bits > 8 else ()))
    return [np.array(v).astype(dtype.numpy)[()] for v in numbers]


def twin(module: Module, draw: Source) -> Module:
    """Duplicate an instruction; some of its users read the copy."""
    where, chosen = draw.choice(_places(module, lambda i: _plain(i) and len(i.operands) > 0))
    name = Names.of(module).fresh(chosen.name)
    readers = {u.name for u in where.users[chosen] if draw.chance(50)}
    pair: dict[str, Instruction] = {}

    def change(i: Instruction, add: Add) -> Instruction | None:
        if i.name == chosen.name:
            pair["old"], pair["new"] = i, add(i.replace(name=name))
            return None
        if i.name in readers:
            return i.replace(operands=tuple(pair["new"] if o is pair["old"] else o for o in i.operands))
        return None

    return _edited(module, where, change)


def _order(draw: Source, shape: Shape) -> Shape:
    return shape.with_layout(tuple(draw.sample(range(shape.rank), shape.rank)))


def other_layout(module: Module, draw: Source) -> Module:
    """Change the layout of a parameter or of another instruction's result."""
    free = {Op.PARAMETER} | (OPSET.keys() - KEPT - {Op.BITCAST, Op.SORT})
    inside = module.entry.name

    def wanted(i: Instruction) -> bool:
        return i.opcode in free and i.shape.is_array and i.shape.rank > 1 and not i.shape.is_dynamic

    places = [(c, i) for c, i in _places(module, wanted) if i.opcode is not Op.PARAMETER or c.name == inside]
    where, chosen = draw.choice(places)
    shape = _order(draw, chosen.shape)

    def change(i: Instruction, add: Add) -> Instruction | None:
        if i.name != chosen.name:
            return None
        made = i.replace(shape=shape)
        if i is where.root or i.opcode is not Op.PARAMETER:  # shapes that callers and tuples see stay unchanged
            name = Names.of(module).fresh(f"{i.name}.turned")
            return Instruction(Op.COPY, i.name, i.shape, (add(made.replace(name=name)),))
        return made

    return _edited(module, where, change)


def there_and_back(module: Module, draw: Source) -> Module:
    """Insert ops after a value that cancel each other."""
    where, chosen = draw.choice(_places(module, lambda i: _plain(i) and i.shape.rank > 0))
    shape, names = chosen.shape, Names.of(module)
    kind = draw.choice(("transpose", "reshape", "reverse", "layout", "twice", "barrier", "pad"))

    def change(i: Instruction, add: Add) -> Instruction | None:
        if i.name != chosen.name:
            return None

        def op(opcode: Op, shape: Shape, x: Instruction, **attributes: object) -> Instruction:
            return Instruction(opcode, names.fresh(f"{i.name}.edit"), shape, (x,), attributes)

        x, rank, dims = add(i.replace(name=names.fresh(f"{i.name}.first"))), shape.rank, shape.dims
        if kind == "transpose":
            order = draw.sample(range(rank), rank)
            turned = add(op(Op.TRANSPOSE, _array(shape, [dims[d] for d in order]), x, dimensions=tuple(order)))
            last = op(Op.TRANSPOSE, shape, turned, dimensions=tuple(int(n) for n in np.argsort(order)))
        elif kind == "reshape":
            last = op(Op.RESHAPE, shape, add(op(Op.RESHAPE, _array(shape, [shape.size]), x)))
        elif kind == "reverse":
            over = tuple(sorted(draw.sample(range(rank), draw.integer(1, rank))))
            last = op(Op.REVERSE, shape, add(op(Op.REVERSE, shape, x, dimensions=over)), dimensions=over)
        elif kind == "layout":
            last = op(Op.COPY, shape, add(op(Op.COPY, _order(draw, shape), x)))
        elif kind == "barrier":
            last = op(Op.OPT_BARRIER, shape, x)
        elif shape.dtype is DType.PRED or shape.dtype.is_integer:
            last = op(Op.NOT, shape, add(op(Op.NOT, shape, x)))
        else:
            last = op(Op.NEGATE, shape, add(op(Op.NEGATE, shape, x)))
        return last.replace(name=i.name)

    return _edited(module, where, change)


def _array(shape: Shape, dims: Sequence[int]) -> Shape:
    return Shape(shape.dtype, tuple(dims))


def more_results(module: Module, draw: Source) -> Module:
    """Make a value inside the entry a result as well."""
    entry = module.entry
    fit = [i for i in entry.instructions if i.shape.is_array and not i.shape.is_dynamic and i is not entry.root]
    chosen = draw.choice(fit)
    values = (entry.root, chosen) if draw.chance(50) else (chosen, entry.root)
    name = Names.of(module).fresh("more")
    root = Instruction(Op.TUPLE, name, tuple_shape(*(v.shape for v in values)), values)
    new = Computation(entry.name, (*entry.instructions, root), root, entry.attributes)
    attributes = {k: v for k, v in module.attributes.items() if k == "is_scheduled"}
    return Module(module.name, tuple(new if c is entry else c for c in module.computations), new, attributes)


def other_attribute(module: Module, draw: Source) -> Module:
    """Change an attribute on which the shape does not depend."""
    where, chosen = draw.choice(_places(module, lambda i: _plain(i) and i.opcode in ATTRIBUTES))
    changes = ATTRIBUTES[chosen.opcode](chosen, draw)
    if all(chosen.attributes.get(key) == value for key, value in changes.items()):
        raise LookupError("the attribute has no other value")
    return _edited(module, where, lambda i, _: with_attributes(i, **changes) if i.name == chosen.name else None)


def _reversed(i: Instruction, draw: Source) -> dict[str, Any]:
    return {"dimensions": tuple(sorted(draw.sample(range(i.shape.rank), draw.integer(1, i.shape.rank))))}


def _counted(i: Instruction, draw: Source) -> dict[str, Any]:
    return {"iota_dimension": draw.integer(0, i.shape.rank - 1)}


def _rounded(i: Instruction, draw: Source) -> dict[str, Any]:
    return {"exponent_bits": draw.integer(2, 11), "mantissa_bits": draw.integer(1, 23)}


def _shifted(i: Instruction, draw: Source) -> dict[str, Any]:
    """A slice of the same size elsewhere in its operand."""
    dims = []
    for cut, size in zip(i.attributes["slice"], i.operands[0].shape.dims, strict=True):
        start = draw.integer(0, size - (cut.limit - cut.start))
        dims.append(SliceDim(start, start + cut.limit - cut.start, cut.stride))
    return {"slice": tuple(dims)}


def _moved(i: Instruction, draw: Source) -> dict[str, Any]:
    """As much padding, more of it on the other side."""
    by = [draw.integer(0, 2) - 1 for _ in i.attributes["padding"]]
    moved = zip(i.attributes["padding"], by, strict=True)
    return {"padding": tuple(PadDim(d.low + n, d.high - n, d.interior) for d, n in moved)}


def _window(i: Instruction, draw: Source) -> dict[str, Any]:
    """A window that begins elsewhere, or reads a kernel backwards."""
    dims, may_turn = [], i.opcode is Op.CONVOLUTION
    for d in i.attributes["window"].dims:
        by = draw.integer(0, 2) - 1
        turned = d.reverse ^ (may_turn and draw.chance(30))
        dims.append(replace(d, pad_low=d.pad_low + by, pad_high=d.pad_high - by, reverse=turned))
    return {"window": Window(tuple(dims))}


def _permuted(i: Instruction, draw: Source) -> dict[str, Any]:
    """Another permutation with the same result's shape, where sizes are equal."""
    sizes = i.operands[0].shape.dims
    order = draw.sample(range(len(sizes)), len(sizes))
    if tuple(sizes[d] for d in order) != i.shape.dims:
        raise LookupError("another permutation has another shape")
    return {"dimensions": tuple(order)}


ATTRIBUTES: dict[Op, Callable[[Instruction, Source], dict[str, Any]]] = {
    Op.REVERSE: _reversed,
    Op.IOTA: _counted,
    Op.REDUCE_PRECISION: _rounded,
    Op.SLICE: _shifted,
    Op.PAD: _moved,
    Op.CONVOLUTION: _window,
    Op.REDUCE_WINDOW: _window,
    Op.TRANSPOSE: _permuted,
}
"""Opcode → other values of its attributes, which keep the shape of the result. They may be invalid."""


def other_size(module: Module, draw: Source) -> Module:
    """Another size of all dimensions that have one size; what depends on them is inferred."""
    sizes = sorted({n for i in module.instructions() for _, s in i.shape.leaves() for n in s.dims if n > 1})
    old = draw.choice(sizes)
    new = draw.choice([n for n in (1, 2, 3, 5, 7, 8, 9, 16, 17, 33, 65, old - 1, old + 1) if n != old])
    return _refused_if_none(resized(_without_inputs(module), old, new), module)


def other_type(module: Module, draw: Source) -> Module:
    """Another element type of all arrays that have one type."""
    found = {s.dtype for i in module.instructions() for _, s in i.shape.leaves()}
    old = draw.choice([d for d in (*FLOATS, *SIGNED, *UNSIGNED) if d in found])
    new = draw.choice([d for d in (FLOATS if old in FLOATS else SIGNED if old in SIGNED else UNSIGNED) if d is not old])
    return _refused_if_none(retyped(_without_inputs(module), old, new), module)


def _without_inputs(module: Module) -> Small:
    return Small(module, {p.name: () for p in module.entry.parameters})


def _refused_if_none(made: Small | None, module: Module) -> Module:
    if made is None:
        raise LookupError("the others' shapes do not fit")
    return Module(module.name, made.module.computations, made.module.entry, made.module.attributes)


EDITS: tuple[Edit, ...] = (
    *(swap_operand, swap_operand, other_op, other_op, special_constant, twin, other_layout, there_and_back),
    *(more_results, other_attribute, other_attribute, other_size, other_type),
)
