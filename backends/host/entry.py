"""The fast entry from Python: native functions that check arrays, place results and run a program (entry_code.py).

It depends on the layout of Python's objects and numpy's arrays. Both are probed before the first run; where a probe
fails (another Python, a debug build, a Python without its lock), calls go through the Python code.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.cache import ObjectCache
from ...codegen.load import LoadedCode, load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions
from ...hlo.dtypes import DType
from ...hlo.records import dataclass, replace
from ...thunks.patched import NativeRun
from ...thunks.rounds import LOOP_SECONDS
from ..calling import Calling
from .addresses import KNOWN_MAJORS, address_of, by_layout
from .entry_code import entry_ir
from .entry_places import (
    ALIAS,
    ALIGNED,
    C_CONTIGUOUS,
    CONTEXT,
    COPY,
    LEAF,
    LIBC,
    NO_SCALAR,
    PROGRAM,
    PYTHON,
    SCALAR_F32,
    SCALAR_F64,
    SCALAR_S32,
    SCALAR_S64,
    SINGLE,
    TREE,
    TUPLE,
    WRITEABLE,
    Layout,
    W,
)
from .interruptible import SHORT
from .leaves import Leaf
from .memory import POOL, native_functions
from .signature import Signature

if TYPE_CHECKING:
    from ...ffi.sites import Sites

KNOWN_PYTHONS = ((3, 11), (3, 13))
"""The first and the last minor version of CPython whose objects have this layout."""

NEW_FROM_DESCR, SET_BASE_OBJECT = 94, 282
"""Places of PyArray_NewFromDescr and PyArray_SetBaseObject in numpy's table, which is its stable binary interface."""

METH_FASTCALL, METH_KEYWORDS = 0x80, 0x2


class _MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@dataclass(frozen=True, eq=False, slots=True)
class Native:
    """The functions as Python objects. keep: what they use, for as long as the process lives.

    call: a method of executables. execute, claim and release: as testbed_execute and so on in entry_code.py.
    """

    call: Any
    execute: Callable[..., Any]
    claim: Callable[[Any], int]
    release: Callable[[Any, int], None]
    keep: tuple[Any, ...]


_LOCK = threading.Lock()
_native: dict[type, Native | None] = {}


def native_entry(owner: type, slot: str, slowly: Callable[..., Any], cache: ObjectCache | None) -> Native | None:
    """The native functions for instances of a class; None if the layout of objects is unknown.

    slot: the attribute with the record of a program, one of `__slots__`. slowly: the function that calls go to
    otherwise.
    """
    with _LOCK:
        if owner not in _native:
            layout = probe(owner, slot)
            _native[owner] = None if layout is None else _load(layout, owner, slowly, cache)
            if (native := _native[owner]) is not None:
                owner.__call__ = native.call  # type: ignore[method-assign]
        return _native[owner]


# -- probes -----------------------------------------------------------------------------------------------------------
def probe(owner: type, slot: str) -> Layout | None:
    """The layout of arrays, of objects and of the slot in instances; None if it is unknown."""
    if sys.implementation.name != "cpython" or not KNOWN_PYTHONS[0] <= sys.version_info[:2] <= KNOWN_PYTHONS[1]:
        return None
    if hasattr(sys, "gettotalrefcount") or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    if np.__version__.split(".")[0] not in KNOWN_MAJORS or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    head = object.__basicsize__
    layout = Layout(head - 8, head, head + 8, head + 16, head + 24, head + 40, head + 48, _offset_of(owner, slot))
    return layout if layout.slot > 0 and all(_is_laid_out(a, layout) for a in _probes()) else None


