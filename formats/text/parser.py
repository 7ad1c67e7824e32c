"""HLO text → Module: the header and computations. Names are resolved at once, so a definition must precede its uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...hlo.attributes import Raw
from ...hlo.errors import ParseError
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...hlo.verify.rules import same
from .lexer import BLANK, NAME, Lexer, near
from .parse_attributes import COMPUTATION, HEADER
from .parse_instructions import InstructionParser
from .parse_shapes import MAX_DEPTH, parse_shape
from .parse_values import braced
from .reading import Reading

_attribute = re.compile(rf",{BLANK}([A-Za-z_][\w.\-]*+)={BLANK}", re.ASCII)
_section = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b")
_section_row = re.compile(r"\d+\s+(?:\"(?:[^\"\\]|\\.)*\"|\{[^{}]*\})")
_lone = re.compile(rf"(?:ROOT\s+)?(?:{NAME}\s+|%{NAME}\s*)=")


def parse_module(text: str, file: str = "<string>") -> Module:
    """The module in `text`: a whole module, computations without a header, or instructions without a computation.

    Raises ParseError with the location of the mistake.
    """
    try:
        return Parser(text, file).module()
    except RecursionError:
        raise ParseError("the text nests too deeply", location=Lexer(text, file).location(0)) from None


class Parser(InstructionParser):
    """Reads the header and the computations around the instructions."""

    # -- module ----------------------------------------------------------------------------------------------------
    def module(self) -> Module:
        lexer, name, attributes = self.lexer, None, {}
        if lexer.eat_word("HloModule"):
            name = lexer.name("the module's name")
            lexer.eat(":")
            attributes = self.header_attributes("the module", HEADER)
        elif lexer.ended:
            lexer.fail("the text is empty", remedy="a module starts with: HloModule name")
        attributes |= self.sections()
        if name is None and _lone.match(lexer.text, lexer.pos):
            return self.lone_instructions()
        entry = computation = None
        while computation is None or not lexer.ended:
            at = lexer.pos
            computation, is_entry = self.computation()
            if is_entry and entry is not None:
                lexer.fail(f"a second ENTRY computation, '{computation.name}'", at, "mark one computation ENTRY")
            if is_entry:
                entry = computation
        entry = entry or computation
        return Module(
            name or f"module_{entry.name}", tuple(self.computations.values()), entry, MappingProxyType(attributes)
        )

    def lone_instructions(self) -> Module:
        """Reads instructions without a computation around them; operands that only have a shape become parameters."""
        self.scopes.append({})
        self.bodies.append([])
        self.lone = True
        root = None
        while not self.lexer.ended:
            instruction, is_root = self.instruction()
            root = instruction if is_root else root
        instructions = self.bodies.pop()
        self.check_parameters("entry", instructions)
        entry = Computation("entry", tuple(instructions), root or instructions[-1])
        self.computations["entry"] = entry
        return Module("module", tuple(self.computations.values()), entry)

    def header_attributes(self, whose: str, known: Mapping[str, Callable[[Reading, str], Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while m := self.lexer.match(_attribute):
            key = m[1]
            if key in out:
                self.lexer.fail(f"attribute '{key}' is given twice", m.start(1))
            if key not in known:
                remedy = near(key, known) or f"the attributes of {whose} are {', '.join(known)}"
                self.lexer.fail(f"unexpected attribute '{key}' of {whose}", m.start(1), remedy)
            out[key] = known[key](self, key)
        if self.lexer.at(","):
            self.lexer.eat(",")
            self.lexer.fail(f"expected an attribute of {whose}, found {self.lexer.found()}", remedy="write name=value")
        return out

    def sections(self) -> dict[str, Any]:
        """Reads the stack frame tables as text."""
        out: dict[str, Any] = {}
        while m := self.lexer.match(_section):
            start = end = self.lexer.pos
            while (n := self.lexer.match(_section_row)) is not None:
                end = n.end()
            out[m[1]] = Raw(self.lexer.text[start:end].strip())
        return out

    # -- computations ----------------------------------------------------------------------------------------------
    def computation(self) -> tuple[Computation, bool]:
        lexer = self.lexer
        is_entry = lexer.eat_word("ENTRY")
        at = lexer.pos
        name = lexer.name("a computation's name")
        signature_at = lexer.pos
        signature = self.signature() if lexer.at("(") else None
        computation = self.body(name)
        if signature is not None and not same(signature, computation.root.shape):
            lexer.fail(
                f"computation '{name}' declares the result {signature}, but its root "
                f"'{computation.root.name}' has shape {computation.root.shape}",
                signature_at,
            )
        attributes = self.header_attributes("a computation", COMPUTATION)
        if attributes:
            computation = Computation(name, computation.instructions, computation.root, MappingProxyType(attributes))
        if name in self.computations:
            lexer.fail(f"computation '{name}' is defined twice", at, "rename one of them")
        self.computations[name] = computation
        return computation, is_entry

    def signature(self) -> Shape:
        """Skip `(a: f32[2], …)` and return the shape after `->`."""
        lexer = self.lexer

        def parameter() -> None:
            lexer.name("a parameter's name")
            lexer.eat(":")
            parse_shape(lexer)

        braced(lexer, "the parameters", parameter, "()")
        lexer.expect("->", "before the result's shape")
        return parse_shape(lexer)

    def body(self, name: str) -> Computation:
        lexer = self.lexer
        self.depth += 1
        if self.depth > MAX_DEPTH:
            lexer.fail(f"computations nested deeper than {MAX_DEPTH}")
        lexer.expect("{", f"before the instructions of '{name}'")
        self.scopes.append({})
        self.bodies.append([])
        root = None
        if lexer.at("}"):
            lexer.fail(f"computation '{name}' has no instructions")
        while not lexer.at("}"):
            at = lexer.pos
            instruction, is_root = self.instruction()
            if is_root:
                if root is not None:
                    lexer.fail(f"a second ROOT in computation '{name}'", at, "mark one instruction ROOT")
                root = instruction
        lexer.eat("}")
        self.scopes.pop()
        instructions = self.bodies.pop()
        self.depth -= 1
        self.check_parameters(name, instructions)
        return Computation(name, tuple(instructions), root or instructions[-1])

    def check_parameters(self, name: str, instructions: list[Instruction]) -> None:
        numbers = sorted(i.parameter_number for i in instructions if i.opcode is Op.PARAMETER)
        if numbers != list(range(len(numbers))):
            self.lexer.fail(
                f"the parameters of '{name}' are numbered {numbers}", None, "number them from 0, each number once"
            )

    def inline_computation(self) -> Computation:
        """Reads a computation without a name: `to_apply={ … }`."""
        body = self.body("_")
        computation = Computation(self.fresh("_"), body.instructions, body.root)
        self.computations[computation.name] = computation
        return computation
