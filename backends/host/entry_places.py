"""Native code that checks the arrays of a call and places its results. The words of its records stand here.

All functions hold the interpreter's lock. entry.py fills in the records and says what is probed.
"""

from __future__ import annotations

from llvmlite import ir

from ...hlo.records import dataclass
from .words import DOUBLE, FLOAT, I32, I64, NULL, PTR, VOID, NativeModule, Words

PROGRAM = (
    *("free", "contexts", "inputs", "outputs", "input_leaves", "output_leaves", "run", "unlocked", "kind", "finish"),
    *("copied", "copies", "aliased", "aliases", "takes_out", "direct", "calls", "loops", "left", "position", "rounds"),
    "key",
)
"""Words of a program: number of free contexts and the array of their addresses; numbers and records of leaves; the
native function; whether to release the interpreter's lock; the Kind of its result, and the function that makes a tree
of it; numbers and records of copies and of aliases; whether `out=` is an option; whether arguments are the inputs;
calls that were served; number of loops, the first of their words in the control, that of the position, and what to set;
for a program that calls handlers, 1 more than the key of the thread's block (ffi/calls.py), else 0.
"""

LEAF = ("descr", "rank", "dims", "strides", "mask", "bytes", "allocation", "shelf", "flags", "scalar")
"""Words of a leaf. dims, strides: arrays; no strides: C order. mask: alignment - 1. flags: those that numpy must have
set. shelf: of the pool, for a result. scalar: a Scalar, if Python's numbers of one type are taken.
"""

COPY = ("output", "from", "offset", "size")
"""Words of a copy after a run, from an allocation to a result."""

ALIAS = ("input", "result", "length")
"""Words of an input and a result that share memory: the input is copied there before a run."""

CONTEXT = ("bases", "control", "addresses", "places", "cells", "resume", "checked", "block", "failed")
"""Words of a context: addresses by allocation; what the native function takes; of the inputs and results of a call;
a word for each input, which holds a number that was given for it; the Python function that ends a run in which a loop
has paused; whether the addresses and places are known not to overlap; the block of the runs, for handlers, and the
Python function that raises what one reported.
"""

W = {name: n for words in (PROGRAM, LEAF, COPY, ALIAS, CONTEXT) for n, name in enumerate(words)}

SINGLE, TUPLE, TREE, LIST = range(4)
"""Kinds of results: an array, a tuple of arrays, a tree that a Python function makes of a tuple, a list."""

NO_SCALAR, SCALAR_F32, SCALAR_F64, SCALAR_S32, SCALAR_S64 = range(5)
"""Values of a leaf's word `scalar`: the type that a Python float or int is stored as."""

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
"""Flags of numpy."""

MOST_OVERLAPS = 1 << 22
"""Comparisons of addresses, about 1 ns each, that a call makes here; from there on the Python code sorts them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes: of the type in an object; of fields in numpy's arrays; of the slot in an executable."""

    type: int
    data: int
    rank: int
    dims: int
    strides: int
    descr: int
    flags: int
    slot: int


PYTHON: dict[str, tuple[ir.Type, tuple[ir.Type, ...]]] = {
    "Py_IncRef": (VOID, (PTR,)),
    "Py_DecRef": (VOID, (PTR,)),
    "PyErr_Clear": (VOID, ()),
    "PyErr_Occurred": (PTR, ()),
    "PyTuple_New": (PTR, (I64,)),
    "PyTuple_SetItem": (I32, (PTR, I64, PTR)),
    "PyTuple_GetItem": (PTR, (PTR, I64)),
    "PyTuple_Size": (I64, (PTR,)),
    "PyList_New": (PTR, (I64,)),
    "PyList_SetItem": (I32, (PTR, I64, PTR)),
    "PyLong_FromLong": (PTR, (I64,)),
    "PyLong_AsLong": (I64, (PTR,)),
    "PyLong_AsLongAndOverflow": (I64, (PTR, PTR)),
    "PyFloat_AsDouble": (DOUBLE, (PTR,)),
    "PyCapsule_New": (PTR, (PTR, PTR, PTR)),
    "PyCapsule_GetPointer": (PTR, (PTR, PTR)),
    "PyCapsule_GetContext": (PTR, (PTR,)),
    "PyCapsule_SetContext": (I32, (PTR, PTR)),
    "PyObject_CallOneArg": (PTR, (PTR, PTR)),
    "PyObject_Vectorcall": (PTR, (PTR, PTR, I64, PTR)),
    "PyEval_SaveThread": (PTR, ()),
    "PyEval_RestoreThread": (VOID, (PTR,)),
}
"""Functions of Python's stable interface."""

