"""XlaBuilder: builds a computation op by op, infers shapes, and refuses a wrong op at the line that makes it.

XLA's own builder is xla/hlo/builder/xla_builder.h. Here each name is written in snake_case, an XlaComputation is a
Module, and a Python function may stand wherever XLA takes a computation. ops.py has the functions that make ops.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from types import FrameType, MappingProxyType
from typing import Any, NoReturn

from ...hlo.attributes import Alias, Donor, Raw
from ...hlo.dtypes import DType
from ...hlo.errors import InputError, Location, TestbedError, VerificationError
from ...hlo.grammar import ALLOWED
from ...hlo.ir import CALLING_ATTRIBUTES, Computation, Instruction, Module
from ...hlo.opcodes import BY_NAME, Op
from ...hlo.shapes import Shape
from ...hlo.verify.infer import INFER, NEEDS_SHAPE
from ...hlo.verify.verifier import check_form, verify, verify_instruction
from ..text.lexer import near
from ..text.printer import quote
from .attributes import attribute_of
from .literals import literal_of
from .shapes import DTypeLike, ShapeLike, dtype_of, shape_of
from .values import ComputationLike, Value, XlaOp

_INSIDE = (__name__.rpartition(".")[0] + ".", "contextlib")
"""Beginnings of the names of modules that are no callers: this package, and what runs its context managers."""
_BAD_IN_NAMES = re.compile(r"[^\w.\-]", re.ASCII)
_ANY_SHAPE = Shape(DType.TUPLE)


class _Program:
    """What the builders of one module share: names, and the computations built so far, callees first."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()
        self.computations: dict[Computation, None] = {}
        self.embedded: dict[Computation, Computation] = {}

    def fresh(self, name: str) -> str:
        """The name with unprintable characters replaced, followed by a number if it is taken."""
        stem = _BAD_IN_NAMES.sub("_", name) or "_"
        stem = stem if stem[0].isalpha() or stem[0] == "_" else f"_{stem}"
        found = stem
        while found in self._taken:
            self._counts[stem] = self._counts.get(stem, 0) + 1
            found = f"{stem}.{self._counts[stem]}"
        self._taken.add(found)
        return found


