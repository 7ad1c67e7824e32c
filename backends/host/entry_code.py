"""The native code of calls from Python: claim a context, check and place the arrays, run, return.

A value that these functions do not take (RETRY) goes to the Python code, which converts it or raises the error that
names it. They hold the interpreter's lock, except during the run of a program that is not short.
"""

from __future__ import annotations

from llvmlite import ir

from ...ffi.run_words import HAS_FAILED, INHERITED, RUN_ID
from .entry_places import ALIAS, COPY, LIST, SINGLE, TREE, TUPLE, Layout, Places, W
from .words import I32, I64, NULL, PTR, Words

RETRY = ir.Constant(I64, 1).inttoptr(PTR)
"""What functions return instead of an object if the Python code has to do it."""

FAILED = I64(-100)
"""The status of a run in which Python raised an exception."""


def entry_ir(layout: Layout) -> str:
    """LLVM IR of the functions that Python calls (METH_FASTCALL):

    testbed_call(executable, arguments…, out=): a call; with other keywords, or for RETRY, the Python function;
    testbed_execute(words, inputs, outputs): tuples of arrays, outputs may be None; a list, or None for RETRY;
    testbed_claim(words) takes a free context and gives its address, or 0; testbed_release(words, address).
    words: the array with the record of a program.
    """
    return _Entry(layout).text()


