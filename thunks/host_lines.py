"""Lines of a function in MLIR's text: names of results, blocks, and operations on numbers, conditions and memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

LARGEST = 1 << 31
"""Offsets from here on do not fit into the constant indices of llvm.getelementptr."""


@dataclass(eq=False)
class Lines:
    """depth: of the next line's block."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    _constants: dict[str, str] = field(default_factory=dict)  # operation by name
    _names: int = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def value(self, text: str) -> str:
        """Write an operation with one result. Returns the result's name."""
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def name(self) -> str:
        """A name for a result that is written by hand."""
        self._names += 1
        return f"%{self._names}"

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    def constants(self) -> list[str]:
        """The lines of all constants, for the head of the function."""
        return [f"    {name} = {operation}" for name, operation in self._constants.items()]

    def constant(self, number: int, kind: str = "i64") -> str:
        name = f"%c{number}_{kind}".replace("-", "m")
        self._constants[name] = f"arith.constant {number} : {kind}"
        return name

    def truth(self, value: bool) -> str:
        text = str(value).lower()
        self._constants[f"%{text}"] = f"arith.constant {text}"
        return f"%{text}"

    def compare(self, relation: str, a: str, b: str, kind: str = "i64") -> str:
        return self.value(f"arith.cmpi {relation}, {a}, {b} : {kind}")

    def both(self, a: str, b: str) -> str:
        return self.value(f"arith.andi {a}, {b} : i1")

    def either(self, a: str, b: str) -> str:
        return self.value(f"arith.ori {a}, {b} : i1")

    def pointer(self, base: str, offset: int) -> str:
        if not offset:
            return base
        if offset >= LARGEST:
            return self.value(f"llvm.getelementptr {base}[{self.constant(offset)}] : (!llvm.ptr, i64) -> !llvm.ptr, i8")
        return self.value(f"llvm.getelementptr {base}[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8")

    def load(self, pointer: str, kind: str = "i64") -> str:
        return self.value(f"llvm.load {pointer} : !llvm.ptr -> {kind}")

    def store(self, value: str, pointer: str) -> None:
        self.line(f"llvm.store {value}, {pointer} : i64, !llvm.ptr")
