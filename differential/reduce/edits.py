"""The edits, in passes. A pass looks at a case and offers edits; an edit makes a smaller case of a later one, too, or
None where it does not fit any more. Instructions are found by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...hlo.errors import TestbedError
from ...hlo.ir import Computation, Instruction, Literal, Module, rewrite
from ...hlo.opclasses import branches
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from ...passes.flatten import copy_body
from ...passes.pipeline import complete, run_pipeline, select
from ...passes.rewriting import Names, rebuild
from .case import Arrays, Edit, Small, constant, edit, fits, in_computation, parameter, tidy
from .sizes import dtype_edits, size_edits

Values = Mapping[str, Arrays]
"""By name, the values of the entry's instructions; of those that are known."""

Pass = Callable[[Small, Values], Iterator[Edit]]

IDLE = ("metadata", "sharding", "frontend_attributes", "backend_config", "statistics", "control-predecessors")
"""Attributes that an instruction can do without."""


def halves(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Chunks of a list: all, halves, quarters, … single ones, as delta debugging tries them; the end first."""
    size = len(items)
    while size:
        for start in range(((len(items) - 1) // size) * size, -1, -size):
            yield items[start : start + size]
        size = size // 2


# -- what is idle -----------------------------------------------------------------------------------------------------
def defaults(case: Small, values: Values) -> Iterator[Edit]:
    """Headers, attributes and layouts that may be left out."""
    yield lambda c: _everywhere(c, lambda i: _plain(i, IDLE, layouts=True), header=True)
    yield lambda c: _everywhere(c, lambda i: i, header=True)
    yield lambda c: _everywhere(c, lambda i: _plain(i, IDLE, layouts=False))
    yield lambda c: _everywhere(c, lambda i: _plain(i, (), layouts=True))
    for key in IDLE:
        yield edit(_without, key)


def _without(case: Small, key: str) -> Small | None:
    return _everywhere(case, lambda i: _plain(i, (key,), layouts=False))


def _plain(i: Instruction, keys: Sequence[str], *, layouts: bool) -> Instruction:
    kept = {k: v for k, v in i.attributes.items() if k not in keys}
    shape = i.shape.without_layout() if layouts else i.shape
    if layouts and isinstance(value := kept.get("literal"), Literal) and isinstance(value.value, np.ndarray):
        kept["literal"] = Literal(shape, value.value)
    return i.replace(attributes=MappingProxyType(kept), shape=shape)


def _everywhere(case: Small, change: Callable[[Instruction], Instruction], *, header: bool = False) -> Small | None:
    made = rebuild(case.module, lambda c: rewrite(c, change))
    module = Module("m", made.computations, made.entry, {} if header else made.attributes)
    return tidy(module, case.inputs)


SIMPLIFIERS = ("inline", "flatten", "unfuse", "prune", "untuple", "simplify", "dce", "conditionals", "loops", "cse")
"""Passes of the testbed that keep what a module means and make it smaller."""


def simplified(case: Small, values: Values) -> Iterator[Edit]:
    for name in SIMPLIFIERS:
        yield edit(_after, name)


def _after(case: Small, name: str) -> Small | None:
    try:
        module = run_pipeline(case.module, complete(select([name])))
    except (TestbedError, KeyError, AssertionError):
        return None  # a pass that fails may be what the case shows
    if [p.shape for p in module.entry.parameters] != list(case.module.parameter_shapes):
        return None
    inputs = Small.of(module, case.leaves).inputs
    return tidy(module, inputs)


# -- the entry --------------------------------------------------------------------------------------------------------
def roots(case: Small, values: Values) -> Iterator[Edit]:
    """Fewer results, and results that are computed earlier."""
    entry = case.module.entry
    if entry.root.opcode is Op.TUPLE:
        names = list(dict.fromkeys(o.name for o in entry.root.operands))
        for name in names:
            yield edit(_with_root, name)
        for chunk in halves(names):
            if len(chunk) < len(names):
                yield edit(_without_results, frozenset(chunk))
    inner = [i.name for i in entry.instructions if i.opcode not in (Op.PARAMETER, Op.CONSTANT) and i is not entry.root]
    for name in inner:
        yield edit(_with_root, name)


def _with_root(case: Small, name: str) -> Small | None:
    return in_computation(case, case.module.entry, lambda i, add: None, root=name)


def _without_results(case: Small, dropped: frozenset[str]) -> Small | None:
    root = case.module.entry.root

    def change(i: Instruction, add: Any) -> Instruction | None:
        if i.name != root.name:
            return None
        kept = tuple(o for o in i.operands if o.name not in dropped)
        return i.replace(operands=kept, shape=tuple_shape(*(o.shape for o in kept))) if kept else None

    return in_computation(case, case.module.entry, change) if root.opcode is Op.TUPLE else None


def cuts(case: Small, values: Values) -> Iterator[Edit]:
    """Instructions become parameters that have their values: what computed them is no longer needed."""
    entry = case.module.entry
    names = [
        i.name
        for i in entry.instructions
        if i.opcode is not Op.PARAMETER and i is not entry.root and i.name in values and fits(i.shape, values[i.name])
    ]
    for chunk in halves(names):
        yield edit(_cut, frozenset(chunk), values)


def _cut(case: Small, names: frozenset[str], values: Values) -> Small | None:
    entry = case.module.entry
    chosen = {i.name for i in entry.instructions if i.name in names and i is not entry.root}
    chosen = {n for n in chosen if fits(entry.by_name[n].shape, values[n])}
    if not chosen:
        return None

    def change(i: Instruction, add: Any) -> Instruction | None:
        return parameter(i.name, i.shape) if i.name in chosen else None

    return in_computation(case, entry, change, more={n: values[n] for n in chosen})


def split_tuples(case: Small, values: Values) -> Iterator[Edit]:
    """Elements of a parameter that is a tuple become parameters."""
    for i in case.module.entry.instructions:
        if i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0].opcode is Op.PARAMETER:
            yield edit(_element, i.name)


def _element(case: Small, name: str) -> Small | None:
    element = case.module.entry.by_name.get(name)
    if element is None or element.opcode is not Op.GET_TUPLE_ELEMENT or element.operands[0].opcode is not Op.PARAMETER:
        return None
    whole, index = element.operands[0], element.attributes["index"]
    before = sum(1 for e in whole.shape.elements[:index] for _, s in e.leaves() if s.is_array)
    count = sum(1 for _, s in element.shape.leaves() if s.is_array)
    arrays = case.inputs[whole.name][before : before + count]
    if not fits(element.shape, arrays):
        return None

    def change(i: Instruction, add: Any) -> Instruction | None:
        return parameter(name, element.shape) if i.name == name else None

    return in_computation(case, case.module.entry, change, more={name: arrays})


# -- every computation ------------------------------------------------------------------------------------------------
def forwards(case: Small, values: Values) -> Iterator[Edit]:
    """An instruction gives way to an earlier value of its shape: an operand, or a parameter."""
    for computation in case.module.computations:
        for i in reversed(computation.instructions):
            if i.opcode is Op.PARAMETER:
                continue
            near = [*i.operands, *(p for p in computation.parameters if p is not i)]
            for other in dict.fromkeys(o.name for o in near if o.shape.compatible(i.shape)):
                yield edit(_forward, computation.name, i.name, other)


def _named(case: Small, name: str) -> Computation | None:
    return next((c for c in case.module.computations if c.name == name), None)


def _forward(case: Small, where: str, name: str, other: str) -> Small | None:
    computation = _named(case, where)
    if computation is None or other not in computation.by_name or name not in computation.by_name:
        return None
    made: dict[str, Instruction] = {}

    def change(i: Instruction, add: Any) -> Instruction | None:
        made[i.name] = i
        return made.get(other) if i.name == name else None

    return in_computation(case, computation, change)


def constants(case: Small, values: Values) -> Iterator[Edit]:
    """Inside called computations: an instruction becomes a 1 or 0. Everywhere: scalar constants become smaller."""
    for computation in case.module.computations:
        inner = computation is not case.module.entry
        for i in reversed(computation.instructions):
            if i.opcode is Op.CONSTANT and i.shape.is_array and not i.literal.is_elided and i.shape.size:
                numbers = _simpler(i.literal.array.reshape(-1)[0])
            elif inner and i.opcode is not Op.PARAMETER and i.shape.is_array:
                numbers = [1, 0]
            else:
                continue
            for number in numbers:
                yield edit(_constant, computation.name, i.name, number)


def _simpler(value: Any) -> list[float]:
    """Numbers that are simpler than a constant."""
    with np.errstate(all="ignore"):
        number = complex(value).real
    if not np.isfinite(number):
        return [0, 1]
    return [n for n in (0, 1, 2, int(number) // 2) if abs(n) < abs(number) or (n == 1 and 0 < abs(number) < 1)]


def _constant(case: Small, where: str, name: str, number: float) -> Small | None:
    computation = _named(case, where)
    if computation is None:
        return None

    def change(i: Instruction, add: Any) -> Instruction | None:
        return constant(i.name, i.shape, number) if i.name == name else None

    return in_computation(case, computation, change)


def calls(case: Small, values: Values) -> Iterator[Edit]:
    """Called computations stand in place of what calls them: fusions, calls, one trip of a loop, one branch."""
    for computation in case.module.computations:
        for i in computation.calling:
            for which in range(_choices(i)):
                yield edit(_inlined, computation.name, i.name, which)


def _choices(i: Instruction) -> int:
    if i.opcode in (Op.FUSION, Op.CALL, Op.WHILE):
        return 1
    return len(i.called()) if i.opcode is Op.CONDITIONAL else 0


def _inlined(case: Small, where: str, name: str, which: int) -> Small | None:
    computation = _named(case, where)
    if computation is None or name not in computation.by_name:
        return None
    names = Names.of(case.module)

    def change(i: Instruction, add: Callable[[Instruction], Instruction]) -> Instruction | None:
        if i.name != name or which >= _choices(i):
            return None
        if i.opcode is Op.WHILE:
            body, arguments = i.attributes["body"], i.operands
        elif i.opcode is Op.CONDITIONAL:
            body, arguments = branches(i)[which], (i.operands[which + 1],)
        else:
            body, arguments = i.called()[0], i.operands
        copies, root = copy_body(body, tuple(arguments), names)
        for copy in copies:
            add(copy)
        return root

    return in_computation(case, computation, change)


def regions(case: Small, values: Values) -> Iterator[Edit]:
    """The root of a region of scalars becomes its first or second parameter, or a sum of them."""
    for computation in case.module.computations:
        scalars = [p for p in computation.parameters if p.shape.compatible(computation.root.shape)]
        if computation is case.module.entry or len(computation.instructions) <= len(scalars) + 1 or len(scalars) < 2:
            continue
        for op in (Op.ADD, Op.MAXIMUM, Op.AND):
            yield edit(_region, computation.name, op)


def _region(case: Small, where: str, op: Op) -> Small | None:
    computation = _named(case, where)
    if computation is None:
        return None
    first, second = computation.parameters[:2]
    root = Instruction(op, f"{where}.root", computation.root.shape, (first, second))
    made = Computation(computation.name, (*computation.parameters, root), root, computation.attributes)
    return tidy(rebuild(case.module, lambda _: made, [computation]), case.inputs)


# -- inputs -----------------------------------------------------------------------------------------------------------
ELEMENTS = 256
"""An input of more elements is made simple in parts, not element by element."""


def inputs(case: Small, values: Values) -> Iterator[Edit]:
    """Inputs become 0 and 1, whole or in parts, else integers."""
    for name, arrays in case.inputs.items():
        for leaf, x in enumerate(arrays):
            if not x.size:
                continue
            for number in (0, 1):
                yield edit(_filled, name, leaf, slice(None), number)
            yield edit(_filled, name, leaf, slice(None), None)
            least = max(1, x.size // ELEMENTS)
            for chunk in halves(range(x.size)):
                if least <= len(chunk) < x.size:
                    for part in (0, 1, None):
                        yield edit(_filled, name, leaf, slice(chunk[0], chunk[-1] + 1), part)


def _filled(case: Small, name: str, leaf: int, part: slice, number: float | None) -> Small | None:
    """number: None truncates to integers."""
    if name not in case.inputs or leaf >= len(case.inputs[name]):
        return None
    arrays = list(case.inputs[name])
    changed = np.array(arrays[leaf])
    flat = changed.reshape(-1)
    with np.errstate(all="ignore"):
        if number is not None:
            flat[part] = np.array(number).astype(flat.dtype)
        elif changed.dtype.kind == "f":
            flat[part] = np.where(np.isfinite(flat[part]), np.rint(flat[part]), flat[part])
        else:
            return None
    arrays[leaf] = changed
    return Small(case.module, {**case.inputs, name: tuple(arrays)})


def sizes(case: Small, values: Values) -> Iterator[Edit]:
    return size_edits(case)


def dtypes(case: Small, values: Values) -> Iterator[Edit]:
    return dtype_edits(case)


PASSES: dict[str, Pass] = {
    "defaults": defaults,
    "results": roots,
    "cuts": cuts,
    "simplify": simplified,
    "calls": calls,
    "tuples": split_tuples,
    "forwards": forwards,
    "regions": regions,
    "constants": constants,
    "sizes": sizes,
    "dtypes": dtypes,
    "inputs": inputs,
}
"""In the order of a round; rounds follow until one changes nothing."""
