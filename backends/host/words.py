"""A builder of LLVM IR for native code on records of 64-bit words, which Python fills in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

I64, I32, VOID, PTR = ir.IntType(64), ir.IntType(32), ir.VoidType(), ir.PointerType()
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
NULL = ir.Constant(PTR, None)


class Words(ir.IRBuilder):
    """A function that is being written. A record is a pointer to its words."""

    def word(self, record: ir.Value, index: int | ir.Value) -> ir.Value:
        """The address of a word."""
        number = I64(index) if isinstance(index, int) else index
        return self.gep(record, [number], source_etype=I64)

    def get(self, record: ir.Value, index: int | ir.Value, kind: ir.Type = I64) -> ir.Value:
        return self.load(self.word(record, index), typ=kind)

    def put(self, record: ir.Value, index: int | ir.Value, value: ir.Value) -> None:
        self.store(value, self.word(record, index))

    def slot(self, kind: ir.Type) -> ir.Value:
        """A variable on the call stack, made once a call even where this is in a loop."""
        with self.goto_entry_block():
            return self.alloca(kind)

    def increase(self, record: ir.Value, index: int, by: ir.Value) -> ir.Value:
        """Add to a word. Returns the sum."""
        total = self.add(self.get(record, index), by)
        self.put(record, index, total)
        return total

    def field(self, record: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
        """The value at an offset in bytes."""
        return self.load(self.gep(record, [I64(offset)], source_etype=ir.IntType(8)), typ=kind)

    def is_null(self, pointer: ir.Value) -> ir.Value:
        return self.icmp_unsigned("==", pointer, NULL)

    def same(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.icmp_unsigned("==", a, b)

    def less(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.icmp_unsigned("<", a, b)

    @contextmanager
    def each(self, count: ir.Value) -> Iterator[ir.Value]:
        """A loop over 0 … count - 1."""
        before = self.basic_block
        head, body, after = (self.append_basic_block(name) for name in ("head", "body", "after"))
        self.branch(head)
        self.position_at_end(head)
        i = self.phi(I64)
        i.add_incoming(I64(0), before)
        self.cbranch(self.less(i, count), body, after)
        self.position_at_end(body)
        yield i
        if not self.basic_block.is_terminated:
            i.add_incoming(self.add(i, I64(1)), self.basic_block)
            self.branch(head)
        self.position_at_end(after)


class NativeModule:
    """An LLVM module. external: functions of other code → result type and argument types."""

    def __init__(self, external: Mapping[str, tuple[ir.Type, tuple[ir.Type, ...]]]):
        self.module = ir.Module()
        self.functions = {name: self._declare(name, *types) for name, types in external.items()}

    def _declare(self, name: str, result: ir.Type, arguments: tuple[ir.Type, ...]) -> ir.Function:
        return ir.Function(self.module, ir.FunctionType(result, arguments), name)

    def data(self, name: str) -> ir.Value:
        """The address of data or of an object elsewhere."""
        variable = ir.GlobalVariable(self.module, I64, name)
        variable.linkage = "external"
        return variable

    @contextmanager
    def function(
        self, name: str, result: ir.Type, *arguments: ir.Type, internal: bool = False
    ) -> Iterator[tuple[Words, Any]]:
        """A builder at the start of a new function, and the function's arguments."""
        function = self.functions[name] = self._declare(name, result, arguments)
        function.linkage = "internal" if internal else ""
        yield Words(function.append_basic_block("entry")), function.args

    def call(self, b: Words, name: str, *arguments: ir.Value) -> ir.Value:
        return b.call(self.functions[name], arguments)

    def text(self) -> str:
        return str(self.module)
