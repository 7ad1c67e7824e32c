"""Custom-call targets by name. LAPACK's (lapack_*_ffi of jaxlib) run through SciPy; callers may pass their own."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...hlo.conventions import ANNOTATIONS, CALL_REMEDIES, SINKS
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.library.handlers import CALLS
from . import dynamic_windows, lapack, sorting
from .context import Context, Value

CustomCall = Callable[[Instruction, Sequence[Value], Context], Value]


def first_operand(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    """An annotation: returns the operands unchanged."""
    return operands[0] if len(operands) == 1 else tuple(operands)


def nothing(_instruction: Instruction, _operands: Sequence[Value], _context: Context) -> Value:
    """A sink: an empty tuple."""
    return ()


def pad_to_static(instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    """(the array padded with zeros to its bounds, the size of each dimension as s32)."""
    (x,) = operands
    bound = instruction.shape.elements[0].dims
    padded = np.pad(x, [(0, n - m) for m, n in zip(x.shape, bound, strict=True)])
    return (padded, *(np.array(n, np.int32) for n in x.shape))


def slice_to_dynamic(instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    """The array cut to the given sizes, one scalar operand per dimension."""
    x, *sizes = operands
    return x[tuple(slice(0, max(int(n), 0)) for n in sizes)]


TARGETS: dict[str, CustomCall] = {
    "PadToStatic": pad_to_static,
    "SliceToDynamic": slice_to_dynamic,
    **dict.fromkeys(ANNOTATIONS, first_operand),
    **dict.fromkeys(SINKS, nothing),
    "TopK": sorting.topk_call,
    **dynamic_windows.TARGETS,
    **lapack.TARGETS,
}


def run_custom_call(
    instruction: Instruction, operands: Sequence[Value], context: Context, extra: Mapping[str, CustomCall]
) -> Value:
    """Run a target; the caller's targets (`extra`) take precedence over TARGETS.

    Raises UnsupportedError with similar names for an unknown target.
    """
    target = instruction.attributes["custom_call_target"]
    run = extra.get(target) or TARGETS.get(target) or CALLS.get(target)
    if run is not None:
        return run(instruction, operands, context)
    near = difflib.get_close_matches(target, [*extra, *TARGETS, *CALLS], n=3)
    known = f"near names: {', '.join(near)}" if near else CALL_REMEDIES.get(target, "pass it in custom_calls")
    raise UnsupportedError("evaluator", f"custom-call({target})", location=instruction.location, remedy=known)
