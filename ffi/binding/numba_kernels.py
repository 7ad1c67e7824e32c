"""A Python function compiled by numba → a kernel: arrays become numba's arrays over the buffers, attributes numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...hlo.dtypes import NUMPY
from ...hlo.errors import InputError
from ..abi import ErrorCode
from .kernels import Kernel, llvm_arguments, scalar_of
from .specs import ArgSpec, AttrSpec, ResultSpec, SpanSpec, Spec


def numba_kernel(function: Callable[..., Any], specs: Sequence[Spec]) -> Kernel:
    """Compile a function of arrays and numbers. Raises InputError, with numba's reason."""
    try:
        import numba
    except ImportError:
        remedy = "install numba, or give ffi.Kernel(name, llvm_ir)"
        raise InputError("a kernel in Python needs numba, which is not installed", remedy=remedy) from None
    name = re.sub(r"\W", "_", f"{getattr(function, '__name__', 'kernel')}_numba", flags=re.ASCII)
    inner = function if hasattr(function, "py_func") else numba.njit(error_model="numpy")(function)
    signature, outer = _outer(numba, inner, specs)
    try:
        compiled = numba.njit(signature, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(outer)
        (result,) = compiled.overloads.values()
        text = str(result.library._final_module)
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        raise InputError(f"numba cannot compile {name}: {why}", remedy="see numba's documentation") from None
    return Kernel(name, _alone(text + _entry(name, result.fndesc.llvm_func_name, llvm_arguments(specs)), name))


def _outer(numba: Any, inner: Any, specs: Sequence[Spec]) -> tuple[Any, Callable[..., Any]]:
    """A function of pointers and sizes that calls `inner` with arrays, and its signature."""
    types: list[Any] = []
    parameters: list[str] = []
    passed: list[str] = []
    for number, spec in enumerate(specs):
        if isinstance(spec, (ArgSpec, ResultSpec)) or _is_span(spec):
            dtype, rank = _array_of(spec)
            sizes = [f"n{number}_{k}" for k in range(rank)]
            types += [numba.types.CPointer(_number_type(numba, dtype, number)), *[numba.int64] * rank]
            parameters += [f"p{number}", *sizes]
            passed.append(f"carray(p{number}, ({', '.join(sizes)}{',' if rank else ''}))" if rank else _cell(number))
        elif isinstance(spec, AttrSpec):
            scalar = scalar_of(spec)
            if scalar is None:
                raise InputError(f"attribute {spec.name}: numba takes no text", remedy="pass numbers")
            types.append(_number_type(numba, scalar, number))
            parameters.append(f"p{number}")
            passed.append(f"p{number}")
    text = f"def outer({', '.join(parameters)}):\n    inner({', '.join(passed)})\n"
    namespace: dict[str, Any] = {"inner": inner, "carray": numba.carray}
    exec(text, namespace)
    return numba.void(*types), namespace["outer"]


def _alone(llvm_ir: str, entry: str) -> str:
    """The module with everything local but the entry, so that LLVM drops what that does not use."""
    from ...codegen.llvm import parse

    module = parse(llvm_ir)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != entry:
            value.linkage = "internal"
    return str(module)


def _cell(number: int) -> str:
    """An array of rank 0, which numba makes of one element."""
    return f"carray(p{number}, ())"


def _is_span(spec: Spec) -> bool:
    return isinstance(spec, AttrSpec) and isinstance(spec.type, SpanSpec)


def _array_of(spec: Any) -> tuple[Any, int]:
    if isinstance(spec, AttrSpec):
        import numpy as np

        return np.dtype(spec.type.of), 1
    return NUMPY[spec.of.dtype], 1 if spec.of.rank is None else spec.of.rank


def _number_type(numba: Any, dtype: Any, number: int) -> Any:
    try:
        return numba.from_dtype(dtype)
    except Exception:
        raise InputError(f"parameter {number}: numba has no type {dtype}", remedy="give ffi.Kernel(…)") from None


def _entry(name: str, called: str, types: Sequence[str]) -> str:
    """A kernel's function: numba's own returns 0 or -2 (None), and takes places of a result and of an error."""
    given = ", ".join(f"{t} %a{n}" for n, t in enumerate(types))
    rest = f", {given}" if given else ""
    return f"""
define i32 @{name}({given}) {{
  %result = alloca [4 x i64], align 16
  %error = alloca ptr, align 8
  %status = call i32 @"{called}"(ptr %result, ptr %error{rest})
  %zero = icmp eq i32 %status, 0
  %none = icmp eq i32 %status, -2
  %good = or i1 %zero, %none
  %code = select i1 %good, i32 0, i32 {int(ErrorCode.INTERNAL)}
  ret i32 %code
}}
"""
