"""Small: a case that is being reduced, and what every edit of one is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ...evaluator.evaluator import evaluate
from ...formats.text.printer import print_module
from ...hlo.dtypes import DType
from ...hlo.errors import TestbedError
from ...hlo.ir import CONTROL_PREDECESSORS, Computation, Instruction, Literal, Module, expand
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...hlo.verify.verifier import verify
from ...passes.rewriting import callees_first, rebuild, relink_computation, with_attributes

Arrays = tuple[np.ndarray, ...]

WEIGHTS = {Op.PARAMETER: 1, Op.TUPLE: 1, Op.GET_TUPLE_ELEMENT: 1, Op.CONSTANT: 2}
"""How much an instruction counts; others count USUAL."""
USUAL = 4

PLAIN_TYPES = frozenset({DType.F32, DType.S32, DType.PRED, DType.TUPLE})


@dataclass(frozen=True, eq=False)
class Small:
    """inputs: the array leaves of each entry parameter, by the parameter's name."""

    module: Module
    inputs: Mapping[str, Arrays]

    @staticmethod
    def of(module: Module, leaves: Sequence[np.ndarray]) -> Small:
        """A case of a module and its inputs in order."""
        rest, found = list(leaves), {}
        for p in module.entry.parameters:
            count = sum(1 for _, s in p.shape.leaves() if s.is_array)
            found[p.name], rest = tuple(rest[:count]), rest[count:]
        return Small(module, found)

    @property
    def leaves(self) -> list[np.ndarray]:
        """The inputs in order."""
        return [x for p in self.module.entry.parameters for x in self.inputs[p.name]]

    @cached_property
    def text(self) -> str:
        return print_module(self.module)

    @cached_property
    def digest(self) -> bytes:
        done = hashlib.sha256(self.text.encode())
        for x in self.leaves:
            done.update(x.tobytes())
        return done.digest()

    @property
    def size(self) -> int:
        """Instructions of all computations."""
        return sum(len(c.instructions) for c in self.module.computations)

    @cached_property
    def cost(self) -> tuple[int, ...]:
        """What an edit has to make less: instructions by weight, then elements, types, text, values."""
        instructions = list(self.module.instructions())
        shapes = [s for i in instructions for _, s in i.shape.leaves()]
        return (
            sum(WEIGHTS.get(i.opcode, USUAL) for i in instructions),
            sum(s.size for s in shapes),
            sum(s.dtype not in PLAIN_TYPES for s in shapes),
            len(self.text),
            sum(_oddness(x) for x in self.leaves),
        )


def _oddness(x: np.ndarray) -> int:
    """0 for zeros, 1 for each one, 2 for a small integer, 4 for other numbers, 8 for those that are not finite."""
    if x.dtype == np.bool_:
        return int(x.sum())
    with np.errstate(all="ignore"):
        wide = x.astype(np.complex128) if x.dtype.kind == "c" else x.astype(np.float64)
        kinds = np.where(wide == 1, 1, np.where((np.abs(wide) < 10) & (wide == np.rint(wide.real)), 2, 4))
        kinds = np.where(np.isfinite(wide), np.where((wide == 0) & ~np.signbit(wide.real), 0, kinds), 8)
    return int(kinds.sum())


Edit = Callable[[Small], Small | None]
"""Makes a smaller case; None where it does not fit."""


def edit(function: Callable[..., Small | None], *arguments: Any) -> Edit:
    """An edit from a function of a case and arguments."""
    return lambda case: function(case, *arguments)


Change = Callable[[Instruction, Callable[[Instruction], Instruction]], Instruction | None]


def in_computation(
    case: Small, computation: Computation, change: Change, root: str | None = None, more: Mapping[str, Arrays] = {}
) -> Small | None:
    """The case with a computation expanded (hlo/ir.py). root: the name of its new root. more: inputs of new parameters.

    None if it is not a valid module.
    """

    def changed(linked: Computation) -> Computation:
        made = expand(linked, change)
        new_root = made.root if root is None else made.by_name[root]
        return Computation(made.name, made.instructions, new_root, made.attributes)

    if root is not None and root not in computation.by_name:
        return None
    return tidy(rebuild(case.module, changed, [computation]), {**case.inputs, **more})


def tidy(module: Module, inputs: Mapping[str, Arrays]) -> Small | None:
    """The case without what its result does not need; None if the module is not valid."""
    try:
        return _tidy(module, inputs)
    except (TestbedError, KeyError, IndexError, ValueError, TypeError, AssertionError):
        return None  # an edit that does not fit this module


