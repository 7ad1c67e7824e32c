"""Handlers for the evaluator: custom calls on numpy arrays in logical order, by the call sites of compiled code."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..hlo.dtypes import DType
from ..hlo.ir import Instruction
from ..hlo.library.foreign import aliases, is_packed, wanted_shapes
from ..hlo.shapes import Shape
from .abi import Buffer
from .api import native
from .calls import Run, running
from .description import describe
from .layout import FRAME, FrameLayout
from .packing import pack, unpack
from .refusals import refusal
from .registry import CallVersion, lookup
from .sites import Site

_INVOKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_SITES: dict[Instruction, Site] = {}
_MOST = 64
"""Call sites that are kept for the next evaluation of the same module."""
_LOCK = threading.Lock()


def call(i: Instruction, operands: Sequence[Any], _context: object = None) -> Any:
    """The result of a custom call: an array, or a tuple of them. Raises UnsupportedError and CallError."""
    site = _site(i)
    given = [leaf for value, o in zip(operands, i.operands) for leaf in _flat(value, o.shape)]
    wanted = [leaf for shape in wanted_shapes(i) for _, leaf in shape.leaves()]
    results = [_Memory(shape) for _, shape in i.shape.leaves()]
    held = [_Memory(w, value) for w, value in zip(wanted, given, strict=True)]
    first = {n: sum(1 for o in i.operands[:n] for _ in o.shape.leaves()) for n in range(len(i.operands))}
    for row, leaf in aliases(i).items():
        results[leaf] = held[first[row]] = _Memory(results[leaf].shape, given[first[row]])
    run = Run(lambda *_: None)
    try:
        with running(run):
            site.begin()
            if run.error is None:
                _invoke(site, [m.address for m in held], [m.address for m in results], i.shape.is_tuple)
    finally:
        run.end()
    run.raise_error()
    return _nested(i.shape, iter([m.logical for m in results]))


def _site(i: Instruction) -> Site:
    with _LOCK:
        if i not in _SITES:
            error = refusal(i)
            if error is not None:
                raise error
            description = describe(i)
            while len(_SITES) >= _MOST:
                del _SITES[next(iter(_SITES))]
            _SITES[i] = Site(description, lookup(description.target, what=i.name, location=i.location))
        return _SITES[i]


def _invoke(site: Site, operands: Sequence[int], results: Sequence[int], is_tuple: bool) -> None:
    function = _INVOKE(native().invoke[site.invoke])
    if site.handler.version is not CallVersion.API_VERSION_TYPED_FFI:
        given, made = ((ctypes.c_void_p * max(1, len(p)))(*p) for p in (operands, results))
        function(site.address, ctypes.addressof(given), ctypes.addressof(made) if is_tuple else (*results, None)[0])
        return
    layout = FrameLayout(len(operands), len(results))
    block = (ctypes.c_uint64 * (layout.size // 8))()
    start = ctypes.addressof(block)
    ctypes.memmove(start, site.address + FRAME, layout.size)
    for place, target in layout.places.items():
        block[place // 8] = start + target
    for number, address in enumerate([*operands, *results]):
        block[(layout.buffer(number) + Buffer.data.offset) // 8] = address
    function(site.address, start, None)


class _Memory:
    """The bytes of an array in the layout of its shape, packed where handlers see them so."""

    def __init__(self, shape: Shape, value: Any = None):
        self.shape, self.address = shape, 0
        if shape.dtype is DType.TOKEN:
            return
        order = tuple(reversed(shape.minor_to_major))
        self._axes = np.argsort(order)
        self._physical = np.zeros([shape.dims[d] for d in order], shape.dtype.numpy)
        if value is not None:
            self._physical.transpose(self._axes)[...] = value
        self._packed = pack(self._physical, shape.dtype) if is_packed(shape) else None
        self.address = (self._physical if self._packed is None else self._packed).ctypes.data

    @property
    def logical(self) -> Any:
        """The array in logical order; None of a token."""
        if self.shape.dtype is DType.TOKEN:
            return None
        if self._packed is not None:
            elements = unpack(self._packed, self._physical.size, self.shape.dtype)
            self._physical = elements.reshape(self._physical.shape)
        return self._physical.transpose(self._axes)


def _flat(value: Any, shape: Shape) -> Iterator[Any]:
    if shape.is_tuple:
        for element, inner in zip(value, shape.elements, strict=True):
            yield from _flat(element, inner)
    else:
        yield None if shape.dtype is DType.TOKEN else value


def _nested(shape: Shape, leaves: Iterator[Any]) -> Any:
    if shape.is_tuple:
        return tuple(_nested(element, leaves) for element in shape.elements)
    return next(leaves)
