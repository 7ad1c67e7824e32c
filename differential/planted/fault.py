"""Fault, a bug that can be planted, and what plants it in this process."""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from ...hlo.opcodes import Op


@dataclass(frozen=True)
class Spot:
    """A value that a fault replaces: an attribute of a module of this package or, with a key, an item of that.

    wrong: makes the wrong value from the right one. needs: opcodes of which a module has one if the fault may show in
    it; none: those that the key names, or any module.
    """

    module: str
    attribute: str
    wrong: Callable[[Any], Any]
    key: Any = None
    needs: tuple[Op, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.module}.{self.attribute}" + (f"[{self.key}]" if self.key is not None else "")

    def swap(self) -> Callable[[], None]:
        """Put the wrong value there; returns what puts the right one back."""
        home = import_module(f"...{self.module}", __package__)
        if self.key is None:
            right = getattr(home, self.attribute)
            setattr(home, self.attribute, self.wrong(right))
            return lambda: setattr(home, self.attribute, right)
        table: MutableMapping[Any, Any] = getattr(home, self.attribute)
        right = table[self.key]
        table[self.key] = self.wrong(right)
        return lambda: table.__setitem__(self.key, right)


@dataclass(frozen=True)
class Edit:
    """A slip in the text of one function, whose code is replaced, so that all who hold the function have the fault.

    function: by its name in the module, `Class.method` for a method. right: what stands there, once. wrong: instead.
    """

    module: str
    function: str
    right: str
    wrong: str

    @property
    def place(self) -> str:
        return f"{self.module}.{self.function}"

    def found(self) -> FunctionType:
        """The function, also of a method, a property, or behind a decorator."""
        value: Any = import_module(f"...{self.module}", __package__)
        for part in self.function.split("."):
            value = inspect.getattr_static(value, part) if isinstance(value, type) else getattr(value, part)
        function: FunctionType = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", None) or value))
        return function

    def swap(self) -> Callable[[], None]:
        """Put the slip there; returns what puts the right code back. Raises ValueError where `right` does not stand."""
        function = self.found()
        right = function.__code__
        function.__code__ = self._code(function)
        return lambda: setattr(function, "__code__", right)

    def _code(self, function: FunctionType) -> CodeType:
        text, first = source_of(function)
        if text.count(self.right) != 1:
            raise ValueError(
                f"{self.module}.{self.function} holds {self.right!r} {text.count(self.right)} times, not once"
            )
        return code_of(function, "\n" * (first - 1) + text.replace(self.right, self.wrong))


def source_of(function: FunctionType) -> tuple[str, int]:
    """(Its text, not indented; the number of its first line)."""
    lines, first = inspect.getsourcelines(function)
    return textwrap.dedent("".join(lines)), first


def code_of(function: FunctionType, source: str | ast.Module) -> CodeType:
    """The code of a function of the same name that a text or a syntax tree defines."""
    flags = __future__.annotations.compiler_flag
    whole: CodeType = compile(source, function.__code__.co_filename, "exec", flags=flags)
    (code,) = (c for c in whole.co_consts if isinstance(c, CodeType) and c.co_name == function.__name__)
    return code


@dataclass(frozen=True)
class Fault:
    """name: by which it is planted. family: what kind of slip it is. blamed: the stacks that an outcome is to blame.

    culprits: words of which the bisector's answer is to hold one. text: a module on which it shows, as one of several
    ops. values: the first elements of its inputs, which are otherwise random; the same for each parameter.
    """

    name: str
    family: str
    sentence: str
    blamed: tuple[str, ...]
    culprits: tuple[str, ...]
    spots: Sequence[Spot | Edit] = field(repr=False)
    text: str = field(default="", repr=False)
    values: tuple[float, ...] = ()


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """This process has the fault within the block. What was compiled before stays as it was."""
    from ...codegen.helpers import forget_texts

    undo = [spot.swap() for spot in fault.spots]
    forget_texts()
    try:
        yield
    finally:
        for restore in reversed(undo):
            restore()
        forget_texts()


def emitter_row(stack: str, file: str, op: Op, **wrong: Callable[..., Any]) -> Spot:
    """A row of a stack's table whose functions of some kinds of operand are wrong."""
    from dataclasses import replace

    return Spot(f"{stack}.{file}", "EMIT", lambda row: replace(row, **wrong), op)