def _tidy(module: Module, inputs: Mapping[str, Arrays]) -> Small:
    table: dict[Computation, Computation] = {}
    for old in callees_first(module.entry):
        linked = relink_computation(old, table)
        table[old] = _live(linked, is_entry=old is module.entry)
    entry = table[module.entry]
    attributes = dict(module.attributes)
    if [p.shape for p in entry.parameters] != list(module.parameter_shapes) or entry.root.shape != module.result_shape:
        for key in BOUND_TO_SIGNATURE:
            attributes.pop(key, None)
    order = callees_first(entry)
    done = Module(module.name, order, entry, MappingProxyType(attributes))
    verify(done)
    return Small(done, {p.name: inputs[p.name] for p in entry.parameters})


BOUND_TO_SIGNATURE = ("entry_computation_layout", "input_output_alias", "buffer_donor")
"""Attributes of a module's header that name parameters or results."""


def _live(computation: Computation, *, is_entry: bool) -> Computation:
    live, stack = {computation.root}, [computation.root]
    while stack:
        for operand in stack.pop().operands:
            if operand not in live:
                live.add(operand)
                stack.append(operand)
    kept = [i for i in computation.instructions if i in live or (i.opcode is Op.PARAMETER and not is_entry)]
    names = {i.name for i in kept}
    numbers = iter(range(len(kept)))
    new: dict[Instruction, Instruction] = {}
    for i in kept:
        made = i.replace(operands=tuple(new[o] for o in i.operands))
        if CONTROL_PREDECESSORS in i.attributes:
            still = tuple(n for n in i.attributes[CONTROL_PREDECESSORS] if n in names)
            made = with_attributes(made, **{CONTROL_PREDECESSORS: still or None})
        if is_entry and i.opcode is Op.PARAMETER:
            made = with_attributes(made, parameter_number=next(numbers))
        new[i] = made
    return Computation(computation.name, tuple(new.values()), new[computation.root], computation.attributes)


def values_of(module: Module, leaves: Sequence[np.ndarray]) -> dict[str, Arrays]:
    """The array leaves of each entry instruction's value, by its name; of those that the evaluator gets to."""
    found: dict[str, Arrays] = {}
    entry = set(module.entry.instructions)

    def adjust(i: Instruction, run: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*operands: Any) -> Any:
            value = run(*operands)
            found[i.name] = tuple(np.asarray(x) for x in _flat(value))
            return value

        return noted if i in entry else run

    for i in module.entry.instructions:
        if i.opcode is Op.CONSTANT and i.shape.is_array:
            found[i.name] = (np.asarray(i.literal.array),)
    with np.errstate(all="ignore"):
        evaluate(module, leaves, adjust=adjust)
    return found


SIZING = frozenset({Op.SET_DIMENSION_SIZE, Op.DYNAMIC_RESHAPE})
"""Opcodes whose operands after the first are sizes. What happens where one exceeds its bound, XLA leaves undefined."""


def has_sizes(module: Module) -> bool:
    """Whether a program computes sizes of dimensions."""
    return any(i.opcode in SIZING for i in module.instructions())


def sizes_fit(module: Module, leaves: Sequence[np.ndarray]) -> bool:
    """Whether every size that a run computes lies within its bound; True for a program that does not run."""
    fit = True

    def adjust(i: Instruction, run: Callable[..., Any]) -> Callable[..., Any]:
        if i.opcode not in SIZING:
            return run
        bounds = [i.shape.dims[d] for d in i.dimensions] if i.opcode is Op.SET_DIMENSION_SIZE else i.shape.dims

        def checked(*operands: Any) -> Any:
            nonlocal fit
            fit &= all(0 <= int(size) <= bound for size, bound in zip(operands[1:], bounds, strict=True))
            return run(*operands)

        return checked

    with suppress(TestbedError), np.errstate(all="ignore"):
        evaluate(module, leaves, adjust=adjust)
    return fit


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [x for v in value for x in _flat(v)]
    return [] if value is None else [value]


def fits(shape: Shape, arrays: Arrays) -> bool:
    """Whether arrays are the leaves of a static value of this shape."""
    leaves = [s for _, s in shape.leaves()]
    return len(leaves) == len(arrays) and all(
        s.is_array and not s.is_dynamic and s.dims == x.shape and s.dtype.numpy == x.dtype
        for s, x in zip(leaves, arrays, strict=True)
    )


def constant(name: str, shape: Shape, value: float) -> Instruction | None:
    """A constant array of one value; None for a shape that has none."""
    if not shape.is_array or shape.is_dynamic:
        return None
    array = np.full(shape.dims, value).astype(shape.dtype.numpy)
    array.setflags(write=False)
    plain = shape.without_layout()
    return Instruction(Op.CONSTANT, name, plain, attributes=MappingProxyType({"literal": Literal(plain, array)}))


def parameter(name: str, shape: Shape) -> Instruction:
    """A parameter, whose number `tidy` gives."""
    return Instruction(Op.PARAMETER, name, shape.without_layout(), attributes=MappingProxyType({"parameter_number": 0}))
