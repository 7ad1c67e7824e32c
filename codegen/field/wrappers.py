"""Functions between a kernel over a field and the arithmetic of single floats: of vectors, f64 and f16, by name."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Sequence

from ..errors import CodegenError
from .element import Field
from .names import LIMITS, NAMES, PREFIX, number_of
from .runtime import start_of

SHORT = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_FMA = frozenset({"llvm.fma", "llvm.fmuladd"})
_SUMS = {"llvm.vector.reduce.fadd": "fadd", "llvm.vector.reduce.fmul": "fmul"}
_PAIRS = "llvm.x86.avx512bf16.dpbf16ps"


def lanes_of(type: str) -> tuple[int, str]:
    """(Lanes, or 0 for a scalar; the type of an element)."""
    found = _VECTOR.fullmatch(type)
    return (int(found[1]), found[2]) if found else (0, type)


def is_float(type: str) -> bool:
    return lanes_of(type)[1] in SHORT


def short(type: str) -> str:
    """A type as it stands in symbols: v8f32."""
    lanes, element = lanes_of(type)
    return f"{f'v{lanes}' if lanes else ''}{SHORT.get(element, element)}"


class Wrappers:
    """The functions that one module needs. Each method gives the callee."""

    def __init__(self, field: Field):
        self.field = field
        self._made: dict[str, str] = {}

    def texts(self) -> list[str]:
        return list(self._made.values())

    def arithmetic(self, opcode: str, type: str) -> str:
        if opcode == "frem":
            return self._drawn("remainder", type, [type, type])
        return self._mapped(f"field.{opcode}", type, [type, type], lambda x: _call_of(f"field.{opcode}", x))

    def conversion(self, opcode: str, source: str, target: str) -> str:
        if opcode in ("sitofp", "uitofp"):
            kind = "signed" if opcode == "sitofp" else "unsigned"
            return self._mapped(f"field.from.{kind}", target, [source], lambda x: _from_integer(kind, source, x[0]))
        return self._mapped("field.to.integer", target, [source], lambda x: _to_integer(lanes_of(target)[1], 0, "", x))

    def named(self, name: str, result: str, parameters: Sequence[str]) -> str:
        """A function that a stack calls by its name."""
        wanted = name.removeprefix(PREFIX).rpartition(".")[0]
        if wanted.startswith("to."):
            target = wanted.removeprefix("to.")
            width, kind = int(target[1:]), target[0]
            return self._mapped(
                f"field.{wanted}", result, parameters, lambda x: _to_integer(lanes_of(result)[1], width, kind, x)
            )
        if wanted == "value":
            return self._mapped("field.value", result, parameters, lambda x: [f"  %r = freeze float {x[0]}"])
        if wanted.startswith("from."):
            return self.conversion("sitofp" if wanted.startswith("from.s") else "uitofp", parameters[0], result)
        return self._drawn(wanted, result, parameters)

    def intrinsic(self, name: str, result: str, parameters: Sequence[str], opaque: Collection[str]) -> str | None:
        """An intrinsic that computes with floats; None for one that is not known."""
        base = re.sub(r"\.v?\d*b?f\d+$", "", name)
        if base in _FMA:
            return self._mapped("field.fma", result, parameters, lambda x: _call_of("field.fma", x))
        if base in _SUMS:
            return self._sum(_SUMS[base], result, parameters)
        if base.startswith(_PAIRS):
            return self._pairs(parameters)
        known = base.removeprefix("llvm.")
        return self._drawn(NAMES.get(known, known), result, parameters) if known in opaque else None

    def _drawn(self, name: str, result: str, parameters: Sequence[str]) -> str:
        """A function whose values are drawn from its name and its operands."""
        start = start_of(self.field, number_of(name))
        limits = LIMITS.get(name, LIMITS_UNKNOWN) if len(parameters) == 1 else LIMITS_UNKNOWN
        texts = [_literal(self.field.number(x)) for x in limits]
        return self._mapped(f"field.named.{name}", result, parameters, lambda x: _drawn(start, texts, x), drawn=True)

    def _mapped(
        self,
        name: str,
        result: str,
        parameters: Sequence[str],
        body: Callable[[list[str]], list[str]],
        drawn: bool = False,
    ) -> str:
        """A function of single floats on the lanes of vectors. body: the lines that make %r of its operands."""
        symbol = f'"{name}.{".".join(map(short, (*parameters, result)))}"'
        if symbol not in self._made:
            lanes, _ = lanes_of(result)
            scalar = [lanes_of(p)[1] for p in parameters]
            one = symbol if not lanes else f'"{name}.{".".join(map(short, (*scalar, lanes_of(result)[1])))}"'
            if one not in self._made:
                self._made[one] = _scalar(one, lanes_of(result)[1], scalar, body)
            if lanes:
                self._made[symbol] = _by_lanes(symbol, one, result, parameters)
        return f"@{symbol}"

    def _sum(self, opcode: str, result: str, parameters: Sequence[str]) -> str:
        element, vector = parameters
        one = self.arithmetic(opcode, element)
        lanes, _ = lanes_of(vector)
        symbol = f'"field.all.{opcode}.{short(vector)}"'
        self._made[symbol] = f"""define internal {result} @{symbol}({element} %a, {vector} %b) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  %t = phi {element} [ %a, %entry ], [ %u, %loop ]
  %x = extractelement {vector} %b, i64 %i
  %u = call {element} {one}({element} %t, {element} %x)
  %n = add i64 %i, 1
  %more = icmp ult i64 %n, {lanes}
  br i1 %more, label %loop, label %done
