"""Runs a function of LLVM IR on formulas of z3: what memory holds afterwards, as formulas of what it held before.

Loops and addresses must be known numbers; whatever else computes with integers is a formula. What has no meaning here,
or might be poison, is refused or becomes a duty: a formula that must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from ...codegen.field.rewrite import split_operands
from .formulas import ones_in, resized, zeros_above

MAXIMUM_STEPS = 20_000
"""Instructions of a run."""

Value = Any
"""A Python integer without sign, a bit-vector, an address (argument, byte), or a struct."""


class NoProofError(Exception):
    """The code has no formulas here; the text says why."""


@dataclass
class Memory:
    """Elements by (argument, byte), each a bit-vector. duties: what must hold, so that nothing is poison."""

    cells: dict[tuple[int, int], Any]
    duties: list[Any] = field(default_factory=list)


_BLOCK = re.compile(r'^(?P<name>"[^"]*"|[-\w.$]+):')
_SET = re.compile(r'^  (?P<to>%(?:"[^"]*"|[-\w.$]+)) = (?P<op>\w+) (?P<rest>.*)$')
_DO = re.compile(r"^  (?P<op>store|br|ret|call) ?(?P<rest>.*)$")
_FLAGS = re.compile(r"^(?:(?:nuw|nsw|exact|disjoint|nneg|inbounds|samesign|tail|noundef) )+")
_WIDTH = re.compile(r"^i(\d+)$")


def run(llvm_ir: str, name: str, memory: Memory) -> None:
    """Run a function whose parameters are addresses, on memory. llvm_ir: as LLVM prints it. Raises NoProofError."""
    lines = _body(llvm_ir, name)
    parameters = [p.rpartition(" ")[2] for p in split_operands(lines[0].partition("(")[2])]
    names: dict[str, Value] = {p: (n, 0) for n, p in enumerate(parameters)}
    blocks = _blocks(lines[1:], len(parameters))
    _Run(blocks, names, memory).run()


def _body(llvm_ir: str, name: str) -> list[str]:
    lines = llvm_ir.split("\n")
    head = re.compile(rf'define .*@"?{re.escape(name)}"?\(')
    start = next((n for n, line in enumerate(lines) if head.match(line)), -1)
    if start < 0:
        raise NoProofError(f"no function {name}")
    return lines[start : lines.index("}", start)]


def _blocks(lines: Sequence[str], parameters: int) -> dict[str, list[str]]:
    """Label → its instructions, in order. The first block may have no label: it has the number after parameters'."""
    blocks: dict[str, list[str]] = {}
    label = f"%{parameters}"
    for line in lines:
        found = _BLOCK.match(line)
        if found:
            label = f"%{found['name']}"
        elif line.strip():
            blocks.setdefault(label, []).append(line.partition(", !")[0].partition("  ;")[0])
    return blocks


