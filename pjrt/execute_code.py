"""LoadedExecutable_Execute as LLVM IR: check buffers, take a context, place the results, run, make buffers of them.

Whatever is rare goes to the Python form before anything has changed: several devices, deleted or misaligned inputs, the
same buffer given up twice, inputs that must not be given up, more parallel runs than contexts.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ..backends.host.words import I64, NULL, PTR, Words
from .native_code import I8, Native
from .records import BUFFER, COPY, INPUT_LEAF, OUTPUT_LEAF, PAIR, ROUNDS, W

NAME = "LoadedExecutable_Execute"
RUN = ir.FunctionType(I64, (PTR, PTR)).as_pointer()
IN, OUT, E, B, C = W["input"], W["output"], W["executable"], W["buffer"], W["context"]


def native_ir() -> str:
    """LLVM IR of all native functions of the plugin."""
    return Execute().text()


class Execute(Native):
    """The native functions with the one that runs programs."""

    def __init__(self) -> None:
        super().__init__()
        self._checks()
        self._claim()
        self._places()
        self._outputs()
        self.api(NAME, self._execute)

    def row(self, b: Words, rows: ir.Value, number: ir.Value, words: tuple[str, ...]) -> ir.Value:
        return b.word(rows, b.mul(number, I64(len(words))))

    def _checks(self) -> None:
        """Whether native code takes the inputs: none is deleted or misaligned, none is given up and used again."""
        with self.function("fits", ir.IntType(1), PTR, PTR, internal=True) as (b, (exe, args)):
            no, yes = ir.Constant(ir.IntType(1), 0), ir.Constant(ir.IntType(1), 1)
            count, leaves = b.get(exe, E["inputs"]), b.get(exe, E["input_leaves"], PTR)
            with b.each(count) as i:
                buffer = b.get(args, i, PTR)
                mask = b.get(self.row(b, leaves, i, INPUT_LEAF), IN["mask"])
                off = b.not_(b.same(b.and_(b.get(buffer, B["data"]), mask), I64(0)))
                with b.if_then(b.or_(off, b.not_(b.same(b.get(buffer, B["deleted"]), I64(0)))), likely=False):
                    b.ret(no)
            rows = b.get(exe, E["donated_rows"], PTR)
            with b.each(b.get(exe, E["donated"])) as k:
                number = b.get(rows, k)
                buffer = b.get(args, number)
                with b.each(count) as i:
                    other = b.not_(b.same(i, number))
                    with b.if_then(b.and_(other, b.same(b.get(args, i), buffer)), likely=False):
                        b.ret(no)
            b.ret(yes)

    def _claim(self) -> None:
        """A context that no run uses, or null."""
        with self.function("claim", PTR, PTR, internal=True) as (b, (exe,)):
            contexts = b.get(exe, E["contexts"], PTR)
            with b.each(b.get(exe, E["ready"])) as i:
                context = b.get(contexts, i, PTR)
                pair = b.cmpxchg(b.word(context, C["busy"]), I64(0), I64(1), "acq_rel", "acquire")
                with b.if_then(b.extract_value(pair, 1), likely=True):
                    b.ret(context)
            b.ret(NULL)

    def _places(self) -> None:
        """Take memory for the results, and write its addresses into an array. False, with nothing taken, if there is
        none.

        An input that shares memory with a result gives it, if the caller gives the input up and nothing else reads it;
        else it is copied there. `taken`: for each result the buffer that gives its memory, or null.
        """
        types = (PTR, PTR, PTR, PTR)
        with self.function("place", ir.IntType(1), *types, internal=True) as (b, (exe, args, places, taken)):
            count, leaves = b.get(exe, E["outputs"]), b.get(exe, E["output_leaves"], PTR)
            with b.each(count) as i:
                b.put(places, i, I64(0))
                b.put(taken, i, NULL)
            rows = b.get(exe, E["pair_rows"], PTR)
            with b.each(b.get(exe, E["pairs"])) as k:
                pair = self.row(b, rows, k, PAIR)
                buffer, output = b.get(args, b.get(pair, W["pair"]["input"]), PTR), b.get(pair, W["pair"]["output"])
                alone = b.same(b.get(buffer, B["refs"]), I64(2))  # the handle and this run
                given = b.and_(alone, b.same(b.get(buffer, B["owned"]), I64(1)))
                given = b.and_(given, b.same(b.get(pair, W["pair"]["donated"]), I64(1)))
                with b.if_then(given):
                    b.put(places, output, b.get(buffer, B["data"]))
                    b.put(taken, output, buffer)
            with b.each(count) as i, b.if_then(b.same(b.get(places, i), I64(0))):
                shelf = b.get(self.row(b, leaves, i, OUTPUT_LEAF), OUT["shelf"], PTR)
                with b.if_then(b.not_(b.is_null(shelf)), likely=True):
                    block = self.call(b, "testbed_take", shelf)
                    with b.if_then(b.is_null(block), likely=False):
                        self._give_back(b, leaves, places, taken, i)
                        b.ret(ir.Constant(ir.IntType(1), 0))
                    b.put(places, i, block)
            b.ret(ir.Constant(ir.IntType(1), 1))

    def _give_back(self, b: Words, leaves: ir.Value, places: ir.Value, taken: ir.Value, count: ir.Value) -> None:
        with b.each(count) as i:
            shelf = b.get(self.row(b, leaves, i, OUTPUT_LEAF), OUT["shelf"], PTR)
            mine = b.and_(b.not_(b.is_null(shelf)), b.is_null(b.get(taken, i, PTR)))
            with b.if_then(mine):
                self.call(b, "testbed_give", shelf, b.get(places, i, PTR))

    def _outputs(self) -> None:
        """Make the buffers of the results."""
        types = (PTR, PTR, PTR, PTR)
        with self.function("finish", ir.VoidType(), *types, internal=True) as (b, (exe, places, taken, results)):
            leaves = b.get(exe, E["output_leaves"], PTR)
            with b.each(b.get(exe, E["outputs"])) as i:
                leaf = self.row(b, leaves, i, OUTPUT_LEAF)
                size, shelf, giver = b.get(leaf, OUT["size"]), b.get(leaf, OUT["shelf"]), b.get(taken, i, PTR)
                buffer = self.call(b, "malloc", size)
                self.call(b, "memcpy", buffer, b.get(leaf, OUT["template"], PTR), size)
                b.put(buffer, B["dims"], b.gep(buffer, [I64(8 * len(BUFFER))], source_etype=I8))
                with b.if_then(b.not_(b.same(shelf, I64(0))), likely=True):
                    place = b.get(places, i)
                    b.put(buffer, B["data"], place)
                    with b.if_else(b.is_null(giver)) as (new, old):
                        with new:
                            b.put(buffer, B["release_a"], shelf)
                            b.put(buffer, B["release_b"], place)
                        with old:
                            for word in ("release", "release_a", "release_b"):
                                b.put(buffer, B[word], b.get(giver, B[word]))
                            b.put(giver, B["release"], I64(0))
                b.put(results, i, buffer)
            b.ret_void()

    def _execute(self, b: Words, args: ir.Value) -> None:
        def slowly(condition: ir.Value, before: Callable[[], None] = lambda: None) -> None:
            with b.if_then(condition, likely=False):
                before()
                b.ret(self.call(b, f"slow_{NAME}", args))

        exe, options = self.argument(b, args, NAME, "executable"), self.argument(b, args, NAME, "options")
        slowly(b.same(b.get(exe, E["native"]), I64(0)))
        slowly(b.not_(b.same(self.argument(b, args, NAME, "num_devices", I64), I64(1))))
        slowly(b.not_(b.same(self.argument(b, args, NAME, "num_args", I64), b.get(exe, E["inputs"]))))
        kept = self.option(b, options, "num_non_donatable_input_indices")
        slowly(b.and_(b.not_(b.same(kept, I64(0))), b.not_(b.same(b.get(exe, E["donated"]), I64(0)))))
        inputs = b.get(self.argument(b, args, NAME, "argument_lists"), 0, PTR)
        results = b.get(self.argument(b, args, NAME, "output_lists"), 0, PTR)
        slowly(b.not_(self.call(b, "fits", exe, inputs)))
        context = self.call(b, "claim", exe)
        slowly(b.is_null(context))
        count, outputs = b.get(exe, E["inputs"]), b.get(exe, E["outputs"])
        with b.each(count) as i:
            self.add(b, b.get(inputs, i, PTR), B["refs"], 1)
        room = b.alloca(I64, b.add(b.mul(outputs, I64(2)), I64(1)))
        places, taken = room, b.word(room, outputs)
        placed = self.call(b, "place", exe, inputs, places, taken)
        slowly(b.not_(placed), lambda: self._leave(b, context, inputs, count))
        status = self._run(b, exe, context, inputs, places)

        def undo() -> None:
            self._give_back(b, b.get(exe, E["output_leaves"], PTR), places, taken, outputs)
            self._leave(b, context, inputs, count)

        slowly(b.not_(b.same(status, I64(0))), undo)
        self.call(b, "finish", exe, places, taken, results)
        rows = b.get(exe, E["donated_rows"], PTR)
        with b.each(b.get(exe, E["donated"])) as k:
            self.call(b, "testbed_delete", b.get(inputs, b.get(rows, k), PTR))
        self._leave(b, context, inputs, count)
        events = self.argument(b, args, NAME, "device_complete_events")
        with b.if_then(b.not_(b.is_null(events))):
            b.put(events, 0, self.ready)

    def option(self, b: Words, options: ir.Value, name: str) -> ir.Value:
        from .api import structure

        return b.field(options, getattr(structure("PJRT_ExecuteOptions"), name).offset, I64)

    def _leave(self, b: Words, context: ir.Value, inputs: ir.Value, count: ir.Value) -> None:
        """Give the context back, and the references on the inputs."""
        self.swap(b, context, C["busy"], I64(0))
        with b.each(count) as i:
            self.call(b, "testbed_drop", b.get(inputs, i, PTR))

    def _run(self, b: Words, exe: ir.Value, context: ir.Value, inputs: ir.Value, places: ir.Value) -> ir.Value:
        """Write all addresses where the program reads them, and run it. Returns its status."""
        bases, control = b.get(context, C["bases"], PTR), b.get(context, C["control"], PTR)
        leaves = b.get(exe, E["input_leaves"], PTR)
        with b.each(b.get(exe, E["inputs"])) as i:
            where = b.get(self.row(b, leaves, i, INPUT_LEAF), IN["allocation"])
            b.put(bases, where, b.get(b.get(inputs, i, PTR), B["data"]))
        leaves = b.get(exe, E["output_leaves"], PTR)
        with b.each(b.get(exe, E["outputs"])) as i:
            b.put(bases, b.get(self.row(b, leaves, i, OUTPUT_LEAF), OUT["allocation"]), b.get(places, i))
        self._copy_inputs(b, exe, inputs, places)
        loops, first = b.get(exe, E["loops"]), b.get(exe, E["loop_word"])
        with b.each(loops) as i:
            b.put(control, b.add(first, i), I64(ROUNDS))
            b.put(control, b.get(exe, E["position"]), I64(0))
        status = b.call(b.get(exe, E["run"], RUN), [bases, control])
        copies = b.get(exe, E["copies"], PTR)
        with b.each(b.get(exe, E["copied"])) as i:
            row = self.row(b, copies, i, COPY)
            source = b.add(b.get(bases, b.get(row, W["copy"]["allocation"])), b.get(row, W["copy"]["offset"]))
            target = b.get(places, b.get(row, W["copy"]["output"]), PTR)
            self.call(b, "memmove", target, b.inttoptr(source, PTR), b.get(row, W["copy"]["bytes"]))
        return status

    def _copy_inputs(self, b: Words, exe: ir.Value, inputs: ir.Value, places: ir.Value) -> None:
        """Copy inputs that share memory with a result and do not give it up."""
        rows = b.get(exe, E["pair_rows"], PTR)
        with b.each(b.get(exe, E["pairs"])) as k:
            pair = self.row(b, rows, k, PAIR)
            source = b.get(b.get(inputs, b.get(pair, W["pair"]["input"]), PTR), B["data"], PTR)
            target = b.get(places, b.get(pair, W["pair"]["output"]), PTR)
            with b.if_then(b.not_(b.same(b.ptrtoint(source, I64), b.ptrtoint(target, I64)))):
                self.call(b, "memcpy", target, source, b.get(pair, W["pair"]["bytes"]))
