"""Intrinsics of LLVM that devices have no exact form of, as functions in LLVM IR.

`llvm.maximum` of OpenCL is fmax, which drops a NaN.
"""

from __future__ import annotations

import re

_FLOATS = {"f16": ("half", "i16"), "f32": ("float", "i32"), "f64": ("double", "i64")}

_EXTREMUM = """
define internal {type} @"device.{name}.{short}"({type} %a, {type} %b) {{
  %unordered = fcmp uno {type} %a, %b
  %sum = fadd {type} %a, %b
  %before = fcmp {before} {type} %a, %b
  %first = select i1 %before, {type} %a, {type} %b
  %equal = fcmp oeq {type} %a, %b
  %left = bitcast {type} %a to {bits}
  %right = bitcast {type} %b to {bits}
  %both = {join} {bits} %left, %right
  %signed = bitcast {bits} %both to {type}
  %known = select i1 %equal, {type} %signed, {type} %first
  %result = select i1 %unordered, {type} %sum, {type} %known
  ret {type} %result
}}
"""
"""Equal numbers have equal bits, but for zeros of two signs: `and` of them is +0, `or` is -0."""

_EXTREMA = {"maximum": ("ogt", "and"), "minimum": ("olt", "or")}

_CALL = re.compile(r'@"?llvm\.(maximum|minimum)\.(f16|f32|f64)"?(?=\()')
_DECLARED = re.compile(r'^declare [^@\n]*@"?llvm\.(?:maximum|minimum)\.f\d+"?\([^\n]*\n', re.MULTILINE)


def legal(text: str) -> str:
    """The module with functions in place of such intrinsics."""
    used = sorted(set(_CALL.findall(text)))
    if not used:
        return text
    text = _CALL.sub(r'@"device.\1.\2"', _DECLARED.sub("", text))
    made = []
    for name, short in used:
        type_, bits = _FLOATS[short]
        before, join = _EXTREMA[name]
        made.append(_EXTREMUM.format(type=type_, bits=bits, name=name, short=short, before=before, join=join))
    return text + "".join(made)
