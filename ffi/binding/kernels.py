"""Kernels: handlers whose body is machine code. From LLVM IR, or from a Python function that numba compiles.

A kernel is an LLVM function `i32 entry(…)`, where each parameter of the binding stands for these arguments:

    BufferR0 … BufferR4    ptr data, i64 for each dimension
    Buffer                 ptr data, i64 number of elements
    Attr of a scalar       the value (bool: i8; an enum: its integer type; Pointer: i64)
    Attr of Span, str      ptr, i64 size

It returns 0, or a code of absl for an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...codegen.elf import object_symbols
from ...codegen.errors import CodegenError
from ...codegen.load import LINKER_DEFINES, load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target
from ...hlo.dtypes import NUMPY
from ...hlo.errors import InputError
from ..abi import ErrorCode
from .attributes import enum_dtype, scalar_dtype
from .errors import Error
from .specs import ArgSpec, AttrSpec, BufferSpec, PointerSpec, ResultSpec, SpanSpec, Spec


@dataclass(frozen=True, slots=True)
class Kernel:
    """LLVM IR and the name of its function."""

    entry: str
    llvm_ir: str


LLVM_TYPES = {"i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "f4": "float", "f8": "double"}
"""numpy's kind and size of a scalar → LLVM's type; unsigned and bool are integers."""


def llvm_type(dtype: np.dtype) -> str | None:
    """LLVM's type of a scalar attribute; None for complex numbers."""
    return LLVM_TYPES.get(f"{'f' if dtype.kind == 'f' else 'i'}{dtype.itemsize}") if dtype.kind in "biuf" else None


def refusal(spec: Spec) -> str | None:
    """Why a kernel cannot have a parameter, or None."""
    if isinstance(spec, (ArgSpec, ResultSpec)):
        of = spec.of
        if not isinstance(of, BufferSpec):
            return f"{getattr(of, '__name__', of)}: a registered decoding is Python"
        if of.dtype is None:
            return "AnyBuffer: a kernel is compiled for one dtype"
        return None if of.dtype in NUMPY else f"{of.dtype.value}: no dtype of elements"
    if isinstance(spec, AttrSpec):
        if isinstance(spec.type, (SpanSpec, PointerSpec)) or spec.type in (str, bytes):
            return None
        dtype = enum_dtype(spec.type) or scalar_dtype(spec.type)
        if dtype is not None and llvm_type(dtype) is not None:
            return None
        return f"attribute {spec.name}: {getattr(spec.type, '__name__', spec.type)} is no scalar of C, Span or str"
    words = {"OptionalSpec": "an optional operand", "RemainingSpec": "remaining operands", "AttrsSpec": "Attrs"}
    word = words.get(type(spec).__name__) or f"Ctx: {getattr(spec.type, '__name__', spec.type)}"  # type: ignore[union-attr]
    return f"{word}: decoded by Python only"


def check_specs(specs: Sequence[Spec]) -> None:
    """Raises InputError that names the first parameter that no kernel can have."""
    for number, spec in enumerate(specs):
        why = refusal(spec)
        if why is not None:
            raise InputError(f"a kernel cannot have parameter {number}, {why}", remedy="bind what a kernel takes")


def scalar_of(spec: AttrSpec) -> np.dtype | None:
    """The dtype of a scalar attribute; None for Span and str."""
    if isinstance(spec.type, PointerSpec):
        return np.dtype(np.int64)
    return enum_dtype(spec.type) or scalar_dtype(spec.type)


def llvm_arguments(specs: Sequence[Spec]) -> list[str]:
    """The types of a kernel's arguments."""
    found: list[str] = []
    for spec in specs:
        if isinstance(spec, (ArgSpec, ResultSpec)):
            found += ["ptr", *["i64"] * (1 if spec.of.rank is None else spec.of.rank)]
        elif isinstance(spec, AttrSpec):
            dtype = scalar_of(spec)
            found += ["ptr", "i64"] if dtype is None else [llvm_type(dtype) or ""]
    return found


def check_kernel(kernel: Kernel, specs: Sequence[Spec]) -> None:
    """Raises InputError if the LLVM function does not take what the binding gives."""
    from ...codegen.llvm import parse

    try:
        module = parse(kernel.llvm_ir)
    except CodegenError as error:
        raise InputError(f"kernel {kernel.entry}: {error.message}", remedy="give valid LLVM IR") from None
    defined = [f for f in module.functions if not f.is_declaration]
    found = [f for f in defined if f.name == kernel.entry]
    if not found:
        names = ", ".join(f.name for f in defined) or "nothing"
        raise InputError(f"the LLVM IR defines no function {kernel.entry}", remedy=f"it defines {names}")
    types = [str(a.type) for a in found[0].arguments]
    wanted = llvm_arguments(specs)
    result = str(found[0].global_value_type).split(" (")[0]
    if types != wanted or result != "i32":
        got = f"{result} ({', '.join(types)})"
        raise InputError(f"kernel {kernel.entry} is {got}", remedy=f"its binding needs i32 ({', '.join(wanted)})")


C_TYPES = {"ptr": ctypes.c_void_p, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32}
C_TYPES |= {"i64": ctypes.c_int64, "float": ctypes.c_float, "double": ctypes.c_double}


def python_function(kernel: Kernel, specs: tuple[Spec, ...]) -> Callable[..., Any]:
    """A function of arrays and values that calls the kernel, compiled for this process."""
    data = compile_object(kernel.llvm_ir, EmitOptions(Target.host()))
    refuse_foreign(kernel.entry, data)
    code = load([data])
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *[C_TYPES[t] for t in llvm_arguments(specs)])
    native = prototype(code.address(kernel.entry))

    def call(*values: Any) -> Error | None:
        arguments: list[Any] = []
        for spec, value in zip(specs, values):
            arguments += _arguments(spec, value)
        status = native(*arguments)
        return status_error(kernel.entry, status) if status else None

    call.code = code  # type: ignore[attr-defined]  # loaded as long as the function is
    call.__name__ = kernel.entry
    return call


def refuse_foreign(name: str, data: bytes) -> None:
    """Raises InputError if an object needs more than the C library."""
    needed = object_symbols(data).undefined - LINKER_DEFINES
    foreign = sorted(needed - c_library(needed))
    if foreign:
        what = f"the kernel of {name} needs {', '.join(foreign)}, not in the C library or libm"
        raise InputError(what, remedy="no new arrays, exceptions and objects of Python in a function for numba")


def c_library(symbols: Iterable[str]) -> set[str]:
    """Those of the symbols that the C library or libm has."""
    libraries = [ctypes.CDLL("libc.so.6"), ctypes.CDLL("libm.so.6")]
    return {s for s in symbols if any(hasattr(library, s) for library in libraries)}


def _arguments(spec: Spec, value: Any) -> list[Any]:
    if isinstance(spec, (ArgSpec, ResultSpec)):
        return [value.ctypes.data, *([value.size] if spec.of.rank is None else value.shape)]
    if isinstance(value, np.ndarray):
        return [value.ctypes.data, value.size]
    if isinstance(value, (str, bytes)):
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        return [ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data)]
    return [getattr(value, "value", value)]


def status_error(entry: str, status: int) -> Error:
    """The error of what a kernel returned."""
    code = ErrorCode(status) if 0 < status <= max(ErrorCode) else ErrorCode.INTERNAL
    return Error(code, f"kernel {entry} returned {status}")
