"""Every input of a small kernel of integers: all numbers of each element, or all contents of its operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET

MAXIMUM_BITS = 16
"""Bits of all that one element of a result depends on."""

MAXIMUM_RUNS = 4096


def every_input(module: Module) -> Iterator[list[np.ndarray]] | None:
    """Arrays for the parameters, run after run; None if there are too many."""
    parameters = module.entry.parameters
    if not parameters or not all(p.shape.is_array and _is_plain(p.shape.dtype) for p in parameters):
        return None
    sizes = [1 if is_by_element(module) else p.shape.size for p in parameters]
    widths = [n * p.shape.dtype.bits for n, p in zip(sizes, parameters, strict=True)]
    if sum(widths) > MAXIMUM_BITS:
        return None
    lanes = parameters[0].shape.size if is_by_element(module) else 1
    runs = -(-(1 << sum(widths)) // max(lanes, 1))
    return _runs(parameters, widths, lanes, runs) if lanes and runs <= MAXIMUM_RUNS else None


def _is_plain(dtype: DType) -> bool:
    return dtype.is_integer or dtype is DType.PRED


def is_by_element(module: Module) -> bool:
    """Whether an element of a result depends on the same element of each parameter, and on nothing else."""
    entry = module.entry
    dims = {p.shape.dims for p in entry.parameters}
    return len(dims) == 1 and all(_is_by_element(i, next(iter(dims))) for i in entry.instructions)


def _is_by_element(i: Instruction, dims: tuple[int, ...]) -> bool:
    if i.opcode in (Op.PARAMETER, Op.TUPLE) or (i.opcode is Op.CONSTANT and not i.shape.rank):
        return True
    if i.opcode is Op.BROADCAST:
        return i.operands[0].opcode is Op.CONSTANT and not i.operands[0].shape.rank
    return OPSET[i.opcode].elementwise and i.shape.is_array and i.shape.dims == dims


def _runs(
    parameters: Sequence[Instruction], widths: Sequence[int], lanes: int, runs: int
) -> Iterator[list[np.ndarray]]:
    for run in range(runs):
        numbers = (np.arange(lanes, dtype=np.uint64) + np.uint64(run * lanes)) % np.uint64(1 << sum(widths))
        arrays = []
        for p, width in zip(parameters, widths, strict=True):
            arrays.append(_array(p, numbers & np.uint64((1 << width) - 1), lanes > 1))
            numbers = numbers >> np.uint64(width)
        yield arrays


def _array(parameter: Instruction, numbers: np.ndarray, by_lane: bool) -> np.ndarray:
    """The array whose elements have these bits: one a lane, or all those of the only number."""
    dtype, dims = parameter.shape.dtype, parameter.shape.dims
    if not by_lane:
        places = np.arange(parameter.shape.size, dtype=np.uint64) * np.uint64(dtype.bits)
        numbers = numbers[0] >> places & np.uint64((1 << dtype.bits) - 1)
    signed = numbers.astype(np.int64)
    if dtype.is_signed:
        spare = np.int64(64 - dtype.bits)
        signed = signed << spare >> spare
    return signed.astype(dtype.numpy).reshape(dims)
