"""A module of LLVM IR → the same over a field: float arithmetic becomes calls of runtime.py, all else stays as it is.

The text is what LLVM prints of a parsed module, one instruction a line. What computes with floats and is neither known
nor harmless is refused.
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from ..errors import CodegenError
from .element import Field
from .names import PREFIX
from .runtime import EXPORTED
from .wrappers import Wrappers, is_float

ARITHMETIC = frozenset({"fadd", "fsub", "fmul", "fdiv", "frem"})
FROM_INTEGER = frozenset({"sitofp", "uitofp"})
TO_INTEGER = frozenset({"fptosi", "fptoui"})
ROUNDED = frozenset({"floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven"})
OPAQUE = ROUNDED | {"sqrt", "exp", "exp2", "log", "log2", "log10", "pow", "sin", "cos", "tan", "tanh"}
"""Intrinsics whose values are drawn."""

NATIVE = re.compile(
    r"llvm\.(fabs|copysign|maximum|minimum|maxnum|minnum|maximumnum|minimumnum|is\.fpclass|arithmetic\.fence|masked\.\w+|"
    r"vector\.reduce\.f(max|min|maximum|minimum)|vector\.(insert|extract|interleave\d|deinterleave\d|reverse|splice\w*)|"
    r"experimental\.vector\.\w+|vp\.(load|store))\b"
)
"""Intrinsics on floats that mean the same over a field: they choose, move, or look at signs."""

_ASSIGNED = re.compile(r"^  (%[^ ]+) = (\w+) (.*)$")
_ALLOCATED = re.compile(r"^  (%[^ ]+) = alloca (.*)$")
_CALL = re.compile(r'call (?P<head>[^@]*)@(?P<callee>"[^"]*"|[-\w.$]+)\((?P<rest>.*)$')
_FLAGS = re.compile(r"^(?:(?:reassoc|nnan|ninf|nsz|arcp|contract|afn|fast|nneg) )+")
_TYPE = re.compile(r"^(<\d+ x \w+>|\w+) ")
_DECLARED = re.compile(r'^declare .*@(?P<name>"[^"]*"|[-\w.$]+)\(')


def rewritten(llvm_ir: str, field: Field, junk: int | None = None) -> str:
    """The module over the field. It calls the functions in EXPORTED. junk: the byte that fills memory on the stack.
    Raises CodegenError for what has no meaning.
    """
    context = llvm.create_context()
    text = str(llvm.parse_assembly(llvm_ir, context=context))
    wrappers = Wrappers(field)
    lines = [_line(line, wrappers) for line in text.split("\n")]
    if junk is not None:
        lines = [filled for line in lines for filled in _filled(line, junk)]
    kept = [
        line for line in lines if (found := _DECLARED.match(line)) is None or not _is_ours(found["name"].strip('"'))
    ]
    declared = [_declaration(name, type) for name, type in EXPORTED.items()]
    return "\n".join([*kept, *declared, *wrappers.texts()])


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX)


def _declaration(name: str, type: str) -> str:
    result, _, parameters = type.partition(" ")
    return f"declare {result} @{name}{parameters}"


def _line(line: str, wrappers: Wrappers) -> str:
    """One line of a module over the field."""
    if "call " in line:
        found = _CALL.search(line)
        return line if found is None else _called(line, found, wrappers)
    assigned = _ASSIGNED.match(line)
    if assigned is None:
        return line
    register, opcode, rest = assigned.groups()
    if opcode in ARITHMETIC:
        type, operands = _typed(_FLAGS.sub("", rest))
        left, right = split_operands(operands)[:2]
        callee = wrappers.arithmetic(opcode, type)
        return f"  {register} = call {type} {callee}({type} {left}, {type} {right})"
    if opcode in FROM_INTEGER or opcode in TO_INTEGER:
        source, operand = _typed(_FLAGS.sub("", rest))
        value, _, target = operand.partition(" to ")
        target = split_operands(target)[0]
        callee = wrappers.conversion(opcode, source, target)
        return f"  {register} = call {target} {callee}({source} {value})"
    return line


def _filled(line: str, junk: int) -> list[str]:
    """An instruction, and what fills the memory that it allocates."""
    found = _ALLOCATED.match(line)
    if found is None:
        return [line]
    register, rest = found.groups()
    type, *counts = split_operands(rest)
    count = next((c for c in counts if not c.startswith("align")), "i64 1")
    name = register[1:].strip('"')
    end, size = f'%"{name}.end"', f'%"{name}.size"'
    return [
        line,
        f"  {end} = getelementptr {type}, ptr null, {count}",
        f"  {size} = ptrtoint ptr {end} to i64",
        f"  call void @llvm.memset.p0.i64(ptr {register}, i8 {junk}, i64 {size}, i1 false)",
    ]


def _called(line: str, found: re.Match[str], wrappers: Wrappers) -> str:
    """A call: of a function by its name, of an intrinsic, or of another function."""
    name, result = found["callee"].strip('"'), _result(found["head"])
    parameters = [_parameter_type(p) for p in split_operands(found["rest"])]
    callee = None
    if _is_ours(name):
        callee = wrappers.named(name, result, parameters)
    elif name.startswith("llvm.") and any(map(is_float, (result, *parameters))) and not NATIVE.match(name):
        callee = wrappers.intrinsic(name, result, parameters, OPAQUE)
        if callee is None:
            raise CodegenError(f"{name} has no meaning over a field", remedy="add it to codegen/field/rewrite.py")
    return line if callee is None else line[: found.start("callee") - 1] + callee + line[found.end("callee") :]


def _result(head: str) -> str:
    """The type in front of a callee."""
    words = head.strip()
    found = re.search(r"(<\d+ x \w+>|\{[^}]*\}|\w+)$", words)
    return found[0] if found else words


def _parameter_type(operand: str) -> str:
    found = _TYPE.match(operand)
    return found[1] if found else operand


def _typed(text: str) -> tuple[str, str]:
    """(the type that a text begins with, what follows)."""
    found = _TYPE.match(text)
    if found is None:
        raise CodegenError(f"no type at the start of {text!r}", remedy="add it to codegen/field/rewrite.py")
    return found[1], text[found.end() :]


def split_operands(text: str) -> list[str]:
    """The parts between commas outside brackets, up to a bracket that closes none of them."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
            if depth < 0:
                return [*parts, text[start:at].strip()] if text[start:at].strip() else parts
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
