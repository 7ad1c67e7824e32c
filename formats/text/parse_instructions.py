"""Reads instructions: name, shape, opcode, operands, attributes; also nested and asynchronous forms."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, NoReturn

from ...hlo.errors import VerificationError
from ...hlo.grammar import ALLOWED, COMMON
from ...hlo.ir import NO_ATTRIBUTES, Computation, Instruction
from ...hlo.opcodes import BY_NAME as OPCODES
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.shapes import OPAQUE as NO_SHAPE
from ...hlo.shapes import Shape
from ...hlo.verify.infer import NEEDS_SHAPE, infer_missing
from ...hlo.verify.rules import same
from .lexer import BLANK, NAME, Lexer, near
from .parse_attributes import ATTRIBUTES
from .parse_literals import parse_literal
from .parse_shapes import ARRAY, MAX_DEPTH, cached_shape, parse_shape, starts_shape
from .reading import Reading

_head = re.compile(rf"(ROOT\s++)?%?({NAME})\s++=\s*+({ARRAY})\s++([a-z][a-z0-9\-]*+)\(\s*+")
_operand = re.compile(rf"(?:({ARRAY})\s++)?%?({NAME}){BLANK}(,|\)){BLANK}")
_attribute = re.compile(rf",{BLANK}([A-Za-z_][\w.\-]*+)={BLANK}", re.ASCII)
_parameter = re.compile(rf"(\d{{1,9}})\s*\){BLANK}", re.ASCII)
_opcode = re.compile(rf"([a-zA-Z][a-zA-Z0-9_\-]*+){BLANK}")

ASYNC = {"start": Op.ASYNC_START, "update": Op.ASYNC_UPDATE, "done": Op.ASYNC_DONE}
"""Suffix of a wrapped opcode such as `add-start` → the opcode of the asynchronous instruction."""

ASYNC_OWN = ("async_execution_thread", "control-predecessors", "sharding")
ASYNC_START = frozenset((*ASYNC_OWN, "output_to_operand_aliasing"))
"""Attributes that `x-start` may have in addition to those of x."""

ORDER = frozenset(("order",))
"""An attribute of compare in newer text, which says what `type` says; it is read as `type`."""

TYPE_OF_ORDER = {"TOTAL": "TOTALORDER", "PARTIAL": "FLOAT"}

ASYNC_BOTH = ("metadata", "frontend_attributes", "backend_config", "origin", "statistics")


class InstructionParser(Reading):
    """The state of one parse (the lexer and the names defined so far), and the reader of one instruction."""

    def __init__(self, text: str, file: str):
        self.lexer = Lexer(text, file)
        self.computations: dict[str, Computation] = {}
        self.scopes: list[dict[str, Instruction]] = []
        self.bodies: list[list[Instruction]] = []
        self.counters: dict[str, int] = {}
        self.depth = 0
        self.lone = False

    # -- names -----------------------------------------------------------------------------------------------------
    def find_instruction(self, name: str, at: int) -> Instruction:
        found = self.scopes[-1].get(name)
        if found is None:
            later = re.compile(rf"(?:^|\s)%?{re.escape(name)}\s+=").search(self.lexer.text, at)
            remedy = "define it before its use" if later else near(name, self.scopes[-1])
            self.lexer.fail(f"no instruction '{name}' in this computation", at, remedy)
        return found

    def find_computation(self, name: str, at: int) -> Computation:
        found = self.computations.get(name)
        if found is None:
            later = re.compile(rf"(?m)^\s*(?:ENTRY\s+)?%?{re.escape(name)}\s*[({{]").search(self.lexer.text, at)
            remedy = "define it before its use" if later else near(name, self.computations)
            self.lexer.fail(f"no computation '{name}'", at, remedy)
        return found

    def fresh(self, base: str) -> str:
        """An unused name: base, base.1, base.2, … as XLA counts."""
        while True:
            number = self.counters.get(base, 0)
            self.counters[base] = number + 1
            name = f"{base}.{number}" if number else base
            if name not in self.computations and not any(name in scope for scope in self.scopes):
                return name

    def add_parameter(self, name: str, shape: Shape, at: int) -> Instruction:
        """Adds a parameter for an operand that is not defined: in a lone instruction only its shape is known."""
        body = self.bodies[-1]
        number = sum(i.opcode is Op.PARAMETER for i in body)
        name = name or self.fresh("parameter.anon")
        made = Instruction(
            Op.PARAMETER, name, shape, (), MappingProxyType({"parameter_number": number}), self.lexer.location(at)
        )
        self.scopes[-1][name] = made
        body.append(made)
        return made

    # -- instructions ----------------------------------------------------------------------------------------------
    def instruction(self) -> tuple[Instruction, bool]:
        lexer, at = self.lexer, self.lexer.pos
        m = _head.match(lexer.text, at)
        if m and (opcode := OPCODES.get(m[4])) is not None and (shape := cached_shape(lexer, m[3])) is not None:
            lexer.seek(m.end())
            at = m.start(2) - (lexer.text[m.start(2) - 1] == "%")
            return self.rest(m[2], shape, opcode, at), m[1] is not None
        is_root = lexer.eat_word("ROOT")
        at = lexer.pos
        name = lexer.name("an instruction's name")
        if not lexer.at("="):
            lexer.fail(f"expected '=' after '{name}', found {lexer.found()}")
        if lexer.text[at] != "%" and lexer.text[lexer.pos - 1] not in " \t\r\n/":
            lexer.fail(f"'{name}=' reads as an attribute", remedy="put a blank before '='")
        lexer.eat("=")
        return self.right_side(name, at), is_root

    def right_side(self, name: str, at: int) -> Instruction:
        """Reads `shape opcode(operands), attributes`."""
        lexer = self.lexer
        shape = parse_shape(lexer) if starts_shape(lexer) else None
        opcode, wrapped = self.opcode()
        lexer.expect("(", f"before the operands of {opcode.value}")
        if wrapped is not None:
            return self.wrapped(name, shape, opcode, wrapped, at)
        return self.rest(name, shape, opcode, at)

    def opcode(self) -> tuple[Op, Op | None]:
        """Reads an opcode: (opcode, None), or for text such as `add-start` (async-start, the wrapped opcode)."""
        lexer, at = self.lexer, self.lexer.pos
        m = _opcode.match(lexer.text, at)
        if not m:
            lexer.fail(f"expected an opcode, found {lexer.found()}")
        opcode, wrapped = OPCODES.get(m[1]), None
        if opcode is None:
            base, _, suffix = m[1].rpartition("-")
            opcode, wrapped = ASYNC.get(suffix), OPCODES.get(base)
            if opcode is None or wrapped is None:
                lexer.fail(f"unknown opcode '{m[1]}'", at, near(m[1], OPCODES))
        lexer.pos = m.end()
        return opcode, wrapped

    def wrapped(self, name: str, shape: Shape | None, opcode: Op, wrapped: Op, at: int) -> Instruction:
        """Reads `x-start(…)`, `x-update(…)` or `x-done(…)`: an async opcode whose computation consists of x."""
        lexer = self.lexer
        if shape is None:
            lexer.fail(f"{wrapped.value}-{opcode.value.removeprefix('async-')} needs its shape", at)
        if opcode is not Op.ASYNC_START:
            instruction = self.rest(name, shape, opcode, at)
            body = self.wrapped_computation(instruction)
            if body is not None and body.root.opcode is not wrapped:
                lexer.fail(f"'{name}' ends a {wrapped.value}, but its start wraps a {body.root.opcode.value}", at)
            return instruction
        if not shape.is_tuple or len(shape.elements) < 2 or not shape.elements[0].is_tuple:
            lexer.fail(f"the shape of {wrapped.value}-start must be ((operands), result, state…), not {shape}", at)
        own: dict[str, Any] = {}
        operands = self.operands(wrapped, at)
        self.own_attributes(own, wrapped, operands, at, ASYNC_START)
        outer = {k: own.pop(k) for k in ASYNC_OWN if k in own}
        if wrapped not in (Op.CUSTOM_CALL, Op.FUSION) and "output_to_operand_aliasing" in own:
            outer["output_to_operand_aliasing"] = own.pop("output_to_operand_aliasing")
        outer |= {k: own[k] for k in ASYNC_BOTH if k in own}
        parameters = tuple(
            Instruction(
                Op.PARAMETER,
                f"async_param.{n}" if n else "async_param",
                o.shape,
                (),
                MappingProxyType({"parameter_number": n}),
            )
            for n, o in enumerate(operands)
        )
        root = Instruction(
            wrapped, "async_op", shape.elements[1], parameters, MappingProxyType(own), lexer.location(at)
        )
        body = Computation(self.fresh("async_wrapped"), (*parameters, root), root)
        self.computations[body.name] = body
        outer["calls"] = body
        return self.define(
            Instruction(Op.ASYNC_START, name, shape, operands, MappingProxyType(outer), lexer.location(at)), at
        )

    def wrapped_computation(self, instruction: Instruction) -> Computation | None:
        """The computation that the start of this instruction's async chain calls."""
        while instruction.operands and instruction.opcode in (Op.ASYNC_UPDATE, Op.ASYNC_DONE):
            instruction = instruction.operands[0]
        body = instruction.attributes.get("calls")
        return body if isinstance(body, Computation) else None

    def rest(self, name: str, shape: Shape | None, opcode: Op, at: int, nested: bool = False) -> Instruction:
        """Reads the text after the '(' of an opcode. A nested instruction has no name and no attributes."""
        lexer = self.lexer
        own: dict[str, Any] = {}
        operands: tuple[Instruction, ...] = ()
        if opcode is Op.PARAMETER:
            m = _parameter.match(lexer.text, lexer.pos)
            if not m:
                lexer.fail(f"expected a parameter number, found {lexer.found()}")
            lexer.pos = m.end()
            own["parameter_number"] = int(m[1])
        elif opcode is Op.CONSTANT:
            if shape is None:
                lexer.fail("a constant needs its shape", at)
            own["literal"] = parse_literal(lexer, shape)
            lexer.expect(")", "after the value of a constant")
        else:
            operands = self.operands(opcode, at)
        if not nested:
            self.own_attributes(own, opcode, operands, at)
        elif missing := [key for key in OPSET[opcode].required if key not in own]:
            self.missing(opcode, missing[0], at)
        elif opcode is Op.BROADCAST:
            self.broadcast_dimensions(own, operands, at)
        name = name or self.fresh(f"{opcode.value}.anon")
        if shape is None:
            shape = self.infer(opcode, name, operands, own, at)
        return self.define(
            Instruction(
                opcode, name, shape, operands, MappingProxyType(own) if own else NO_ATTRIBUTES, lexer.location(at)
            ),
            at,
        )

    def define(self, instruction: Instruction, at: int) -> Instruction:
        scope, name = self.scopes[-1], instruction.name
        if name in scope:
            self.lexer.fail(f"instruction '{name}' is defined twice", at, f"first at {scope[name].location}")
        scope[name] = instruction
        self.bodies[-1].append(instruction)
        return instruction

    def operands(self, opcode: Op, at: int) -> tuple[Instruction, ...]:
        lexer, scope = self.lexer, self.scopes[-1]
        text, out = lexer.text, []
        if not lexer.eat(")"):
            while True:
                m = _operand.match(text, lexer.pos)
                if m:
                    found = scope.get(m[2])
                    if found is None:
                        found = self.missing_operand(m[2], m[1], m.start(2))
                    if m[1] is not None:
                        self.check_operand(cached_shape(lexer, m[1]), found, m.start(1))
                    out.append(found)
                    lexer.pos = m.end()
                    if m[3] == ")":
                        break
                else:
                    found = self.slow_operand(opcode)
                    if found is not None:
                        out.append(found)
                    if not lexer.eat(","):
                        lexer.expect(")", f"after the operands of {opcode.value}")
                        break
        row = OPSET[opcode]
        if not row.low <= len(out) <= row.high:
            lexer.fail(f"{opcode.value} takes {row.arity}, not {len(out)}", at)
        return tuple(out)

    def check_operand(self, declared: Shape | None, found: Instruction, at: int) -> None:
        if declared is not None and not same(declared, found.shape):
            self.lexer.fail(f"operand '{found.name}' is declared {declared} but has shape {found.shape}", at)

    def missing_operand(self, name: str, declared: str | None, at: int) -> Instruction:
        if (
            self.lone
            and len(self.scopes) == 1
            and declared
            and (shape := cached_shape(self.lexer, declared)) is not None
        ):
            return self.add_parameter(name, shape, at)
        return self.find_instruction(name, at)

    def slow_operand(self, opcode: Op) -> Instruction | None:
        """Reads an operand that `_operand` does not match: with a complicated shape, or a nested instruction.

        None for a place between commas that holds a shape or nothing: XLA reads add(f32[], p, q) and add(p,, q) as
        add(p, q).
        """
        lexer, at = self.lexer, self.lexer.pos
        shape = parse_shape(lexer) if starts_shape(lexer) else None
        at_name, free = lexer.pos, shape if self.lone and len(self.scopes) == 1 else None
        if free is not None and (lexer.at(",") or lexer.at(")")):
            return self.add_parameter("", free, at)
        if lexer.at(",") or lexer.at(")"):
            return None
        name = lexer.name(f"an operand of {opcode.value}")
        if lexer.at("("):
            lexer.pos = at_name
            return self.nested(shape, at)
        if free is not None and name not in self.scopes[-1]:
            return self.add_parameter(name, free, at)
        found = self.find_instruction(name, at_name)
        self.check_operand(shape, found, at)
        return found

    def nested(self, shape: Shape | None, at: int) -> Instruction:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.lexer.fail(f"instructions nested deeper than {MAX_DEPTH}", at)
        opcode, wrapped = self.opcode()
        if wrapped is not None:
            self.lexer.fail(f"{opcode.value} cannot be nested in operands", at)
        self.lexer.expect("(", f"before the operands of {opcode.value}")
        instruction = self.rest("", shape, opcode, at, nested=True)
        self.depth -= 1
        return instruction

    def own_attributes(
        self,
        own: dict[str, Any],
        opcode: Op,
        operands: tuple[Instruction, ...],
        at: int,
        more: frozenset[str] = frozenset(),
    ) -> None:
        """Consumes the attributes of an opcode and `more`, and completes what text may leave out or say otherwise."""
        self.attributes(own, opcode, at, more | ORDER if opcode is Op.COMPARE else more)
        if opcode is Op.COMPARE:
            self.comparison_type(own, operands, at)
        elif opcode is Op.BROADCAST:
            self.broadcast_dimensions(own, operands, at)

    def attributes(self, own: dict[str, Any], opcode: Op, at: int, more: frozenset[str] = frozenset()) -> None:
        """Consume `, name=value …` into `own`; the opcode's attributes and `more` are allowed."""
        lexer = self.lexer
        text, allowed = lexer.text, ALLOWED[opcode]
        while text.startswith(",", lexer.pos):
            m = _attribute.match(text, lexer.pos)
            if not m:
                lexer.eat(",")
                lexer.fail(f"expected an attribute of {opcode.value}, found {lexer.found()}", remedy="write name=value")
            key = m[1]
            if key in own:
                lexer.fail(f"attribute '{key}' is given twice", m.start(1))
            if key not in allowed and key not in more:
                self.unexpected(key, opcode, m.start(1))
            lexer.pos = m.end()
            own[key] = ATTRIBUTES[key](self, key)
        for key in OPSET[opcode].required:
            if key not in own:
                self.missing(opcode, key, at)

    def broadcast_dimensions(self, own: dict[str, Any], operands: tuple[Instruction, ...], at: int) -> None:
        """Adds `dimensions={}` to the broadcast of a scalar, whose text may omit them."""
        if "dimensions" not in own:
            if operands[0].shape.rank:
                self.missing(Op.BROADCAST, "dimensions", at)
            own["dimensions"] = ()

    def comparison_type(self, own: dict[str, Any], operands: tuple[Instruction, ...], at: int) -> None:
        """Turns `order=TOTAL` into the `type` of older text; it says nothing where it is the default of the dtype."""
        order = own.pop("order", None)
        if order is None:
            return
        if "type" in own:
            self.lexer.fail("compare has both 'order' and 'type'", at, "leave one of them out")
        if order == "WEAK":
            self.lexer.fail("order=WEAK of compare is not supported", at, "choose order=TOTAL or order=PARTIAL")
        dtype = operands[0].shape.dtype
        default = "PARTIAL" if dtype.is_float or dtype.is_complex else "TOTAL"
        if order != default:
            own["type"] = TYPE_OF_ORDER[order]

    def missing(self, opcode: Op, key: str, at: int) -> NoReturn:
        self.lexer.fail(f"{opcode.value} needs the attribute '{key}'", at, f"add {key}=…")

    def unexpected(self, key: str, opcode: Op, at: int) -> NoReturn:
        own = OPSET[opcode].own
        listed = ", ".join(own) or "none of its own"
        remedy = near(key, own) or near(key, COMMON) or f"its attributes are: {listed}; and those of any instruction"
        self.lexer.fail(f"unexpected attribute '{key}' of {opcode.value}", at, remedy)

    def infer(self, opcode: Op, name: str, operands: tuple[Instruction, ...], own: dict[str, Any], at: int) -> Shape:
        """The shape of an instruction whose text states none."""
        location = self.lexer.location(at)
        if opcode in NEEDS_SHAPE:
            self.lexer.fail(f"{opcode.value} needs its shape", at, "write: name = shape opcode(operands)")
        try:
            return infer_missing(Instruction(opcode, name, NO_SHAPE, operands, own, location))
        except VerificationError as error:
            self.lexer.fail(f"cannot infer the shape: {error.message}", at, error.remedy)
