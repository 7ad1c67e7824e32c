"""The arithmetic of a field as LLVM IR: functions on single floats, in a module that kernels are linked with.

Finite operands are elements. Where an operand is infinite or NaN, or a divisor is zero, the signs of the operands
decide by the rules of floats: 1 · inf, 0 · inf, 1 / 0.
"""

from __future__ import annotations

from .element import Field

GOLDEN, SPREAD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
"""Odd factors that spread the bits of a product over a word."""

_TEXT = """
define i64 @field.read(float %x) {{
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %none = icmp ult i32 %size, {offset}
  %above = sub i32 %size, {offset}
  %counted = lshr i32 %above, {shift}
  %wide = zext i32 %counted to i64
  %one = add i64 %wide, 1
  %m = urem i64 %one, {p}
  %other = sub i64 {p}, %m
  %back = urem i64 %other, {p}
  %negative = icmp slt i32 %bits, 0
  %signed = select i1 %negative, i64 %back, i64 %m
  %r = select i1 %none, i64 0, i64 %signed
  ret i64 %r
}}
define float @field.write(i64 %m) {{
  %negative = icmp ugt i64 %m, {half}
  %other = sub i64 {p}, %m
  %size = select i1 %negative, i64 %other, i64 %m
  %less = sub i64 %size, 1
  %short = trunc i64 %less to i32
  %up = shl i32 %short, {shift}
  %bits = add i32 %up, {offset}
  %signed = or i32 %bits, -2147483648
  %full = select i1 %negative, i32 %signed, i32 %bits
  %none = icmp eq i64 %m, 0
  %r = select i1 %none, i32 0, i32 %full
  %x = bitcast i32 %r to float
  ret float %x
}}
define i1 @field.special(float %x) {{
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %r = icmp uge i32 %size, 2139095040
  ret i1 %r
}}
define float @field.sign(float %x) {{
  %special = call i1 @field.special(float %x)
  %zero = fcmp oeq float %x, 0.0
  %one = call float @llvm.copysign.f32(float 1.0, float %x)
  %finite = select i1 %zero, float 0.0, float %one
  %r = select i1 %special, float %x, float %finite
  ret float %r
}}
define float @field.settle(float %x) {{
  %special = call i1 @field.special(float %x)
  %r = select i1 %special, float %x, float 0.0
  ret float %r
}}
define i64 @field.times(i64 %a, i64 %b) {{
  %product = mul i64 %a, %b
  %r = urem i64 %product, {p}
  ret i64 %r
}}
define i64 @field.inverse(i64 %a) {{
entry:
  br label %loop
loop:
  %power = phi i64 [ %a, %entry ], [ %square, %loop ]
  %result = phi i64 [ 1, %entry ], [ %next, %loop ]
  %left = phi i64 [ {p_less_2}, %entry ], [ %rest, %loop ]
  %more = call i64 @field.times(i64 %result, i64 %power)
  %low = trunc i64 %left to i1
  %next = select i1 %low, i64 %more, i64 %result
  %square = call i64 @field.times(i64 %power, i64 %power)
  %rest = lshr i64 %left, 1
  %again = icmp ne i64 %rest, 0
  br i1 %again, label %loop, label %done
done:
  ret i64 %next
}}
{binary}
define float @field.fsub(float %a, float %b) {{
  %n = fneg float %b
  %r = call float @field.fadd(float %a, float %n)
  ret float %r
}}
define float @field.fma(float %a, float %b, float %c) {{
  %product = call float @field.fmul(float %a, float %b)
  %r = call float @field.fadd(float %product, float %c)
  ret float %r
}}
define i64 @field.mix(i64 %h, float %x) {{
  %m = call i64 @field.read(float %x)
  %v = call i64 @field.times(i64 %m, i64 {inverse})
  %one = add i64 %v, 1
  %sum = add i64 %h, %one
  %a = mul i64 %sum, {golden}
  %b = lshr i64 %a, 31
  %c = xor i64 %a, %b
  %d = mul i64 %c, {spread}
  %e = lshr i64 %d, 29
  %f = xor i64 %d, %e
  ret i64 %f
}}
define float @field.drawn(i64 %h) {{
  %v = urem i64 %h, {p}
  %m = call i64 @field.times(i64 %v, i64 {twist})
  %x = call float @field.write(i64 %m)
  ret float %x
}}
define i64 @field.to.integer(float %x) {{
  %special = call i1 @field.special(float %x)
  %m = call i64 @field.read(float %x)
  %v = call i64 @field.times(i64 %m, i64 {inverse})
  %negative = icmp ugt i64 %v, {half}
  %other = sub i64 %v, {p}
  %r = select i1 %negative, i64 %other, i64 %v
  %s = select i1 %special, i64 0, i64 %r
  ret i64 %s
}}
define float @field.from.signed(i64 %n) {{
  %rest = srem i64 %n, {p}
  %up = add i64 %rest, {p}
  %v = urem i64 %up, {p}
  %m = call i64 @field.times(i64 %v, i64 {twist})
  %x = call float @field.write(i64 %m)
  ret float %x
}}
define float @field.from.unsigned(i64 %n) {{
  %v = urem i64 %n, {p}
  %m = call i64 @field.times(i64 %v, i64 {twist})
  %x = call float @field.write(i64 %m)
  ret float %x
}}
declare float @llvm.copysign.f32(float, float)
"""

