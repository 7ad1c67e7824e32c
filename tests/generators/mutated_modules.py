"""Random edits that keep every shape and so turn real modules into new programs, for tests of the passes.

In modules with loops, integer scalars are not changed, so that the loops terminate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from ...evaluator.rules import RULES, Form
from ...hlo.dtypes import DType
from ...hlo.errors import TestbedError
from ...hlo.ir import Computation, Instruction, Literal, Module, expand
from ...hlo.opclasses import IMPURE, control_computations
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.shapes import Shape, tuple_shape
from ...hlo.verify.verifier import verify
from ...passes.rewriting import Names, rebuild, with_attributes

Add = Callable[[Instruction], Instruction]

KEPT = IMPURE | {Op.PARAMETER, Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.WHILE, Op.CONDITIONAL, Op.AFTER_ALL, Op.CONSTANT}
PREDICATES = {Op.IS_FINITE, Op.COMPARE}
ARITHMETIC = {o for o, reference in RULES.items() if reference.form is Form.NUMPY} - {Op.CLAMP}
"""Unary and binary ops that depend only on their operands' values."""

WILD = {Op.POWER, Op.TAN, Op.CBRT, Op.RSQRT, Op.LOG, Op.DIVIDE, Op.REMAINDER, Op.ATAN2, Op.MULHI, Op.SINH, Op.COSH}
"""Ops that never replace others: their results grow or jump for small changes of an operand."""


REFUSALS = 60
"""Edits that may be refused for one module. Past them the module is one that edits do not fit, or an edit is broken."""


def mutated(module: Module, seed: int, edits: int = 3) -> Module:
    """The module after `edits` edits; it verifies. Raises AssertionError after too many that found nothing to edit."""
    draw, refused = random.Random(seed), 0
    while edits:
        edit = draw.choice(EDITS)
        try:
            changed = edit(module, draw)
            verify(changed)
        except (TestbedError, LookupError) as error:  # an edit that found nothing, or that a rule of HLO forbids
            refused += 1
            if refused > REFUSALS:
                raise AssertionError(f"{module.name}: {refused} edits were refused, the last with {error!r}") from error
            continue
        module, edits = changed, edits - 1
    return module


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


def swap_operand(module: Module, draw: random.Random) -> Module:
    """Replace an operand by another value of the same shape."""
    where, chosen = draw.choice(_places(module, lambda i: _plain(i) and bool(i.operands)))
    number = draw.randrange(len(chosen.operands))
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


def other_op(module: Module, draw: random.Random) -> Module:
    """Replace an elementwise op by another one of the same signature, or change the direction of a comparison."""

    def alike(i: Instruction) -> list[Op]:
        row = OPSET[i.opcode]
        if i.opcode not in ARITHMETIC or i.opcode in PREDICATES:
            return []
        if any(o.shape.dtype is not i.shape.dtype for o in i.operands) or i.shape.dtype.is_complex:
            return []
        return [
            o
            for o, r in OPSET.items()
            if o in ARITHMETIC and (r.family, r.low) == (row.family, row.low) and i.shape.dtype in r.dtypes
            and o not in PREDICATES | WILD | {Op.COMPLEX, Op.REAL, Op.IMAG}
        ]  # fmt: skip

    where, chosen = draw.choice(
        _places(module, lambda i: i.shape.is_array and (i.opcode is Op.COMPARE or (_plain(i) and bool(alike(i)))))
    )
    if chosen.opcode is Op.COMPARE and Op.WHILE not in module.opcodes:
        made = with_attributes(chosen, direction=draw.choice(("LT", "LE", "GT", "GE", "EQ", "NE")))
    else:
        made = chosen.replace(opcode=draw.choice(alike(chosen)), attributes={})
    return _edited(module, where, lambda i, _: made.replace(operands=i.operands) if i.name == chosen.name else None)


def special_constant(module: Module, draw: random.Random) -> Module:
    """Replace some or all elements of a constant by values that incorrect rewrites often get wrong."""
    where, chosen = draw.choice(
        _places(module, lambda i: i.opcode is Op.CONSTANT and not i.literal.is_elided and i.shape.size < 10_000)
    )
    dtype, array = chosen.shape.dtype, np.array(chosen.literal.array)
    if not array.size:
        return module
    values = _special(dtype)
    count = array.size if draw.random() < 0.3 else draw.randint(1, min(3, array.size))
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


def twin(module: Module, draw: random.Random) -> Module:
    """Duplicate an instruction; some of its users read the copy."""
    where, chosen = draw.choice(_places(module, lambda i: _plain(i) and len(i.operands) > 0))
    name = Names.of(module).fresh(chosen.name)
    readers = {u.name for u in where.users[chosen] if draw.random() < 0.5}
    pair: dict[str, Instruction] = {}

    def change(i: Instruction, add: Add) -> Instruction | None:
        if i.name == chosen.name:
            pair["old"], pair["new"] = i, add(i.replace(name=name))
            return None
        if i.name in readers:
            return i.replace(operands=tuple(pair["new"] if o is pair["old"] else o for o in i.operands))
        return None

    return _edited(module, where, change)


def _order(draw: random.Random, shape: Shape) -> Shape:
    return shape.with_layout(tuple(draw.sample(range(shape.rank), shape.rank)))


def other_layout(module: Module, draw: random.Random) -> Module:
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


def there_and_back(module: Module, draw: random.Random) -> Module:
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
            over = tuple(sorted(draw.sample(range(rank), draw.randint(1, rank))))
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


def more_results(module: Module, draw: random.Random) -> Module:
    """Make a value inside the entry a result as well."""
    entry = module.entry
    fit = [i for i in entry.instructions if i.shape.is_array and not i.shape.is_dynamic and i is not entry.root]
    chosen = draw.choice(fit)
    values = (entry.root, chosen) if draw.random() < 0.5 else (chosen, entry.root)
    name = Names.of(module).fresh("more")
    root = Instruction(Op.TUPLE, name, tuple_shape(*(v.shape for v in values)), values)
    new = Computation(entry.name, (*entry.instructions, root), root, entry.attributes)
    attributes = {k: v for k, v in module.attributes.items() if k == "is_scheduled"}
    return Module(module.name, tuple(new if c is entry else c for c in module.computations), new, attributes)


EDITS = (
    *(swap_operand, swap_operand, other_op, other_op, special_constant, twin, other_layout, there_and_back),
    more_results,
)