class _Run:
    def __init__(self, blocks: Mapping[str, list[str]], names: dict[str, Value], memory: Memory) -> None:
        self.blocks, self.names, self.memory = blocks, names, memory

    def run(self) -> None:
        label, before, steps = next(iter(self.blocks)), "", 0
        while True:
            lines = self.blocks[label]
            steps += len(lines)
            if steps > MAXIMUM_STEPS:
                raise NoProofError(f"more than {MAXIMUM_STEPS} instructions")
            heads = [found for line in lines if (found := _SET.match(line)) is not None and found["op"] == "phi"]
            phis = [(found["to"], self._phi(found["rest"], before)) for found in heads]
            self.names.update(phis)
            for line in lines[len(phis) :]:
                target = self._step(line)
                if target == "":
                    return
                if target is not None:
                    label, before = target, label
                    break
            else:
                raise NoProofError(f"block {label} has no end")

    def _step(self, line: str) -> str | None:
        """Run an instruction. The block that follows, "" at the end; None: the next instruction."""
        found = _SET.match(line)
        if found is not None:
            compute = _COMPUTE.get(found["op"])
            if compute is None:
                raise NoProofError(found["op"])
            self.names[found["to"]] = compute(self, found["op"], found["rest"])
            return None
        found = _DO.match(line)
        if found is None:
            raise NoProofError(line.strip()[:60])
        operands = split_operands(found["rest"])
        if found["op"] == "ret":
            return ""
        if found["op"] == "store":
            self._store(*operands[:2])
            return None
        if found["op"] == "br":
            return self._branch(operands)
        raise NoProofError(f"call {found['rest'][:40]}")

    # operands

    def value(self, text: str, bits: int) -> Value:
        """An operand by its name or its number."""
        if text.startswith("%"):
            return self.names[text]
        if text in ("true", "false"):
            return int(text == "true")
        if re.fullmatch(r"-?\d+", text):
            return int(text) % (1 << bits)
        raise NoProofError(f"operand {text}")

    def typed(self, text: str) -> tuple[Value, int]:
        """(The operand, its bits) of a type and a name."""
        kind, _, name = _FLAGS.sub("", text).rpartition(" ")
        bits = width_of(kind)
        return self.value(name, bits), bits

    def number(self, text: str) -> int:
        """A typed operand that must be known, with its sign."""
        value, bits = self.typed(text)
        if not isinstance(value, int):
            raise NoProofError("an address or a branch that depends on operands")
        return value - (1 << bits) if value >> (bits - 1) and bits > 1 else value

    def pointer(self, text: str) -> tuple[int, int]:
        value = self.names.get(text.removeprefix("ptr "))
        if not isinstance(value, tuple) or len(value) != 2:
            raise NoProofError(f"address {text}")
        return value

    # instructions

    def _phi(self, rest: str, before: str) -> Value:
        kind, _, sources = rest.partition(" ")
        for source in split_operands(sources):
            name, label = (x.strip() for x in source.strip("[] ").split(","))
            if label == before:
                return self.value(name, width_of(kind))
        raise NoProofError("a phi without its block")

    def _branch(self, operands: Sequence[str]) -> str:
        if len(operands) == 1:
            return operands[0].removeprefix("label ")
        return operands[1 if self.number(operands[0]) & 1 else 2].removeprefix("label ")

    def _store(self, text: str, place: str) -> None:
        value, bits = self.typed(text)
        self.memory.cells[self.pointer(place)] = vector(value, bits)

    def load(self, _: str, rest: str) -> Value:
        kind, place = split_operands(rest)[:2]
        cell = self.memory.cells.get(self.pointer(place))
        if cell is None or cell.size() != width_of(kind):
            raise NoProofError("memory that was not written, or as another type")
        return cell

    def address(self, _: str, rest: str) -> Value:
        kind, base, *indices = split_operands(_FLAGS.sub("", rest))
        argument, offset = self.pointer(base)
        if len(indices) != 1:
            raise NoProofError("an address of several indices")
        return argument, offset + self.number(indices[0]) * -(-width_of(kind) // 8)

    def binary(self, op: str, rest: str) -> Value:
        flags, text = _FLAGS.match(rest), _FLAGS.sub("", rest)
        kind, _, operands = text.partition(" ")
        bits = width_of(kind)
        x, y = (self.value(o, bits) for o in split_operands(operands)[:2])
        if flags is not None and not (isinstance(x, int) and isinstance(y, int)):
            raise NoProofError(f"{op} {flags[0].strip()}")
        return self._computed(op, x, y, bits)

    def _computed(self, op: str, x: Value, y: Value, bits: int) -> Value:
        a, b = vector(x, bits), vector(y, bits)
        if op in ("shl", "lshr", "ashr"):
            self._duty(z3.ULT(b, bits))
        if op in ("udiv", "urem", "sdiv", "srem"):
            self._duty(b != 0)
        if op in ("sdiv", "srem"):
            self._duty(z3.Not(z3.And(a == 1 << (bits - 1), b == -1)))
        return known(_BINARY[op](a, b))

    def _duty(self, holds: Any) -> None:
        if not z3.is_true(z3.simplify(holds)):
            self.memory.duties.append(holds)

    def compare(self, _: str, rest: str) -> Value:
        predicate, _, text = _FLAGS.sub("", rest).partition(" ")
        kind, _, operands = _FLAGS.sub("", text).partition(" ")
        bits = width_of(kind)
        a, b = (vector(self.value(o, bits), bits) for o in split_operands(operands)[:2])
        return known(z3.If(_PREDICATES[predicate](a, b), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)))

    def select(self, _: str, rest: str) -> Value:
        (p, _one), (x, bits), (y, _same) = map(self.typed, split_operands(rest)[:3])
        if isinstance(p, int):
            return x if p & 1 else y
        return known(z3.If(p == 1, vector(x, bits), vector(y, bits)))

    def cast(self, op: str, rest: str) -> Value:
        text, _, target = rest.partition(" to ")
        if op == "zext" and text.startswith("nneg "):
            raise NoProofError("zext nneg")
        value, bits = self.typed(text)
        return known(resized(vector(value, bits), width_of(target.partition(",")[0]), op == "sext"))

    def freeze(self, _: str, rest: str) -> Value:
        return self.typed(rest)[0]

    def call(self, _: str, rest: str) -> Value:
        found = re.search(r"@llvm\.(\w+)\.i(\d+)\((.*)\)", rest)
        if found is None or found[1] not in _CALLS:
            raise NoProofError(f"call {rest[:60]}")
        bits = int(found[2])
        given = [vector(*self.typed(o)) for o in split_operands(found[3])]
        if found[1] in ("abs", "ctlz", "cttz") and not z3.is_false(z3.simplify(given[1] == 1)):
            self._duty(given[0] != (1 << (bits - 1) if found[1] == "abs" else 0))
        return known(_CALLS[found[1]](*given))

    def inserted(self, _: str, rest: str) -> Value:
        """A struct with one more of its members, by their places."""
        whole, member, *places = split_operands(rest)
        name, part = whole.rpartition(" ")[2], member.rpartition(" ")[2]
        members = {} if name in ("poison", "undef") else self.names[name]
        value = self.pointer(part) if member.startswith("ptr ") else self.typed(member)[0]
        return {**members, tuple(places): value}

    def extracted(self, _: str, rest: str) -> Value:
        whole, *places = split_operands(rest)
        members = self.names[whole.rpartition(" ")[2]]
        if tuple(places) not in members:
            raise NoProofError("a member that was not set")
        return members[tuple(places)]


