"""Proves by z3 that a stack's code for a small body of integers is that of the HLO, for all integers.

The kernel must compute each element of its result from the same element of its operands. What runs on formulas is its
code for a few elements, before LLVM's passes: movement at the real shape is what runs on drawn integers show.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import z3

from ...codegen.llvm import parse
from ...codegen.options import EmitOptions, Target
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ...hlo.shapes import Shape, array
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.plan import KernelRequest
from ..kernel_module import kernel_module
from .check import STACKS, kernels_of
from .draw import draws
from .every import is_by_element
from .formulas import OF_BITS, Formulas, NoFormulaError, resized, splat
from .symbolic import Memory, NoProofError, run

LANES = 4
"""Elements of a kernel that runs on formulas."""

MAXIMUM_BODY = 40
"""Instructions of a body."""

RLIMIT = 4_000_000
"""The work of z3 on one element, in its own measure: a few seconds at most."""


def proof_of(module: Module, forms: frozenset[tuple[str, str]], target: Target | None = None) -> str:
    """Why the code of a kernel's module is not proved; empty if it is, on both stacks. forms: (stack, form) that its
    kernel has at the real shape; the few elements must have the same.
    """
    if not is_by_element(module) or len(module.entry.instructions) > MAXIMUM_BODY:
        return "it is no small body that computes element by element"
    try:
        requests = kernels_of(of_lanes(module, LANES))
        if len(requests) != 1 or _body_of(requests[0]) != _ops(module):
            raise NoProofError("the planner changes the body")
        (request,) = requests
        for stack in STACKS:
            _prove(request, stack, forms, target or Target.host())
    except (NoProofError, NoFormulaError, ValueError) as error:
        return str(error)
    return ""


def _ops(module: Module) -> list[tuple[str, str]]:
    used = [i for i in module.entry.instructions if i.opcode is not Op.TUPLE]
    return sorted((i.opcode.value, i.shape.dtype.value) for i in used)


def _body_of(request: KernelRequest) -> list[tuple[str, str]]:
    return _ops(kernel_module(request.instruction))


def of_lanes(module: Module, lanes: int) -> Module:
    """The same body on vectors of this many elements."""

    def shape_of(shape: Shape) -> Shape:
        if shape.is_tuple:
            return replace(shape, elements=tuple(map(shape_of, shape.elements)))
        return array(shape.dtype, lanes) if shape.rank else shape

    made: dict[Instruction, Instruction] = {}
    scalars = not any(p.shape.rank for p in module.entry.parameters)
    for i in module.entry.instructions:
        operands = tuple(made[o] for o in i.operands)
        made[i] = i.replace(operands=operands, shape=i.shape if scalars else shape_of(i.shape))
    entry = Computation(module.entry.name, tuple(made.values()), made[module.entry.root], module.entry.attributes)
    return Module(module.name, (entry,), entry, MappingProxyType({}))


def _prove(request: KernelRequest, stack: str, forms: frozenset[tuple[str, str]], target: Target) -> None:
    """Raises NoProofError, with integers for which code and HLO differ if there are such."""
    field = next(iter(draws(request.instruction))).field
    emitted = emit_for(Flags.parse(stack))(request).emit([request], EmitOptions(target, exact=field))
    chosen = emitted.forms.get(request.name)
    few = frozenset((stack, form) for form in (chosen.names if chosen else ()))
    if few != frozenset(f for f in forms if f[0] == stack):
        raise NoProofError(f"{stack} has another form for a few elements")
    inner = kernel_module(request.instruction)
    argument = _arguments(request, inner)
    memory = Memory({})
    for p, number in argument.items():
        for lane in range(p.shape.size):
            memory.cells[number, lane * p.shape.dtype.bytes] = _stored(_variable(p, number, lane), p.shape.dtype)
    run(str(parse(emitted.llvm_ir)), request.name, memory)
    formulas = Formulas(lambda dtype: dtype.bits, splat, OF_BITS)
    for leaf, number in zip(_leaves(inner.entry.root), request.results, strict=True):
        formula = formulas.of(leaf)
        for lane in range(leaf.shape.size):
            given = [(formulas.of(p), _variable(p, n, lane)) for p, n in argument.items()]
            wanted = _stored(z3.substitute(formula, *given), leaf.shape.dtype)
            made = memory.cells.get((number, lane * leaf.shape.dtype.bytes))
            if made is None or made.size() != wanted.size():
                raise NoProofError(f"{stack} does not write element {lane}")
            bits = leaf.shape.dtype.bits if leaf.shape.dtype is not DType.PRED else 8
            _solve(resized(made, bits, False) != resized(wanted, bits, False), f"{stack}, element {lane}")
    for duty in memory.duties:
        _solve(z3.Not(duty), f"{stack}: what is not poison")


def _arguments(request: KernelRequest, inner: Module) -> dict[Instruction, int]:
    """The number of the argument that holds each parameter of a kernel's module."""
    operands = dict(zip(request.instruction.operands, request.operands, strict=True))
    given = list(request.operands) if len(inner.entry.parameters) == len(request.operands) else list(operands.values())
    return dict(zip(inner.entry.parameters, given, strict=True))


def _leaves(root: Instruction) -> list[Instruction]:
    return list(root.operands) if root.opcode is Op.TUPLE else [root]


def _variable(parameter: Instruction, number: int, lane: int) -> Any:
    dtype, name = parameter.shape.dtype, f"a{number}.{lane}"
    return z3.Bool(name) if dtype is DType.PRED else z3.BitVec(name, dtype.bits)


def _stored(x: Any, dtype: DType) -> Any:
    """An element as it is in memory; a narrow integer in the low bits of a byte."""
    if z3.is_bool(x):
        return z3.If(x, z3.BitVecVal(1, 8), z3.BitVecVal(0, 8))
    return resized(x, 8 * dtype.bytes, False)


def _solve(wrong: Any, what: str) -> None:
    """Raises NoProofError where something may be wrong, or z3 does not say in its time."""
    if z3.is_false(z3.simplify(wrong)):
        return
    solver = z3.SolverFor("QF_BV")
    solver.set("rlimit", RLIMIT)
    solver.add(wrong)
    answer = solver.check()
    if answer == z3.sat:
        raise NoProofError(f"{what}: wrong for {solver.model()}")
    if answer != z3.unsat:
        raise NoProofError(f"{what}: z3 does not say")
