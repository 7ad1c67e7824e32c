"""Kernels of a program replaced by kernels written in LHLO: fitted into the plan, compared with what they replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..evaluator.evaluator import evaluate
from ..formats.program import Program, read_bytes
from ..hlo.errors import InputError, VerificationError
from ..hlo.shapes import Shape
from ..migration.programs import lhlo_of, plan_of
from ..planning.partition import partition_of
from ..planning.plan import (
    Allocation,
    AllocationKind,
    ConditionalStep,
    KernelRequest,
    KernelStep,
    Plan,
    Step,
    WhileStep,
)
from ..planning.planner import plan as plan_module
from .bounds import bounds_of
from .fake_inputs import fake_inputs
from .verdict import judge

SEEDS = (0, 1)
"""Inputs on which the evaluator compares a kernel with its replacement."""


def replaced(program: Program, specs: Sequence[str]) -> Program:
    """The program with kernels taken from files. specs: KERNEL=FILE each; FILE holds one lhlo.kernel.

    The module stays as it was, so the evaluator and XLA judge the program by what it was. Raises InputError for a wrong
    spec, VerificationError if a kernel does not fit or computes something else.
    """
    if not specs:
        return program
    whole = plan_of(program) or plan_module(program.module)
    table = {k.name: k for k in whole.kernels}
    given: dict[str, KernelRequest] = {}
    for spec in specs:
        name, mark, file = spec.partition("=")
        if not mark or name not in table:
            what = f"no kernel '{name}'" if mark else f"'{spec}' is not KERNEL=FILE"
            raise InputError(f"--replace: {what}", remedy=f"the kernels are {', '.join(table) or 'none'}")
        if name in given:
            raise InputError(f"--replace: kernel '{name}' is replaced twice", remedy="give one file")
        given[name] = _fitted(table[name], file)
    kernels = tuple(given.get(k.name, k) for k in whole.kernels)
    return replace(program, plan=replace(whole, kernels=kernels, steps=_steps(whole.steps, given)))


def _fitted(old: KernelRequest, file: str) -> KernelRequest:
    from ..lhlo.read import kernels
    from ..lhlo.to_plan import to_kernels

    lhlo = lhlo_of(read_bytes(Path(file)), file)
    with lhlo.context:
        count = len(list(kernels(lhlo)))
        found = to_kernels(lhlo, file) if count == 1 else []
    if count != 1:
        raise InputError(f"{file}: holds {count} kernels", remedy="keep one func.func with lhlo.kernel")
    new = replace(found[0], name=old.name, partition=partition_of(found[0].instruction) if old.scratch < 0 else None)
    _check_fit(old, new, file)
    _check_meaning(old, new, file)
    return new


def _check_fit(old: KernelRequest, new: KernelRequest, file: str) -> None:
    """Whether the new kernel can be called in the place of the old one."""
    if len(new.arguments) != len(old.arguments):
        raise _misfit(old, file, f"takes {len(new.arguments)} arguments, {len(old.arguments)} are passed")
    for n, (mine, given) in enumerate(zip(new.arguments, old.arguments, strict=True)):
        if mine.slice.size != given.slice.size:
            raise _misfit(old, file, f"argument {n} has {mine.slice.size} bytes, {given.slice.size} are passed")
        if mine.alignment > given.alignment:
            raise _misfit(
                old, file, f"argument {n} is aligned to {mine.alignment} bytes, passed with {given.alignment}"
            )
        if mine.written and not given.written:
            raise _misfit(old, file, f"writes argument {n}, which the program still reads")
    if set(new.results) != set(old.results):
        raise _misfit(old, file, f"writes arguments {sorted(new.results)}, must write {sorted(old.results)}")
    if new.scratch not in (-1, old.scratch):
        raise _misfit(old, file, f"takes argument {new.scratch} as scratch memory, which holds values")


def _misfit(old: KernelRequest, file: str, message: str) -> VerificationError:
    remedy = f"begin with the output of: testbed lhlo MODULE --kernel {old.name}"
    return VerificationError(f"{file}: in place of kernel '{old.name}': {message}", remedy=remedy)


def _check_meaning(old: KernelRequest, new: KernelRequest, file: str) -> None:
    """Compare both on the evaluator, on the same bytes, within the bounds of the old kernel."""
    before, after = _alone(old), _alone(new)
    bounds = bounds_of(before.module)
    for seed in SEEDS:
        inputs = fake_inputs(before.module, seed)
        memory = {a.index: _bytes(inputs[a.number], a.shape) for a in _parameters(before) if a.shape is not None}
        for a in _parameters(after):
            if a.index not in memory:
                raise _misfit(old, file, f"reads argument {a.index}, which the program leaves undefined")
        own = [_array(memory[a.index], a.shape) for a in _parameters(after) if a.shape is not None]
        wanted, given = evaluate(before.module, inputs), evaluate(after.module, own)
        written = _results(after)
        arranged = []
        for number, shape in enumerate(_results(before).items()):
            index, old_shape = shape
            leaf = list(written).index(index)
            arranged.append(_array(_bytes(given[leaf], written[index]), old_shape).reshape(wanted[number].shape))
        verdict = judge({"evaluator": wanted, "replacement": arranged}, bounds)
        if not verdict.agrees:
            worst = next(c for c in verdict.comparisons if not c.difference.agrees)
            raise VerificationError(
                f"{file}: computes another result {worst.leaf} than kernel '{old.name}' on inputs of seed {seed}: "
                f"largest difference {worst.difference.max_abs:.3g}",
                remedy="compare the two with: testbed diff FILE",
            )


def _alone(request: KernelRequest) -> Plan:
    """A kernel as a program of one step; its allocations are its arguments."""
    from ..lhlo import from_kernels
    from ..lhlo.to_plan import to_plan

    return to_plan(from_kernels([request]))


def _parameters(plan: Plan) -> list[Allocation]:
    """The plan's parameters in their order."""
    found = [a for a in plan.assignment.allocations if a.kind is AllocationKind.PARAMETER]
    return sorted(found, key=lambda a: a.number)


def _results(plan: Plan) -> dict[int, Shape]:
    """Allocation → shape of each result, in the order of results."""
    held = {a.number: a for a in plan.assignment.allocations if a.kind is AllocationKind.RESULT}
    held |= {a.result: a for a in plan.assignment.allocations if a.result >= 0}
    return {held[n].index: shape for n in sorted(held) if (shape := held[n].shape) is not None}


def _bytes(value: np.ndarray, shape: Shape) -> bytes:
    """An array's bytes in the order of the shape's layout."""
    return np.ascontiguousarray(value.reshape(shape.dims).transpose(tuple(reversed(shape.minor_to_major)))).tobytes()


def _array(data: bytes, shape: Shape) -> np.ndarray:
    order = tuple(reversed(shape.minor_to_major))
    flat = np.frombuffer(bytearray(data), shape.dtype.numpy).reshape([shape.dims[d] for d in order])
    return np.ascontiguousarray(flat.transpose(np.argsort(order))) if order else flat.reshape(())


def _steps(steps: Sequence[Step], given: dict[str, KernelRequest]) -> tuple[Step, ...]:
    return tuple(_step(step, given) for step in steps)


def _step(step: Step, given: dict[str, KernelRequest]) -> Step:
    if isinstance(step, KernelStep):
        return replace(step, kernel=given.get(step.kernel.name, step.kernel))
    if isinstance(step, WhileStep):
        return replace(step, condition=_steps(step.condition, given), body=_steps(step.body, given))
    if isinstance(step, ConditionalStep):
        return replace(step, branches=tuple(_steps(b, given) for b in step.branches))
    return step
