"""Arrays of other libraries through DLPack, without a copy; also of types that numpy cannot name (bf16, fp8, …).

Objects with Python's buffer protocol, too.

The structs are those of dlpack.h, version 0 (`dltensor` capsules).
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

from ..hlo.dtypes import DType
from ..hlo.errors import InputError
from ..hlo.later import np

HOST_DEVICES = frozenset({1, 3, 11, 13})
"""kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged: memory that the CPU may read."""

DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 14: "oneapi"}
"""Number of a device type → its name, for messages."""

CODES: dict[tuple[int, int], DType] = {
    **{(0, d.bits): d for d in (DType.S8, DType.S16, DType.S32, DType.S64)},
    **{(1, d.bits): d for d in (DType.U8, DType.U16, DType.U32, DType.U64)},
    **{(2, d.bits): d for d in (DType.F16, DType.F32, DType.F64)},
    (4, 16): DType.BF16,
    **{(5, 8 * d.bytes): d for d in (DType.C64, DType.C128)},
    (6, 8): DType.PRED,
    (7, 8): DType.F8E3M4,
    (8, 8): DType.F8E4M3,
    (9, 8): DType.F8E4M3B11FNUZ,
    (10, 8): DType.F8E4M3FN,
    (11, 8): DType.F8E4M3FNUZ,
    (12, 8): DType.F8E5M2,
    (13, 8): DType.F8E5M2FNUZ,
    (14, 8): DType.F8E8M0FNU,
}
"""(type code, bits) of dlpack.h → element type."""


NUMPYS = "biufc"
"""Kinds of dtypes that numpy's own DLPack takes."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def from_dlpack(value: Any, what: str) -> np.ndarray:
    """A view of an object with `__dlpack__`. what: names the object in messages.

    Raises InputError if its memory is on a device, or if it refuses or has an unknown type.
    """
    try:
        device, number = value.__dlpack_device__()
    except Exception as error:  # each library has errors of its own
        raise _refused(value, what, error) from None
    if int(device) not in HOST_DEVICES:
        name = DEVICES.get(int(device), f"device type {int(device)}")
        raise InputError(f"{what}: the array is on {name}:{number}", remedy="copy it to the CPU first")
    known = getattr(value, "dtype", None)
    if isinstance(known, np.dtype) and known.kind in NUMPYS:  # several times as fast
        with suppress(BufferError, RuntimeError, TypeError, ValueError):  # what follows says why
            array = np.from_dlpack(value)
            array.flags.writeable = False
            return array
    try:
        capsule = value.__dlpack__()
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    except Exception as error:
        return _by_numpy(value, what, error)
    return _view(tensor, capsule, what)


def from_buffer(value: Any) -> np.ndarray | None:
    """A view of an object with the buffer protocol (memoryview, bytes, array.array, ctypes); None if it has none that
    numpy can view.
    """
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, RuntimeError, BufferError):  # no buffer, or a format without a type in numpy
        return None


def _by_numpy(value: Any, what: str, first: Exception) -> np.ndarray:
    """Numpy asks for a newer form of the capsule, which an object that is read-only may need."""
    try:
        return np.from_dlpack(value)
    except Exception:
        raise _refused(value, what, first) from None


def _refused(value: Any, what: str, error: Exception) -> InputError:
    why = str(error).strip().split("\n", 1)[0] or type(error).__name__
    return InputError(f"{what}: {type(value).__name__} gives no DLPack: {why}", remedy="give a dense array")


def _view(tensor: _Tensor, capsule: object, what: str) -> np.ndarray:
    """An array on the tensor's memory. The capsule stays unconsumed, frees the memory when it dies, and lives as long
    as the array."""
    dtype = CODES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise InputError(
            f"{what}: DLPack type code {tensor.code} of {tensor.bits} bits and {tensor.lanes} lanes is unknown",
            remedy="convert it to a type of HLO",
        )
    dims = tuple(tensor.shape[n] for n in range(tensor.ndim))
    steps = [tensor.strides[n] for n in range(tensor.ndim)] if tensor.strides else None
    if steps is None:
        steps = [int(np.prod(dims[n + 1 :], dtype=np.int64)) for n in range(len(dims))]
    if 0 in dims:
        return np.empty(dims, dtype.numpy)
    low = sum(min(0, (n - 1) * s) for n, s in zip(dims, steps))
    high = sum(max(0, (n - 1) * s) for n, s in zip(dims, steps)) + 1
    begin = tensor.data + tensor.byte_offset + low * dtype.bytes
    memory = (ctypes.c_uint8 * ((high - low) * dtype.bytes)).from_address(begin)
    memory.owner = capsule  # type: ignore[attr-defined]
    strides = [s * dtype.bytes for s in steps]
    array = np.ndarray(dims, dtype.numpy, memory, -low * dtype.bytes, strides)
    array.flags.writeable = False
    return array