class XlaBuilder:
    """Builds one computation; `build` gives the verified module.

    Every op is checked when it is made: VerificationError and InputError name the line of the caller.

        b = XlaBuilder("axpy")
        x = ops.parameter(b, 0, "f32[4]", "x")
        y = ops.parameter(b, 1, "f32[4]", "y")
        module = b.build(2.0 * x + y)
    """

    def __init__(self, name: str = "main"):
        self._start(name, _Program())

    def _start(self, name: str, program: _Program) -> None:
        self.name, self._program = name, program
        self._instructions: list[Instruction] = []
        self._always: dict[str, Any] = {}  # sharding, metadata and frontend attributes of the scopes around
        self._metadata: dict[str, Any] = {}
        self._frontend: dict[str, str] = {}
        self._aliases: list[Alias] = []
        self._donors: list[Donor] = []

    def __repr__(self) -> str:
        return f"<XlaBuilder {self.name}: {len(self._instructions)} instructions>"

    def create_sub_builder(self, name: str) -> XlaBuilder:
        """A builder of a computation of the same module (CreateSubBuilder); its names differ from this one's."""
        made = XlaBuilder.__new__(XlaBuilder)
        made._start(name, self._program)
        return made

    # -- ops -----------------------------------------------------------------------------------------------------------
    def add(
        self,
        opcode: Op | str,
        operands: Sequence[Value] = (),
        shape: ShapeLike | None = None,
        *,
        name: str | None = None,
        element_type: DTypeLike | None = None,
        **attributes: Any,
    ) -> XlaOp:
        """Any of HLO's instructions (AddInstruction), for those without a function of their own.

        attributes: by their names in HLO text, as Python values or as that text; None leaves one out; a computation
        is a built module. shape: needed where operands do not give it. element_type: of the result, where HLO lets
        it differ from what the operands give.
        Raises VerificationError if the op breaks a rule of HLO, InputError for an unknown opcode or attribute.
        """
        op = self._opcode(opcode)
        values = [self.value(operand) for operand in operands]
        calls = {key: self._called(value) for key, value in attributes.items() if key in CALLING_ATTRIBUTES}
        with self._here():
            own = {key: value for key, value in attributes.items() if key not in calls}
            made = MappingProxyType(self._attributes(op, own) | {k: c for k, c in calls.items() if c is not None})
            given = None if shape is None else shape_of(shape)
            label = self._program.fresh(name or op.value)
            inputs = tuple(v.instruction for v in values)
            instruction = Instruction(op, label, given or _ANY_SHAPE, inputs, made, self._location())
            check_form(instruction)
            if given is None:
                if op in NEEDS_SHAPE or op is Op.BROADCAST:
                    raise InputError(f"{op.value} needs a shape: its operands do not give it", remedy="give shape=…")
                found = INFER[op](instruction).without_layout()
                found = found if element_type is None else replace(found, dtype=dtype_of(element_type))
                instruction = instruction.replace(shape=found)
            verify_instruction(instruction)
        self._instructions.append(instruction)
        return XlaOp(self, instruction)

    def _called(self, value: Any) -> Computation | tuple[Computation, ...] | None:
        if value is None:
            return None
        return tuple(map(self.computation, value)) if isinstance(value, (tuple, list)) else self.computation(value)

    @contextmanager
    def _here(self) -> Iterator[None]:
        """Errors inside are located at the caller's line. No function of the caller may run inside."""
        try:
            yield
        except TestbedError as error:
            error.location = self._location(exact=True)
            raise

    def _opcode(self, opcode: Op | str) -> Op:
        if isinstance(opcode, Op):
            return opcode
        found = BY_NAME.get(opcode.replace("_", "-"))
        if found is None:
            self.fail(f"unknown opcode {opcode!r}", near(opcode, BY_NAME) or "the opcodes are those of hlo/opcodes.py")
        return found

    def _attributes(self, op: Op, attributes: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for word, value in attributes.items():
            key = "control-predecessors" if word == "control_predecessors" else word
            if value is None:
                continue
            if key not in ALLOWED[op] and _UNNAMED.get(op) != key:
                remedy = near(key, ALLOWED[op]) or f"its attributes are {', '.join(sorted(ALLOWED[op]))}"
                raise InputError(f"{op.value} has no attribute {key!r}", remedy=remedy)
            made[key] = attribute_of(key, value)
        return {**made, **{k: v for k, v in self._scoped().items() if k not in made}}

    def value(self, value: Value, like: XlaOp | None = None) -> XlaOp:
        """An op of this builder: the op itself, or a constant of an array or a number.

        like: the op whose element type a Python number takes. Raises InputError for an op of another builder.
        """
        if isinstance(value, XlaOp):
            if value.builder is not self:
                self.fail(
                    f"'{value.name}' of '{value.builder.name}' is used in '{self.name}'",
                    "pass it as an operand: a computation reads nothing but its parameters",
                )
            return value
        return self.constant(value, None if like is None else like.dtype)

    def constant(self, value: Any, dtype: DTypeLike | None = None) -> XlaOp:
        """A constant (ConstantLiteral, ConstantR0, ConstantR1, …): a number, an array, a Literal or a tuple of them.

        dtype: that of the constant; without it an array keeps its own, an int is s32, a float f32, a complex c64.
        """
        with self._here():
            literal = literal_of(value, None if dtype is None else dtype_of(dtype))
        return self.add(Op.CONSTANT, (), literal.shape, literal=literal)

    def dtype(self, value: DTypeLike) -> DType:
        """The element type that a user means. Raises InputError at the line of the caller."""
        with self._here():
            return dtype_of(value)

    def shape(self, value: ShapeLike) -> Shape:
        """The shape that a user means. Raises InputError or ParseError at the line of the caller."""
        with self._here():
            return shape_of(value)

    def attribute(self, key: str, value: Any) -> Any:
        """The frozen value of an attribute, or of its text. Raises InputError at the line of the caller."""
        with self._here():
            return attribute_of(key, value)

    def fail(self, message: str, remedy: str | None = None) -> NoReturn:
        """Raise InputError at the line of the caller."""
        raise InputError(message, location=self._location(exact=True), remedy=remedy)

    def _location(self, exact: bool = False) -> Location:
        """The line that called into this package. exact: the column, too, which takes time in long functions."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_INSIDE):
            frame = frame.f_back
        if frame is None:
            return Location(1, 1, "<builder>")
        column = 0
        if exact:
            place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
            column = (place[2] if place is not None else None) or 0
        return Location(frame.f_lineno or 1, column + 1, frame.f_code.co_filename)

    # -- shapes --------------------------------------------------------------------------------------------------------
    def get_shape(self, op: XlaOp) -> Shape:
        """The shape of an op (GetShape)."""
        return self.value(op).shape

    # -- computations --------------------------------------------------------------------------------------------------
    def computation(
        self, source: ComputationLike, shapes: Sequence[Shape] | None = None, name: str = ""
    ) -> Computation:
        """A computation of this module: an embedded copy of a built one, or what a function of XlaOps builds.

        shapes: of the function's parameters; a function is called with one XlaOp for each, and returns an XlaOp, a
        number, or a tuple or list of them.
        """
        if isinstance(source, Module):
            return self._embedded(source.entry)
        if isinstance(source, Computation):
            return self._embedded(source)
        if isinstance(source, XlaBuilder) or not callable(source):
            remedy = "call its build() first" if isinstance(source, XlaBuilder) else "give a module or a function"
            self.fail(f"{type(source).__name__} is no computation", remedy)
        if shapes is None:
            self.fail("the shapes of the function's parameters are unknown here", "give a built module")
        inner = self.create_sub_builder(name or getattr(source, "__name__", "region").strip("<>"))
        inner._metadata = self._metadata
        return inner._finish(source(*(inner.parameter(n, shape) for n, shape in enumerate(shapes))))

    def _finish(self, root: Any) -> Computation:
        """The computation with this root: an XlaOp, a number, or a tuple or list of them."""
        if isinstance(root, (tuple, list)):
            root = self.add(Op.TUPLE, [self.value(part) for part in root])
        op = self.value(root)
        name = self._program.fresh(self.name)
        made = Computation(name, tuple(self._instructions), op.instruction)
        self._program.computations[made] = None
        return made

    def _embedded(self, computation: Computation) -> Computation:
        """The computation with names that are free in this module; callees first, each once."""
        program = self._program
        if computation in program.computations:
            return computation
        for one in callees_first(computation):
            if one not in program.embedded and one not in program.computations:
                made = _renamed(one, program.fresh(one.name), program.embedded)
                program.embedded[one] = made
                program.computations[made] = None
        return program.embedded.get(computation, computation)

    def parameter(self, number: int, shape: ShapeLike, name: str | None = None) -> XlaOp:
        """The parameter of this number, counted from 0 (Parameter)."""
        label = name or f"p{number}"
        return self.add(Op.PARAMETER, (), self.shape(shape), name=label, parameter_number=number)

    # -- scopes: attributes of every op made inside -------------------------------------------------------------------
    @contextmanager
    def sharding(self, text: str | None) -> Iterator[None]:
        """Ops inside have this sharding (XlaScopedShardingAssignment), e.g. '{devices=[2,1]0,1}'; None: none."""
        before = dict(self._always)
        self.set_sharding(text)
        try:
            yield
        finally:
            self._always = before

    def set_sharding(self, text: str | None) -> None:
        """Ops from here on have this sharding (SetSharding); None ends it (ClearSharding)."""
        if text is None:
            self._always.pop("sharding", None)
        else:
            with self._here():
                self._always["sharding"] = attribute_of("sharding", text)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Ops inside have metadata with this op_name, after those of the scopes around, and their source line."""
        before = dict(self._metadata)
        outer = before.get("op_name")
        self._metadata = {**before, "op_name": f"{outer}/{name}" if outer else name}
        try:
            yield
        finally:
            self._metadata = before

    def set_op_metadata(self, **metadata: str | int) -> None:
        """Ops from here on have this metadata (SetOpMetadata): op_type, op_name, source_file, source_line; without
        arguments none (ClearOpMetadata). Without source_line, each op has the line that made it.
        """
        unknown = set(metadata) - set(METADATA)
        if unknown:
            self.fail(f"metadata has no field {min(unknown)!r}", f"the fields are {', '.join(METADATA)}")
        self._metadata = dict(metadata)

    @contextmanager
    def frontend_attributes(self, **attributes: str) -> Iterator[None]:
        """Ops inside have these frontend attributes (SetFrontendAttributes), besides those of the scopes around."""
        before = self._frontend
        self._frontend = {**before, **attributes}
        try:
            yield
        finally:
            self._frontend = before

    def _scoped(self) -> dict[str, Any]:
        found = dict(self._always)
        if self._metadata:
            at = self._location()
            rows: dict[str, Any] = {"source_file": at.file, "source_line": at.line, **self._metadata}
            fields = [f"{k}={quote(rows[k]) if isinstance(rows[k], str) else rows[k]}" for k in METADATA if k in rows]
            found["metadata"] = Raw("{" + " ".join(fields) + "}")
        if self._frontend:
            pairs = ",".join(f"{key}={quote(value)}" for key, value in sorted(self._frontend.items()))
            found["frontend_attributes"] = Raw("{" + pairs + "}")
        return found

    # -- the module ----------------------------------------------------------------------------------------------------
    def set_up_alias(
        self,
        output_index: Sequence[int],
        param_number: int,
        param_index: Sequence[int] = (),
        kind: str = "may-alias",
    ) -> None:
        """A result that may take its parameter's memory (SetUpAlias). kind: 'may-alias' or 'must-alias'."""
        if kind not in ("may-alias", "must-alias"):
            self.fail(f"unknown kind of alias {kind!r}", "give 'may-alias' or 'must-alias'")
        self._aliases.append(Alias(tuple(output_index), param_number, tuple(param_index), kind))

    def add_buffer_donor(self, param_number: int, param_index: Sequence[int] = ()) -> None:
        """A parameter whose memory the program may use (AddBufferDonor)."""
        self._donors.append(Donor(param_number, tuple(param_index)))

    def build(self, root: Any = None) -> Module:
        """The verified module (Build). root: an XlaOp, or a tuple or list, which becomes one; without it the last op.

        Raises VerificationError with the line of the op that breaks a rule.
        """
        if root is None and not self._instructions:
            self.fail(f"'{self.name}' has no instructions", "add a parameter or a constant")
        last = self._instructions[-1] if root is None else None
        kept = len(self._instructions)
        entry = self._finish(XlaOp(self, last) if last is not None else root)
        attributes: dict[str, Any] = {}
        if self._aliases:
            attributes["input_output_alias"] = tuple(self._aliases)
        if self._donors:
            attributes["buffer_donor"] = tuple(self._donors)
        name = _BAD_IN_NAMES.sub("_", self.name) or "module"
        module = Module(name, tuple(callees_first(entry)), entry, MappingProxyType(attributes))
        try:
            verify(module)
        except VerificationError as error:
            error.location = error.location or self._location(exact=True)
            del self._instructions[kept:]
            raise
        return module


METADATA = ("op_type", "op_name", "source_file", "source_line")
"""Fields of an op's metadata, in the order of the text."""

_UNNAMED = {Op.PARAMETER: "parameter_number", Op.CONSTANT: "literal"}
"""The attribute that has no name in text."""


def callees_first(entry: Computation) -> list[Computation]:
    """The computations that `entry` reaches, each after those that it calls; `entry` last."""
    done: dict[Computation, None] = {}
    stack: list[tuple[Computation, bool]] = [(entry, False)]
    while stack:
        computation, ready = stack.pop()
        if computation in done:
            continue
        if ready:
            done[computation] = None
            continue
        stack.append((computation, True))
        stack += [(c, False) for i in reversed(computation.calling) for c in reversed(i.called()) if c not in done]
    return list(done)


def _renamed(computation: Computation, name: str, others: Mapping[Computation, Computation]) -> Computation:
    """The computation under another name, calling the renamed ones."""
    new: dict[Instruction, Instruction] = {}

    def kept(value: Any) -> Any:
        if isinstance(value, Computation):
            return others.get(value, value)
        return tuple(map(kept, value)) if type(value) is tuple else value

    for i in computation.instructions:
        operands = tuple(new[o] for o in i.operands)
        attributes = MappingProxyType({k: kept(v) for k, v in i.attributes.items()}) if i.called() else i.attributes
        new[i] = i.replace(operands=operands, attributes=attributes)
    return Computation(name, tuple(new.values()), new[computation.root], computation.attributes)