LIBC: dict[str, tuple[ir.Type, tuple[ir.Type, ...]]] = {
    "memmove": (PTR, (PTR, PTR, I64)),
    "pthread_getspecific": (PTR, (I32,)),
    "pthread_setspecific": (I32, (I32, PTR)),
}
"""Functions of the C library."""

OTHERS: dict[str, tuple[ir.Type, tuple[ir.Type, ...]]] = {
    "testbed_take": (PTR, (PTR,)),
    "testbed_give": (VOID, (PTR, PTR)),
    "testbed_new_array": (PTR, (PTR, PTR, I32, PTR, PTR, PTR, I32, PTR)),
    "testbed_set_base": (I32, (PTR, PTR)),
    **LIBC,
}
"""Functions of the pool, of numpy (PyArray_NewFromDescr, PyArray_SetBaseObject) and of the C library."""

OBJECTS = tuple(
    f"testbed_{name}"
    for name in ("array_type", "tuple_type", "float_type", "int_type", "none", "out", "slowly", "block")
)
"""Objects: types, None, the string 'out', a cell with the Python function of calls; the name of capsules."""


class Places(NativeModule):
    """Functions for the arrays of a call."""

    def __init__(self, layout: Layout):
        super().__init__(PYTHON | OTHERS)
        self.layout = layout
        self.objects = {name: self.data(name) for name in OBJECTS}
        self._fits()
        self._number()
        self._overlap()
        self._place_inputs()
        self._place_outputs()
        self._end_of_block()
        self._fresh()
        self._results()

    def is_exact(self, b: Words, value: ir.Value, kind: str) -> ir.Value:
        """Whether an object has exactly this type."""
        return b.same(b.field(value, self.layout.type, PTR), self.objects[kind])

    def is_none(self, b: Words, value: ir.Value) -> ir.Value:
        return b.same(value, self.objects["testbed_none"])

    # -- checks ----------------------------------------------------------------------------------------------------
    def _fits(self) -> None:
        """The address of an object that is an array as the leaf wants it, or -1."""
        at = self.layout
        with self.function("fits", I64, PTR, PTR, internal=True) as (b, (leaf, value)):
            bad = I64(-1)

            def need(condition: ir.Value) -> None:
                with b.if_then(b.not_(condition), likely=False):
                    b.ret(bad)

            need(self.is_exact(b, value, "testbed_array_type"))
            need(b.same(b.field(value, at.descr, PTR), b.get(leaf, W["descr"], PTR)))
            rank = b.get(leaf, W["rank"])
            need(b.same(b.zext(b.field(value, at.rank, I32), I64), rank))
            flags = b.get(leaf, W["flags"])
            need(b.same(b.and_(b.zext(b.field(value, at.flags, I32), I64), flags), flags))
            dims, wanted = b.field(value, at.dims, PTR), b.get(leaf, W["dims"], PTR)
            with b.each(rank) as i:
                need(b.same(b.get(dims, i), b.get(wanted, i)))
            order = b.get(leaf, W["strides"], PTR)
            with b.if_then(b.not_(b.is_null(order))):
                strides = b.field(value, at.strides, PTR)
                with b.each(rank) as i:
                    need(b.or_(b.same(b.get(strides, i), b.get(order, i)), b.less(b.get(wanted, i), I64(2))))
            address = b.field(value, at.data, I64)
            need(b.same(b.and_(address, b.get(leaf, W["mask"])), I64(0)))
            b.ret(address)

    def _number(self) -> None:
        """The address of the cell, with a Python number as the leaf's type in it; -1 for another type or range."""
        with self.function("number", I64, PTR, PTR, PTR, internal=True) as (b, (leaf, value, cell)):
            scalar, bad, good = b.get(leaf, W["scalar"]), I64(-1), b.ptrtoint(cell, I64)

            def need(condition: ir.Value) -> None:
                with b.if_then(b.not_(condition), likely=False):
                    b.ret(bad)

            need(b.not_(b.same(scalar, I64(NO_SCALAR))))
            with b.if_then(b.less(scalar, I64(SCALAR_S32))):
                need(self.is_exact(b, value, "testbed_float_type"))
                number = self.call(b, "PyFloat_AsDouble", value)
                with b.if_then(b.same(scalar, I64(SCALAR_F64))):
                    b.store(number, cell)
                    b.ret(good)
                narrow, infinite = b.fptrunc(number, FLOAT), ir.Constant(DOUBLE, "inf")
                wide = b.fpext(narrow, DOUBLE)
                for limit in (infinite, b.fneg(infinite)):  # numpy warns of an overflow
                    need(b.not_(b.and_(b.fcmp_ordered("==", wide, limit), b.fcmp_ordered("!=", number, limit))))
                b.store(narrow, cell)
                b.ret(good)
            need(self.is_exact(b, value, "testbed_int_type"))
            overflow = b.slot(I32)
            whole = self.call(b, "PyLong_AsLongAndOverflow", value, overflow)
            need(b.same(b.load(overflow, typ=I32), I32(0)))
            with b.if_then(b.same(scalar, I64(SCALAR_S64))):
                b.store(whole, cell)
                b.ret(good)
            need(b.same(b.sext(b.trunc(whole, I32), I64), whole))
            b.store(b.trunc(whole, I32), cell)
            b.ret(good)

    def _overlap(self) -> None:
        """Whether an address range overlaps one of the first `count` leaves at their addresses."""
        types = (I64, I64, PTR, PTR, I64)
        with self.function("overlaps", ir.IntType(1), *types, internal=True) as (b, arguments):
            begin, size, leaves, addresses, number = arguments
            end = b.add(begin, size)
            with b.each(number) as i:
                other, length = b.get(addresses, i), b.get(self.leaf(b, leaves, i), W["bytes"])
                apart = b.or_(b.not_(b.less(begin, b.add(other, length))), b.not_(b.less(other, end)))
                empty = b.or_(b.same(size, I64(0)), b.same(length, I64(0)))
                with b.if_then(b.not_(b.or_(apart, empty)), likely=False):
                    b.ret(ir.Constant(ir.IntType(1), 1))
            b.ret(ir.Constant(ir.IntType(1), 0))

    def leaf(self, b: Words, leaves: ir.Value, i: ir.Value) -> ir.Value:
        return b.word(leaves, b.mul(i, I64(len(LEAF))))

    # -- memory ----------------------------------------------------------------------------------------------------
    def _place_inputs(self) -> None:
        """Whether all arguments fit. Writes their addresses to the context and the table of allocations."""
        with self.function("place_inputs", ir.IntType(1), PTR, PTR, PTR, internal=True) as (
            b,
            (program, context, args),
        ):
            leaves, bases = b.get(program, W["input_leaves"], PTR), b.get(context, W["bases"], PTR)
            addresses = b.get(context, W["addresses"], PTR)
            with b.each(b.get(program, W["inputs"])) as i:
                leaf = self.leaf(b, leaves, i)
                slot, value = b.slot(I64), b.get(args, i, PTR)
                b.store(self.call(b, "fits", leaf, value), slot)
                with b.if_then(b.same(b.load(slot, typ=I64), I64(-1)), likely=False):
                    b.store(self.call(b, "number", leaf, value, b.word(b.get(context, W["cells"], PTR), i)), slot)
                address = b.load(slot, typ=I64)
                with b.if_then(b.same(address, I64(-1)), likely=False):
                    b.ret(ir.Constant(ir.IntType(1), 0))
                self.note(b, context, addresses, i, address)
                b.put(bases, b.get(leaf, W["allocation"]), address)
            b.ret(ir.Constant(ir.IntType(1), 1))

    def _place_outputs(self) -> None:
        """Whether the caller's arrays for results fit and overlap nothing. A place of 0 is for a new array."""
        types = (PTR, PTR, PTR)
        with self.function("place_outputs", ir.IntType(1), *types, internal=True) as (b, (program, context, outs)):
            leaves, places = b.get(program, W["output_leaves"], PTR), b.get(context, W["places"], PTR)
            addresses, inputs = b.get(context, W["addresses"], PTR), b.get(program, W["inputs"])
            input_leaves, number = b.get(program, W["input_leaves"], PTR), b.get(program, W["outputs"])
            no, yes = ir.Constant(ir.IntType(1), 0), ir.Constant(ir.IntType(1), 1)
            with b.if_then(b.is_null(outs)):
                with b.each(number) as i:
                    self.note(b, context, places, i, I64(0))
                b.ret(yes)
            complete = b.slot(I64)
            b.store(I64(1), complete)
            with b.each(number) as i:
                given, slot = b.get(outs, i, PTR), b.slot(I64)
                with b.if_else(self.is_none(b, given)) as (new, mine):
                    with new:
                        b.store(I64(0), slot)
                        b.store(I64(0), complete)
                    with mine:
                        b.store(self.call(b, "fits", self.leaf(b, leaves, i), given), slot)
                address = b.load(slot, typ=I64)
                with b.if_then(b.same(address, I64(-1)), likely=False):
                    b.ret(no)
                self.note(b, context, places, i, address)
            with b.if_then(b.same(b.get(context, W["checked"]), I64(1))):
                b.ret(yes)
            pairs = b.mul(number, b.add(number, inputs))
            with b.if_then(b.less(I64(MOST_OVERLAPS), pairs), likely=False):
                b.ret(no)
            with b.each(number) as i:
                address, size = b.get(places, i), b.get(self.leaf(b, leaves, i), W["bytes"])
                with b.if_then(b.not_(b.same(address, I64(0)))):
                    inside = self.call(b, "overlaps", address, size, input_leaves, addresses, inputs)
                    among = self.call(b, "overlaps", address, size, leaves, places, i)
                    with b.if_then(b.or_(inside, among), likely=False):
                        b.ret(no)
            b.put(context, W["checked"], b.load(complete, typ=I64))
            b.ret(yes)

    def note(self, b: Words, context: ir.Value, places: ir.Value, i: ir.Value, address: ir.Value) -> None:
        """Write an address. Overlaps are to be checked again if it is another one."""
        with b.if_then(b.not_(b.same(b.get(places, i), address))):
            b.put(context, W["checked"], I64(0))
            b.put(places, i, address)

    def _end_of_block(self) -> None:
        with self.function("end_of_block", VOID, PTR) as (b, (capsule,)):
            block = self.call(b, "PyCapsule_GetPointer", capsule, self.objects["testbed_block"])
            self.call(b, "testbed_give", self.call(b, "PyCapsule_GetContext", capsule), block)
            b.ret_void()

    def _fresh(self) -> None:
        """A new array on a block of the pool, or null. Writes the block's address."""
        with self.function("fresh", PTR, PTR, PTR, internal=True) as (b, (leaf, place)):
            shelf = b.get(leaf, W["shelf"], PTR)
            block = self.call(b, "testbed_take", shelf)
            with b.if_then(b.is_null(block), likely=False):
                b.ret(NULL)
            capsule = self.call(
                b, "PyCapsule_New", block, self.objects["testbed_block"], self.functions["end_of_block"]
            )
            with b.if_then(b.is_null(capsule), likely=False):
                self.call(b, "testbed_give", shelf, block)
                b.ret(NULL)
            self.call(b, "PyCapsule_SetContext", capsule, shelf)
            descr, strides = b.get(leaf, W["descr"], PTR), b.get(leaf, W["strides"], PTR)
            self.call(b, "Py_IncRef", descr)
            rank, dims, kind = b.trunc(b.get(leaf, W["rank"]), I32), b.get(leaf, W["dims"], PTR), "testbed_array_type"
            flags = b.trunc(b.get(leaf, W["flags"]), I32)
            made = self.call(b, "testbed_new_array", self.objects[kind], descr, rank, dims, strides, block, flags, NULL)
            with b.if_then(b.is_null(made), likely=False):
                self.call(b, "Py_DecRef", capsule)
                b.ret(NULL)
            self.call(b, "testbed_set_base", made, capsule)
            b.store(b.ptrtoint(block, I64), place)
            b.ret(made)

    def _results(self) -> None:
        """The results of a call, an array or a container of them, with all places known; or null."""
        types = (PTR, PTR, PTR, I64)
        with self.function("results", PTR, *types, internal=True) as (b, (program, context, outs, kind)):
            leaves, number = b.get(program, W["output_leaves"], PTR), b.get(program, W["outputs"])
            places, bases = b.get(context, W["places"], PTR), b.get(context, W["bases"], PTR)
            holder = b.slot(PTR)
            b.store(NULL, holder)
            is_list, is_single = b.same(kind, I64(LIST)), b.same(kind, I64(SINGLE))
            with b.if_then(b.not_(is_single)):
                with b.if_else(is_list) as (a_list, a_tuple):
                    with a_list:
                        b.store(self.call(b, "PyList_New", number), holder)
                    with a_tuple:
                        b.store(self.call(b, "PyTuple_New", number), holder)
                with b.if_then(b.is_null(b.load(holder, typ=PTR)), likely=False):
                    b.ret(NULL)
            item = b.slot(PTR)
            with b.each(number) as i:
                leaf, place = self.leaf(b, leaves, i), b.word(places, i)
                with b.if_else(b.same(b.load(place, typ=I64), I64(0))) as (new, given):
                    with new:
                        b.store(self.call(b, "fresh", leaf, place), item)
                    with given:
                        b.store(b.get(outs, i, PTR), item)
                        self.call(b, "Py_IncRef", b.load(item, typ=PTR))
                value, container = b.load(item, typ=PTR), b.load(holder, typ=PTR)
                with b.if_then(b.is_null(value), likely=False):
                    with b.if_then(b.not_(is_single)):
                        self.call(b, "Py_DecRef", container)
                    b.ret(NULL)
                b.put(bases, b.get(leaf, W["allocation"]), b.load(place, typ=I64))
                with b.if_else(is_single) as (alone, among):
                    with alone:
                        b.store(value, holder)
                    with among, b.if_else(is_list) as (a_list, a_tuple):
                        with a_list:
                            self.call(b, "PyList_SetItem", container, i, value)
                        with a_tuple:
                            self.call(b, "PyTuple_SetItem", container, i, value)
            b.ret(b.load(holder, typ=PTR))