def width_of(kind: str) -> int:
    found = _WIDTH.match(kind)
    if found is None:
        raise NoProofError(f"type {kind[:40]}")
    return int(found[1])


def vector(value: Value, bits: int) -> Any:
    if isinstance(value, (tuple, dict)):
        raise NoProofError("an address as a number")
    return z3.BitVecVal(value, bits) if isinstance(value, int) else value


def known(formula: Any) -> Value:
    """The number of a formula that is one."""
    made = z3.simplify(formula)
    return made.as_long() if z3.is_bv_value(made) else made


def _least(less: Callable[[Any, Any], Any], first: bool) -> Callable[[Any, Any], Any]:
    return lambda a, b: z3.If(less(a, b) if first else less(b, a), a, b)


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "lshr": z3.LShR,
    "ashr": lambda a, b: a >> b,
    "udiv": z3.UDiv,
    "urem": z3.URem,
    "sdiv": lambda a, b: a / b,
    "srem": z3.SRem,
}
_PREDICATES: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": z3.ULT,
    "ule": z3.ULE,
    "ugt": z3.UGT,
    "uge": z3.UGE,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    "abs": lambda x, _: z3.If(x < 0, -x, x),
    "ctlz": lambda x, _: zeros_above(x),
    "ctpop": ones_in,
    "smax": _least(lambda a, b: a > b, True),
    "smin": _least(lambda a, b: a < b, True),
    "umax": _least(z3.UGT, True),
    "umin": _least(z3.ULT, True),
}
_COMPUTE: Mapping[str, Callable[[_Run, str, str], Value]] = {
    **dict.fromkeys(_BINARY, _Run.binary),
    **dict.fromkeys(("zext", "sext", "trunc"), _Run.cast),
    "call": _Run.call,
    "extractvalue": _Run.extracted,
    "freeze": _Run.freeze,
    "getelementptr": _Run.address,
    "icmp": _Run.compare,
    "insertvalue": _Run.inserted,
    "load": _Run.load,
    "select": _Run.select,
}