def _offset_of(owner: type, slot: str) -> int:
    """The offset in bytes of a slot in an instance; 0 if it is not found."""
    instance, mark = object.__new__(owner), object()
    setattr(instance, slot, mark)
    words = (ctypes.c_size_t * (owner.__basicsize__ // 8)).from_address(id(instance))
    found = [n * 8 for n, word in enumerate(words) if word == id(mark)]
    return found[0] if len(found) == 1 else 0


def _probes() -> list[np.ndarray]:
    frozen = np.arange(6, dtype=np.int16)
    frozen.flags.writeable = False
    cube = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    return [frozen, cube, cube.T, cube[::-1, 1:, ::2], np.array(1.5), np.zeros((0, 3), np.uint8)]


def _is_laid_out(array: np.ndarray, at: Layout) -> bool:
    """Whether the fields of an array are where the layout says."""

    def word(offset: int, kind: Any = ctypes.c_size_t) -> Any:
        return kind.from_address(id(array) + offset).value

    rank = word(at.rank, ctypes.c_int)
    if word(at.type) != id(np.ndarray) or word(at.descr) != id(array.dtype) or rank != array.ndim:
        return False
    if by_layout(array) != array.__array_interface__["data"][0] or by_layout(array) != word(at.data):
        return False
    dims, strides, sizes = word(at.dims), word(at.strides), ctypes.c_ssize_t * rank
    if rank and (not dims or strides != dims + 8 * rank):  # numpy allocates them together
        return False
    if rank and (tuple(sizes.from_address(dims)), tuple(sizes.from_address(strides))) != (array.shape, array.strides):
        return False
    flags, f = word(at.flags, ctypes.c_int), array.flags
    wanted = (f.c_contiguous, C_CONTIGUOUS), (f.aligned, ALIGNED), (f.writeable, WRITEABLE)
    return all(bool(flags & bit) == is_set for is_set, bit in wanted)


# -- native functions -------------------------------------------------------------------------------------------------
def _load(layout: Layout, owner: type, slowly: Callable[..., Any], cache: ObjectCache | None) -> Native:
    cell = ctypes.py_object(slowly)
    name = ctypes.create_string_buffer(b"testbed.block")
    out = sys.intern("out")
    imports = {function: _address(getattr(ctypes.pythonapi, function)) for function in PYTHON}
    library = ctypes.CDLL(None)
    imports |= {function: _address(getattr(library, function)) for function in LIBC} | native_functions() | _numpys()
    imports |= {
        "testbed_array_type": id(np.ndarray),
        "testbed_tuple_type": id(tuple),
        "testbed_float_type": id(float),
        "testbed_int_type": id(int),
        "testbed_none": id(None),
        "testbed_out": id(out),
        "testbed_slowly": ctypes.addressof(cell),
        "testbed_block": ctypes.addressof(name),
    }
    options = replace(EmitOptions.host(), ranges=False)
    code = load([compile_object(entry_ir(layout), options, cache)], imports)
    functions, definitions = _functions(code)
    call = _method(owner, code, slowly.__doc__ or "")
    execute, claim, release = functions
    return Native(call[0], execute, claim, release, (code, cell, name, out, definitions, call[1]))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _numpys() -> dict[str, int]:
    """Functions of numpy, from the table that it exports."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    capsule = _multiarray_umath()._ARRAY_API
    table = prototype(_address(get))(capsule, None)
    words = (ctypes.c_size_t * (SET_BASE_OBJECT + 1)).from_address(table)
    return {"testbed_new_array": words[NEW_FROM_DESCR], "testbed_set_base": words[SET_BASE_OBJECT]}


def _multiarray_umath() -> Any:
    """The module with numpy's table; it has another name in numpy 1."""
    return import_module(f"numpy.{'_core' if np.__version__.startswith('2') else 'core'}._multiarray_umath")


def _functions(code: LoadedCode) -> tuple[list[Any], list[_MethodDef]]:
    """Builtin functions on native code."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        _address(ctypes.pythonapi.PyCFunction_NewEx)
    )
    names = ("execute", "claim", "release")
    definitions = [
        _MethodDef(name.encode(), code.address(f"testbed_{name}"), METH_FASTCALL, b"of executables") for name in names
    ]
    return [make(ctypes.addressof(d), None, None) for d in definitions], definitions


def _method(owner: type, code: LoadedCode, doc: str) -> tuple[Any, _MethodDef]:
    """The method for calls of a class."""
    text = f"__call__($self, /, *arguments, **named)\n--\n\n{doc}"
    definition = _MethodDef(b"__call__", code.address("testbed_call"), METH_FASTCALL | METH_KEYWORDS, text.encode())
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        _address(ctypes.pythonapi.PyDescr_NewMethod)
    )
    return make(owner, ctypes.addressof(definition)), definition


# -- records ----------------------------------------------------------------------------------------------------------
class Program:
    """The record of a program for the native functions, and all that it points to. words: the record itself.

    seconds: an upper estimate of a run in which each loop takes one iteration. loops: whether it has any.
    contexts: how many of them the native functions may use at once. sites: its calls of handlers, if it has any.
    """

    def __init__(
        self,
        signature: Signature,
        calling: Calling,
        seconds: float,
        loops: bool,
        contexts: int,
        sites: Sites | None = None,
    ):
        self.signature, self._finish, self._sites = signature, calling.result, sites
        variable = signature.variable
        self._leaves = [_Leaves(signature.inputs, variable[: len(signature.inputs)], False)]
        self._leaves.append(_Leaves(signature.outputs, variable[len(signature.inputs) :], True))
        self._contexts = np.zeros(contexts, np.uint64)
        copies = [(number, s.allocation, s.offset, s.size) for number, s in signature.copied]
        aliases = [(source, target, signature.outputs[target].bytes) for source, target in signature.aliased]
        self._copies, self._aliases = _rows(copies, COPY), _rows(aliases, ALIAS)
        self.words = np.zeros(len(PROGRAM), np.uint64)
        values = {
            "contexts": address_of(self._contexts),
            "inputs": len(signature.inputs),
            "outputs": len(signature.outputs),
            "input_leaves": address_of(self._leaves[0].words),
            "output_leaves": address_of(self._leaves[1].words),
            "unlocked": loops or seconds >= SHORT,
            "rounds": max(1, int(LOOP_SECONDS / max(seconds, 1e-6))),
            "kind": KINDS[calling.result_form],
            "finish": id(self._finish),
            "copied": len(copies),
            "copies": address_of(self._copies),
            "aliased": len(aliases),
            "aliases": address_of(self._aliases),
            "takes_out": calling.has_option("out"),
            "direct": calling.takes_inputs,
            "key": 0 if sites is None else 1 + sites.key,
        }
        for name, value in values.items():
            self.words[W[name]] = value

    @property
    def calls(self) -> int:
        """Calls that the native functions have served."""
        return int(self.words[W["calls"]])

    @property
    def free(self) -> int:
        """Contexts that no call uses."""
        return int(self.words[W["free"]])

    def context(self, bases: np.ndarray, run: NativeRun) -> tuple[int, object]:
        """The address of the record of a new context, and what must live as long. bases: for the native function."""
        inputs, outputs = len(self.signature.inputs), len(self.signature.outputs)
        scratch = np.zeros(2 * inputs + outputs, np.uint64)
        addresses = address_of(scratch)
        places, cells = addresses + 8 * inputs, addresses + 8 * (inputs + outputs)
        resume = None if run.resume is None else functools.partial(self._resume, run)
        runs = None if self._sites is None else self._sites.runs(run.stop)
        belongs = (0, 0) if runs is None else (runs.address, id(runs))
        values = [address_of(bases), address_of(run.control), addresses, places, cells]
        values += [0 if resume is None else id(resume), 0, *belongs]
        words = np.array(values, np.uint64)
        assert len(words) == len(CONTEXT)
        self.words[W["run"]], self.words[W["loops"]] = run.function, len(run.loops)
        self.words[W["left"]], self.words[W["position"]] = run.loops.start, run.position
        return address_of(words), (words, scratch, runs, resume)

    def _resume(self, run: NativeRun, status: int) -> None:
        """Run to the end a run that has paused, and let later ones make as many iterations before they do."""
        assert run.resume is not None
        run.resume(status)
        self.words[W["rounds"]] = max(int(self.words[W["rounds"]]), min(run.limits))


SCALARS = {DType.F32: SCALAR_F32, DType.F64: SCALAR_F64, DType.S32: SCALAR_S32, DType.S64: SCALAR_S64}
"""Types of parameters for which the native functions take a Python float or int."""

KINDS = {"array": SINGLE, "tuple": TUPLE, "tree": TREE}


class _Leaves:
    """The records of leaves. allocations: of each leaf."""

    def __init__(self, leaves: Sequence[Leaf], allocations: Sequence[int], results: bool):
        self._kept: list[Any] = []
        self.words = _rows([self._row(leaf, a, results) for leaf, a in zip(leaves, allocations, strict=True)], LEAF)

    def _row(self, leaf: Leaf, allocation: int, result: bool) -> tuple[int, ...]:
        sizes = np.array(leaf.dims, np.int64)
        strides = np.array(_strides(leaf), np.int64)
        descr = leaf.dtype
        self._kept += [sizes, strides, descr]
        flags = ALIGNED | (C_CONTIGUOUS if leaf.order is None else 0) | (WRITEABLE if result else 0)
        order = 0 if leaf.order is None else address_of(strides)
        shelf = POOL.shelf(leaf.capacity) if result else 0
        rank, mask = len(leaf.dims), leaf.alignment - 1
        scalar = SCALARS.get(leaf.shape.dtype, NO_SCALAR) if not leaf.dims and not result else NO_SCALAR
        return id(descr), rank, address_of(sizes), order, mask, leaf.bytes, allocation, shelf, flags, scalar


def _strides(leaf: Leaf) -> list[int]:
    """Bytes between neighbours along each dimension, in logical order."""
    strides, step = [0] * len(leaf.dims), leaf.dtype.itemsize
    for dimension in reversed(leaf.order or range(len(leaf.dims))):
        strides[dimension] = step
        step *= leaf.dims[dimension]
    return strides


def _rows(rows: Sequence[tuple[int, ...]], words: Sequence[str]) -> np.ndarray:
    return np.array(rows, np.uint64).reshape(len(rows), len(words))