done:
  ret {element} %u
}}"""
        return f"@{symbol}"

    def _pairs(self, parameters: Sequence[str]) -> str:
        """A sum, and two products of neighbours, a lane."""
        total, pair = parameters[:2]
        lanes, _ = lanes_of(total)
        symbol, wide = f'"field.pairs.{short(total)}"', f"<{2 * lanes} x bfloat>"
        lines = [f"  %p = bitcast {pair} %a to {wide}", f"  %q = bitcast {pair} %b to {wide}"]
        for lane in range(lanes):
            lines.append(f"  %t{lane}.0 = extractelement {total} %c, i64 {lane}")
            for side in range(2):
                number = f"{lane}.{side}"
                for name, value in (("x", "%p"), ("y", "%q")):
                    lines.append(f"  %b{name}{number} = extractelement {wide} {value}, i64 {2 * lane + side}")
                    lines.append(f"  %{name}{number} = fpext bfloat %b{name}{number} to float")
                lines.append(
                    f"  %t{lane}.{side + 1} = call float @field.fma(float %x{number}, float %y{number}, "
                    f"float %t{number})"
                )
            before = f"%r{lane - 1}" if lane else "poison"
            lines.append(f"  %r{lane} = insertelement {total} {before}, float %t{lane}.2, i64 {lane}")
        body = "\n".join([*lines, f"  ret {total} %r{lanes - 1}"])
        self._made[symbol] = f"define internal {total} @{symbol}({total} %c, {pair} %a, {pair} %b) {{\n{body}\n}}"
        return f"@{symbol}"


LIMITS_UNKNOWN = (float("nan"), float("nan"))


def _literal(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _call_of(function: str, operands: list[str]) -> list[str]:
    return [f"  %r = call float @{function}({', '.join(f'float {x}' for x in operands)})"]


def _from_integer(kind: str, source: str, operand: str) -> list[str]:
    width = int(lanes_of(source)[1][1:])
    if width > 64:
        raise CodegenError(f"floats of {width}-bit integers have no meaning over a field", remedy="add them to codegen")
    extend = "sext" if kind == "signed" else "zext"
    wide = f"  %w = {extend} i{width} {operand} to i64" if width < 64 else f"  %w = add i64 {operand}, 0"
    return [wide, f"  %r = call float @field.from.{kind}(i64 %w)"]


def _to_integer(result: str, width: int, kind: str, operands: list[str]) -> list[str]:
    """The low bits of the balanced element. width: of a type of HLO that is narrower than its register."""
    lines = [f"  %n = call i64 @field.to.integer(float {operands[0]})"]
    bits = int(result[1:])
    lines.append(f"  %t = trunc i64 %n to {result}" if bits < 64 else "  %t = add i64 %n, 0")
    spare = bits - width if width else 0
    lines.append(f"  %u = shl {result} %t, {spare}")
    lines.append(f"  %r = {'ashr' if kind == 's' else 'lshr'} {result} %u, {spare}")
    return lines


def _drawn(start: int, limits: Sequence[str], operands: list[str]) -> list[str]:
    lines, state, special = [], str(start), "false"
    for number, x in enumerate(operands):
        lines.append(f"  %h{number} = call i64 @field.mix(i64 {state}, float {x})")
        lines.append(f"  %s{number} = call i1 @field.special(float {x})")
        lines.append(f"  %e{number} = or i1 {special}, %s{number}")
        state, special = f"%h{number}", f"%e{number}"
    first = operands[0]
    return [
        *lines,
        f"  %drawn = call float @field.drawn(i64 {state})",
        f"  %above = fcmp ogt float {first}, 0.0",
        f"  %end = select i1 %above, float {limits[0]}, float {limits[1]}",
        f"  %nan = fcmp uno float {first}, {first}",
        f"  %limit = select i1 %nan, float {first}, float %end",
        f"  %r = select i1 {special}, float %limit, float %drawn",
    ]


def _scalar(symbol: str, result: str, parameters: Sequence[str], body: Callable[[list[str]], list[str]]) -> str:
    """A function whose body computes in f32: operands and result of other float types hold numbers of f32."""
    lines, operands = [], []
    for number, type in enumerate(parameters):
        operand = f"%a{number}"
        if type in SHORT and type != "float":
            operand = f"%f{number}"
            kind = "fptrunc" if type == "double" else "fpext"
            lines.append(f"  {operand} = {kind} {type} %a{number} to float")
        operands.append(operand)
    lines += body(operands)
    back = "%r"
    if result in SHORT and result != "float":
        kind = "fpext" if result == "double" else "fptrunc"
        lines.append(f"  %back = {kind} float %r to {result}")
        back = "%back"
    given = ", ".join(f"{type} %a{number}" for number, type in enumerate(parameters))
    return "\n".join([f"define internal {result} @{symbol}({given}) {{", *lines, f"  ret {result} {back}", "}"])


def _by_lanes(symbol: str, one: str, result: str, parameters: Sequence[str]) -> str:
    """The same for each lane, in a loop."""
    lanes, element = lanes_of(result)
    given = ", ".join(f"{type} %a{number}" for number, type in enumerate(parameters))
    lines = [f"define internal {result} @{symbol}({given}) {{", "entry:", "  br label %loop", "loop:"]
    lines.append("  %i = phi i64 [ 0, %entry ], [ %n, %loop ]")
    lines.append(f"  %t = phi {result} [ poison, %entry ], [ %u, %loop ]")
    passed = []
    for number, type in enumerate(parameters):
        part = lanes_of(type)[1]
        lines.append(f"  %x{number} = extractelement {type} %a{number}, i64 %i")
        passed.append(f"{part} %x{number}")
    lines.append(f"  %y = call {element} @{one}({', '.join(passed)})")
    lines.append(f"  %u = insertelement {result} %t, {element} %y, i64 %i")
    lines += ["  %n = add i64 %i, 1", f"  %more = icmp ult i64 %n, {lanes}"]
    lines += ["  br i1 %more, label %loop, label %done", "done:", f"  ret {result} %u", "}"]
    return "\n".join(lines)
