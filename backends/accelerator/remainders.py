"""`frem` of LLVM IR for devices without a mathematical library, as a function in LLVM IR: exact, as fmod of C.

LLVM makes x − y·trunc(x / y) of it for PTX, which is wrong where the quotient has more bits than the type, or none.
"""

from __future__ import annotations

import re

_WIDTHS = {"float": (32, 24), "double": (64, 53)}
"""Type → its bits, and those of its significand."""

_FUNCTION = """
define internal {type} @device.fmod.{type}({type} %x, {type} %y) {{
entry:
  %bits.x = bitcast {type} %x to {int}
  %bits.y = bitcast {type} %y to {int}
  %magnitude.x = and {int} %bits.x, {magnitude}
  %magnitude.y = and {int} %bits.y, {magnitude}
  %sign = xor {int} %bits.x, %magnitude.x
  %endless = icmp uge {int} %magnitude.x, {infinity}
  %nan = icmp ugt {int} %magnitude.y, {infinity}
  %zero = icmp eq {int} %magnitude.y, 0
  %wrong = or i1 %endless, %nan
  %none = or i1 %wrong, %zero
  br i1 %none, label %nothing, label %some
nothing:
  %infinite = fmul {type} %x, %y
  %made = fdiv {type} %infinite, %infinite
  ret {type} %made
some:
  %small = icmp ult {int} %magnitude.x, %magnitude.y
  br i1 %small, label %itself, label %divide
itself:
  ret {type} %x
divide:
  %biased.x = lshr {int} %magnitude.x, {fraction}
  %biased.y = lshr {int} %magnitude.y, {fraction}
  %normal.x = icmp ne {int} %biased.x, 0
  %normal.y = icmp ne {int} %biased.y, 0
  %first.x = call {int} @llvm.umax.i{bits}({int} %biased.x, {int} 1)
  %first.y = call {int} @llvm.umax.i{bits}({int} %biased.y, {int} 1)
  %low.x = and {int} %magnitude.x, {significand}
  %low.y = and {int} %magnitude.y, {significand}
  %high.x = select i1 %normal.x, {int} {one}, {int} 0
  %high.y = select i1 %normal.y, {int} {one}, {int} 0
  %whole.x = or disjoint {int} %low.x, %high.x
  %whole.y = or disjoint {int} %low.y, %high.y
  %left.x = {widened} %whole.x{to}
  %left.y = {widened} %whole.y{to}
  %apart = sub {int} %first.x, %first.y
  %start = urem i64 %left.x, %left.y
  br label %next
next:
  %rest = phi i64 [ %start, %divide ], [ %smaller, %step ]
  %distance = phi {int} [ %apart, %divide ], [ %nearer, %step ]
  %near = icmp eq {int} %distance, 0
  br i1 %near, label %done, label %step
step:
  %many = call {int} @llvm.umin.i{bits}({int} %distance, {int} {room})
  %amount = {widened} %many{to}
  %shifted = shl i64 %rest, %amount
  %smaller = urem i64 %shifted, %left.y
  %nearer = sub {int} %distance, %many
  br label %next
done:
  %number = uitofp i64 %rest to {type}
  %tiny = icmp ule {int} %first.y, {fraction}
  %down = sub {int} %first.y, 1
  %bit = shl {int} 1, %down
  %above = sub {int} %first.y, {fraction}
  %power = shl {int} %above, {fraction}
  %scale.bits = select i1 %tiny, {int} %bit, {int} %power
  %scale = bitcast {int} %scale.bits to {type}
  %result = fmul {type} %number, %scale
  %result.bits = bitcast {type} %result to {int}
  %signed = or {int} %result.bits, %sign
  %all = bitcast {int} %signed to {type}
  ret {type} %all
}}
declare {int} @llvm.umax.i{bits}({int}, {int})
declare {int} @llvm.umin.i{bits}({int}, {int})
"""
"""Long division by as many bits of the quotient at once as a word has room for. What is left is a multiple of the least
bit of y and less than y: its product with that bit is exact.
"""

_REMAINDER = re.compile(r"= frem (?:fast |contract |n\w+ |arcp |afn |reassoc )*(float|double) ([^,\n]+), ([^,\n]+)")
_HALF = re.compile(r"^\s*(%[^\n=]+) = frem (?:\w+ )*(half|bfloat) ([^,\n]+), ([^,\n]+)", re.MULTILINE)


def with_exact_remainders(text: str) -> str:
    """The module with calls of functions in place of `frem`."""
    if " frem " not in text:
        return text
    text = _HALF.sub(_widened, text)
    used = sorted({found.group(1) for found in _REMAINDER.finditer(text)})
    text = _REMAINDER.sub(r"= call \1 @device.fmod.\1(\1 \2, \1 \3)", text)
    declared = set(re.findall(r"^declare [^@\n]*@\"?([\w.]+)", text, re.MULTILINE))
    return text + "".join(_without(_function(type_), declared) for type_ in used)


def _widened(found: re.Match[str]) -> str:
    """The remainder of a narrow type, exact in float."""
    result, type_, x, y = found.groups()
    name = result.strip('%"')
    wide = [f'%"{name}.{part}"' for part in ("x", "y", "rest")]
    return (
        f"  {wide[0]} = fpext {type_} {x} to float\n  {wide[1]} = fpext {type_} {y} to float\n"
        f"  {wide[2]} = frem float {wide[0]}, {wide[1]}\n  {result} = fptrunc float {wide[2]} to {type_}"
    )


def _function(type_: str) -> str:
    bits, precision = _WIDTHS[type_]
    fraction = precision - 1
    one = 1 << fraction
    infinity = ((1 << (bits - precision)) - 1) << fraction
    return _FUNCTION.format(
        type=type_, int=f"i{bits}", bits=bits, fraction=fraction, one=one, significand=one - 1, infinity=infinity,
        magnitude=(1 << (bits - 1)) - 1, room=64 - precision,
        widened="zext i32" if bits < 64 else "or i64 0,", to=" to i64" if bits < 64 else "",
    )  # fmt: skip


def _without(text: str, declared: set[str]) -> str:
    """Without what the module declares itself."""
    lines = text.splitlines(keepends=True)
    return "".join(x for x in lines if not (x.startswith("declare") and x.split("@")[1].split("(")[0] in declared))