class _Entry(Places):
    def __init__(self, layout: Layout):
        super().__init__(layout)
        self._program()
        self._go()
        self._run()
        self._serve()
        self._call_slowly()
        self._call()
        self._execute()
        self._claims()

    def _program(self) -> None:
        """The record of an executable: the data of the array in its slot, or null."""
        with self.function("program", PTR, PTR, internal=True) as (b, (executable,)):
            held = b.field(executable, self.layout.slot, PTR)
            with b.if_then(b.is_null(held)):
                b.ret(NULL)
            with b.if_then(b.not_(self.is_exact(b, held, "testbed_array_type"))):
                b.ret(NULL)
            b.ret(b.field(held, self.layout.data, PTR))

    # -- the run ---------------------------------------------------------------------------------------------------
    def _go(self) -> None:
        """Copy aliased inputs, run, copy results that lie elsewhere. Returns the status of the native function."""
        with self.function("go", I64, PTR, PTR, internal=True) as (b, (program, context)):
            bases, places = b.get(context, W["bases"], PTR), b.get(context, W["places"], PTR)
            addresses = b.get(context, W["addresses"], PTR)
            alias, copy = b.get(program, W["aliases"], PTR), b.get(program, W["copies"], PTR)
            unlocked = b.not_(b.same(b.get(program, W["unlocked"]), I64(0)))
            state = b.slot(PTR)
            with b.if_then(unlocked):
                b.store(self.call(b, "PyEval_SaveThread"), state)
            with b.each(b.get(program, W["aliased"])) as i:
                row = b.word(alias, b.mul(i, I64(len(ALIAS))))
                source = b.get(addresses, b.get(row, W["input"]), PTR)
                target = b.get(places, b.get(row, W["result"]), PTR)
                self.call(b, "memmove", target, source, b.get(row, W["length"]))
            function = b.get(program, W["run"], ir.FunctionType(I64, (PTR, PTR)).as_pointer())
            control = b.get(context, W["control"], PTR)
            left = b.get(program, W["left"])
            with b.each(b.get(program, W["loops"])) as i:
                b.put(control, b.add(left, i), b.get(program, W["rounds"]))
                b.put(control, b.get(program, W["position"]), I64(0))
            status = b.call(function, [bases, control])
            with b.if_then(b.icmp_signed(">", status, I64(0)), likely=False):
                self._resume(b, context, status, unlocked, state)
            with b.each(b.get(program, W["copied"])) as i:
                row = b.word(copy, b.mul(i, I64(len(COPY))))
                source = b.add(b.get(bases, b.get(row, W["from"])), b.get(row, W["offset"]))
                target = b.get(places, b.get(row, W["output"]), PTR)
                self.call(b, "memmove", target, b.inttoptr(source, PTR), b.get(row, W["size"]))
            with b.if_then(unlocked):
                self.call(b, "PyEval_RestoreThread", b.load(state, typ=PTR))
            b.ret(b.select(b.icmp_signed(">", status, I64(0)), I64(0), status))

    def _resume(self, b: Words, context: ir.Value, status: ir.Value, unlocked: ir.Value, state: ir.Value) -> None:
        """Let Python run a paused loop to its end. Returns FAILED from the function after an exception."""
        with b.if_then(unlocked):
            self.call(b, "PyEval_RestoreThread", b.load(state, typ=PTR))
        number = self.call(b, "PyLong_FromLong", status)
        with b.if_then(b.is_null(number), likely=False):
            b.ret(FAILED)
        done = self.call(b, "PyObject_CallOneArg", b.get(context, W["resume"], PTR), number)
        self.call(b, "Py_DecRef", number)
        with b.if_then(b.is_null(done), likely=False):
            b.ret(FAILED)
        self.call(b, "Py_DecRef", done)
        with b.if_then(unlocked):
            b.store(self.call(b, "PyEval_SaveThread"), state)

    def _run(self) -> None:
        """As `go`. Handlers that the program calls meanwhile belong to the block of the context, which inherits from
        the thread's. Returns FAILED with an exception if one reported an error.
        """
        with self.function("run", I64, PTR, PTR, internal=True) as (b, (program, context)):
            key = b.get(program, W["key"])
            with b.if_then(b.same(key, I64(0)), likely=True):
                b.ret(self.call(b, "go", program, context))
            key, block = b.trunc(b.sub(key, I64(1)), I32), b.get(context, W["block"], PTR)
            outer = self.call(b, "pthread_getspecific", key)
            b.put(block, RUN_ID, I64(0))
            with b.if_else(b.is_null(outer)) as (alone, inside):
                for branch, value in ((alone, lambda _: I64(0)), (inside, lambda n: b.get(outer, n))):
                    with branch:
                        for n in INHERITED:
                            b.put(block, n, value(n))
            self.call(b, "pthread_setspecific", key, block)
            status = self.call(b, "go", program, context)
            self.call(b, "pthread_setspecific", key, outer)
            with b.if_then(b.not_(b.same(b.get(block, HAS_FAILED), I64(0))), likely=False):
                self.call(b, "PyErr_Clear")
                self.call(b, "PyObject_CallOneArg", b.get(context, W["failed"], PTR), self.objects["testbed_none"])
                b.ret(FAILED)
            b.ret(status)

    def _serve(self) -> None:
        """A call with arrays of arguments and, unless null, of results. Returns results of the kind, null or RETRY."""
        types = (PTR, PTR, PTR, I64)
        with self.function("serve", PTR, *types, internal=True) as (b, (program, args, outs, kind)):
            free = b.get(program, W["free"])
            with b.if_then(b.same(free, I64(0)), likely=False):
                b.ret(RETRY)
            rest, contexts = b.sub(free, I64(1)), b.get(program, W["contexts"], PTR)
            context = b.get(contexts, rest, PTR)
            b.put(program, W["free"], rest)
            for place, values in (("place_inputs", args), ("place_outputs", outs)):
                with b.if_then(b.not_(self.call(b, place, program, context, values)), likely=False):
                    self.give_back(b, program, context)
                    b.ret(RETRY)
            result = self.call(b, "results", program, context, outs, kind)
            with b.if_then(b.is_null(result), likely=False):
                self.give_back(b, program, context)
                self.call(b, "PyErr_Clear")
                b.ret(RETRY)
            status = self.call(b, "run", program, context)
            self.give_back(b, program, context)
            with b.if_then(b.not_(b.same(status, I64(0))), likely=False):
                self.call(b, "Py_DecRef", result)
                quiet = b.is_null(self.call(b, "PyErr_Occurred"))
                b.ret(b.select(quiet, RETRY, NULL))
            b.increase(program, W["calls"], I64(1))
            b.ret(result)

    def give_back(self, b: Words, program: ir.Value, context: ir.Value) -> None:
        free = b.get(program, W["free"])
        b.put(b.get(program, W["contexts"], PTR), free, b.ptrtoint(context, I64))
        b.put(program, W["free"], b.add(free, I64(1)))

    # -- what Python calls -----------------------------------------------------------------------------------------
    def _call_slowly(self) -> None:
        """Call the Python function with the executable before the arguments."""
        with self.function("call_slowly", PTR, PTR, PTR, I64, PTR, internal=True) as (b, (self_, args, nargs, names)):
            total = b.slot(I64)
            b.store(nargs, total)
            with b.if_then(b.not_(b.is_null(names))):
                b.store(b.add(nargs, self.call(b, "PyTuple_Size", names)), total)
            number = b.load(total, typ=I64)
            given = b.alloca(PTR, b.add(number, I64(1)))
            b.store(self_, given)
            with b.each(number) as i:
                b.put(given, b.add(i, I64(1)), b.get(args, i, PTR))
            function = b.get(self.objects["testbed_slowly"], 0, PTR)
            b.ret(self.call(b, "PyObject_Vectorcall", function, given, b.add(nargs, I64(1)), names))

    def _call(self) -> None:
        with self.function("quickly", PTR, PTR, PTR, I64, PTR, internal=True) as (b, (self_, args, nargs, names)):
            program = self.call(b, "program", self_)
            with b.if_then(b.is_null(program), likely=False):
                b.ret(RETRY)
            fits = b.and_(b.same(nargs, b.get(program, W["inputs"])), b.same(b.get(program, W["direct"]), I64(1)))
            with b.if_then(b.not_(fits), likely=False):
                b.ret(RETRY)
            kind, number = b.get(program, W["kind"]), b.get(program, W["outputs"])
            outs = b.slot(PTR)
            b.store(NULL, outs)
            with b.if_then(b.not_(b.is_null(names))):
                self._out(b, program, b.word(args, nargs), names, outs, kind, number)
            result = self.call(b, "serve", program, args, b.load(outs, typ=PTR), kind)
            plain = b.or_(b.not_(b.same(kind, I64(TREE))), b.less(b.ptrtoint(result, I64), I64(2)))
            with b.if_then(plain, likely=True):
                b.ret(result)
            tree = self.call(b, "PyObject_CallOneArg", b.get(program, W["finish"], PTR), result)
            self.call(b, "Py_DecRef", result)
            b.ret(tree)
        with self.function("testbed_call", PTR, PTR, PTR, I64, PTR) as (b, arguments):
            result = self.call(b, "quickly", *arguments)
            with b.if_then(b.not_(b.same(result, RETRY)), likely=True):
                b.ret(result)
            b.ret(self.call(b, "call_slowly", *arguments))

    def _out(
        self,
        b: Words,
        program: ir.Value,
        place: ir.Value,
        names: ir.Value,
        outs: ir.Value,
        kind: ir.Value,
        number: ir.Value,
    ) -> None:
        """Find the arrays of `out=`, which must be the only keyword. Returns RETRY from the function if it is not."""

        def need(condition: ir.Value) -> None:
            with b.if_then(b.not_(condition), likely=False):
                b.ret(RETRY)

        need(b.same(self.call(b, "PyTuple_Size", names), I64(1)))
        need(b.same(self.call(b, "PyTuple_GetItem", names, I64(0)), self.objects["testbed_out"]))
        need(b.same(b.get(program, W["takes_out"]), I64(1)))
        given = b.load(place, typ=PTR)
        is_single = b.same(kind, I64(SINGLE))
        with b.if_then(b.not_(self.is_none(b, given))), b.if_else(is_single) as (single, several):
            with single:
                b.store(place, outs)
            with several:
                need(b.same(kind, I64(TUPLE)))
                b.store(self._items(b, given, number), outs)

    def _items(self, b: Words, given: ir.Value, number: ir.Value) -> ir.Value:
        """An array of the items of a tuple. Returns RETRY from the function if it is none of that length."""
        with b.if_then(b.not_(self.is_exact(b, given, "testbed_tuple_type")), likely=False):
            b.ret(RETRY)
        with b.if_then(b.not_(b.same(self.call(b, "PyTuple_Size", given), number)), likely=False):
            b.ret(RETRY)
        items = b.alloca(PTR, number)
        with b.each(number) as i:
            b.put(items, i, self.call(b, "PyTuple_GetItem", given, i))
        return items

    def _execute(self) -> None:
        with self.function("flat", PTR, PTR, PTR, PTR, internal=True) as (b, (record, inputs, outputs)):
            program = b.field(record, self.layout.data, PTR)
            args = self._items(b, inputs, b.get(program, W["inputs"]))
            outs = b.slot(PTR)
            b.store(NULL, outs)
            with b.if_then(b.not_(self.is_none(b, outputs))):
                b.store(self._items(b, outputs, b.get(program, W["outputs"])), outs)
            b.ret(self.call(b, "serve", program, args, b.load(outs, typ=PTR), I64(LIST)))
        with self.function("testbed_execute", PTR, PTR, PTR, I64) as (b, (_, args, _)):
            result = self.call(b, "flat", *(b.get(args, n, PTR) for n in range(3)))
            with b.if_then(b.not_(b.same(result, RETRY)), likely=True):
                b.ret(result)
            none = self.objects["testbed_none"]
            self.call(b, "Py_IncRef", none)
            b.ret(none)

    def _claims(self) -> None:
        """Contexts for the Python code."""
        with self.function("testbed_claim", PTR, PTR, PTR, I64) as (b, (_, args, _)):
            program = b.field(b.get(args, 0, PTR), self.layout.data, PTR)
            free = b.get(program, W["free"])
            with b.if_then(b.same(free, I64(0))):
                b.ret(self.call(b, "PyLong_FromLong", I64(0)))
            rest = b.sub(free, I64(1))
            b.put(program, W["free"], rest)
            b.ret(self.call(b, "PyLong_FromLong", b.get(b.get(program, W["contexts"], PTR), rest)))
        with self.function("testbed_release", PTR, PTR, PTR, I64) as (b, (_, args, _)):
            program = b.field(b.get(args, 0, PTR), self.layout.data, PTR)
            address = self.call(b, "PyLong_AsLong", b.get(args, 1, PTR))
            self.give_back(b, program, b.inttoptr(address, PTR))
            none = self.objects["testbed_none"]
            self.call(b, "Py_IncRef", none)
            b.ret(none)