_BINARY = """
define float @field.{op}(float %a, float %b) {{
  %left = call i1 @field.special(float %a)
  %right = call i1 @field.special(float %b)
  %either = or i1 %left, %right
{also}  br i1 %unusual, label %signs, label %elements
signs:
  %s = call float @field.sign(float %a)
  %t = call float @field.sign(float %b)
  %u = {op} float %s, %t
  %w = call float @field.settle(float %u)
  ret float %w
elements:
  %m = call i64 @field.read(float %a)
  %n = call i64 @field.read(float %b)
{body}
  %x = call float @field.write(i64 %r)
  ret float %x
}}
"""
_ALWAYS = "  %unusual = or i1 %either, false\n"
_DIVISOR = "  %none = fcmp oeq float %b, 0.0\n  %unusual = or i1 %either, %none\n"
_BODIES = {
    "fadd": (_ALWAYS, "  %sum = add i64 %m, %n\n  %r = urem i64 %sum, {p}"),
    "fmul": (
        _ALWAYS,
        "  %product = call i64 @field.times(i64 %m, i64 %n)\n  %r = call i64 @field.times(i64 %product, i64 {inverse})",
    ),
    "fdiv": (
        _DIVISOR,
        """  %i = call i64 @field.inverse(i64 %n)
  %quotient = call i64 @field.times(i64 %m, i64 %i)
  %r = call i64 @field.times(i64 %quotient, i64 {twist})""",
    ),
}

EXPORTED = {
    "field.fadd": "float (float, float)",
    "field.fsub": "float (float, float)",
    "field.fmul": "float (float, float)",
    "field.fdiv": "float (float, float)",
    "field.fma": "float (float, float, float)",
    "field.special": "i1 (float)",
    "field.mix": "i64 (i64, float)",
    "field.drawn": "float (i64)",
    "field.to.integer": "i64 (float)",
    "field.from.signed": "float (i64)",
    "field.from.unsigned": "float (i64)",
}
"""Functions that rewritten modules call, with their types."""


def runtime(field: Field) -> str:
    """LLVM IR of the functions in EXPORTED, for one field."""
    given = {
        "p": field.prime,
        "p_less_2": field.prime - 2,
        "half": field.half,
        "twist": field.twist,
        "inverse": pow(field.twist, -1, field.prime),
        "offset": field.offset,
        "shift": field.shift,
        "golden": GOLDEN,
        "spread": SPREAD,
    }
    binary = "".join(
        _BINARY.format(op=op, also=also, body=body.format(**given)) for op, (also, body) in _BODIES.items()
    )
    return _TEXT.format(**given, binary=binary)


def start_of(field: Field, number: int) -> int:
    """What a function's operands are mixed into."""
    return (field.seed * GOLDEN + number) % (1 << 64)
