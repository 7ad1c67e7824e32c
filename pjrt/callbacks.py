"""JAX's callbacks into Python (pure_callback, io_callback, debug.print, debug.callback) as custom calls of one target.

An attribute of the call is the number of the Python function. What JAX made of the program keeps the function alive.
"""

from __future__ import annotations

import itertools
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ffi
from ..hlo.records import dataclass
from .compile import PYTHON_TARGET
from .names import PLATFORM


class Function:
    """A Python function that programs call by its number. results: the types of its results as JAX knows them."""

    def __init__(self, call: Callable[..., Sequence[Any]], operands: Sequence[Any], results: Sequence[Any]):
        self.call, self.operands, self.results = call, operands, results
        self.number = next(_NUMBERS)
        _FUNCTIONS[self.number] = self


_NUMBERS = itertools.count()
_FUNCTIONS: weakref.WeakValueDictionary[int, Function] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class Wide:
    """How values of types narrower than a byte pass through the call: as the name says in StableHLO."""

    name: str
    dtype: Any


WIDE = {
    "int2": Wide("i8", np.int8),
    "int4": Wide("i8", np.int8),
    "uint2": Wide("ui8", np.uint8),
    "uint4": Wide("ui8", np.uint8),
    "float4_e2m1fn": Wide("f32", np.float32),
}


def _called(operands: Any, results: Any, index: int) -> Any:
    """The handler: operands are valid during the call only, so the function gets copies. Tokens come first."""
    function = _FUNCTIONS.get(index)
    if function is None:
        return ffi.Error(ffi.ErrorCode.INTERNAL, f"the Python function {index} of a callback is gone")
    given = [operands.get(ffi.AnyBuffer, n) for n in range(len(operands))]
    given = given[len(given) - len(function.operands) :]
    made = [results.get(ffi.AnyBuffer, n) for n in range(len(results))]
    made = made[len(made) - len(function.results) :]
    try:
        values = [np.array(g).astype(a.dtype, copy=False) for g, a in zip(given, function.operands, strict=True)]
        for result, value in zip(made, function.call(*values), strict=True):
            result[...] = value
    except Exception:
        return ffi.Error(ffi.ErrorCode.INTERNAL, f"CpuCallback error calling callback: {traceback.format_exc()}")
    return None


def register_target() -> None:
    """Make the target known to the compiler."""
    binding = ffi.bind().remaining_args().remaining_rets().attr(ffi.uint64, "index")
    ffi.register(PYTHON_TARGET, binding.to(_called))


def emit_for(original: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's emit_python_callback, which refuses platforms that it does not know, with a form for this one."""

    def emit_python_callback(
        ctx: Any,
        callback: Any,
        token: Any,
        operands: Sequence[Any],
        operand_avals: Sequence[Any],
        result_avals: Sequence[Any],
        **options: Any,
    ) -> Any:
        if tuple(ctx.module_context.platforms) != (PLATFORM,):
            return original(ctx, callback, token, operands, operand_avals, result_avals, **options)
        return _emit(ctx, callback, token, operands, operand_avals, result_avals, **options)

    return emit_python_callback


def _emit(
    ctx: Any,
    callback: Any,
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Sequence[Any], Any, Any]:
    """As JAX's, with a target of our own. Returns the results, the token behind it, and what must stay alive."""
    from dataclasses import replace

    from jax._src import core
    from jax._src import ffi as jax_ffi
    from jax._src.interpreters import mlir

    if partitioned and result_avals:
        raise ValueError("Partitioned callback not supported with return values.")
    function = Function(_checked(callback, result_avals), operand_avals, result_avals)
    ctx.module_context.add_keepalive(function)
    operands = [_widened(o, a) for o, a in zip(operands, operand_avals, strict=True)]
    inputs, outputs = [_wide_aval(a) for a in operand_avals], [_wide_aval(a) for a in result_avals]
    if token:
        operands, inputs = [token, *operands], [core.abstract_token, *inputs]
        outputs = [core.abstract_token, *outputs]
        sharding = _with_token(sharding, result_avals)
    inner = replace(ctx, avals_in=inputs, avals_out=outputs)
    lower = jax_ffi.build_ffi_lowering_function(PYTHON_TARGET, has_side_effect=has_side_effect)
    call = lower(inner, *operands, index=np.uint64(function.number))
    if sharding is not None:
        mlir.set_sharding(ctx.module_context, call, sharding)
    results = list(call.results)
    if token:
        token, *results = results
    return [_narrowed(r, a) for r, a in zip(results, result_avals, strict=True)], token, function


def _checked(callback: Any, result_avals: Sequence[Any]) -> Callable[..., Sequence[np.ndarray]]:
    """The function with checks of its results, in JAX's words."""
    from jax._src import dtypes

    def call(*values: Any) -> Sequence[np.ndarray]:
        found = callback(*values)
        if len(found) != len(result_avals):
            raise RuntimeError(
                f"Mismatched number of outputs from callback. Expected: {len(result_avals)}, Actual: {len(found)}"
            )
        arrays = tuple(dtypes.canonicalize_value(np.asarray(value)) for value in found)
        for n, (array, aval) in enumerate(zip(arrays, result_avals, strict=True)):
            for what in ("shape", "dtype"):
                wanted, given = getattr(aval, what), getattr(array, what)
                if wanted != given:
                    raise RuntimeError(
                        f"Incorrect output {what} for return value #{n}: Expected: {wanted}, Actual: {given}"
                    )
        return arrays

    return call


def _with_token(sharding: Any, result_avals: Sequence[Any]) -> Any:
    """Shardings with one for the token, which verification asks for."""
    from jax._src.sharding_impls import SdyArray, SdyArrayList

    if not isinstance(sharding, SdyArrayList) or not result_avals:
        return sharding
    first = sharding.shardings[0]
    own = SdyArray(mesh_shape=(), dim_shardings=(), logical_device_ids=first.logical_device_ids)
    return SdyArrayList((own, *sharding.shardings))


def _wide_aval(aval: Any) -> Any:
    wide = WIDE.get(str(getattr(aval, "dtype", "")))
    return aval if wide is None else aval.update(dtype=np.dtype(wide.dtype))


def _widened(value: Any, aval: Any) -> Any:
    return _converted(value, WIDE.get(str(getattr(aval, "dtype", ""))), None)


def _narrowed(value: Any, aval: Any) -> Any:
    return _converted(value, WIDE.get(str(getattr(aval, "dtype", ""))), aval)


def _converted(value: Any, wide: Wide | None, to: Any) -> Any:
    """The value in the wide type, or in that of `to`; unchanged for types that need no other."""
    if wide is None:
        return value
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import hlo

    element = mlir.dtype_to_ir_type(np.dtype(wide.dtype if to is None else to.dtype))
    return hlo.convert(ir.RankedTensorType.get(value.type.shape, element), value)
