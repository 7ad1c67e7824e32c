"""Programs that take and return tokens: before, between and behind arrays, in tuples, loops and branches."""

from __future__ import annotations

STATE = "(token[], s32[], f32[4])"
PAIR = "(token[], f32[4])"
INNER = "(token[], f32[3])"
OUTER = f"(token[], (f32[4], token[], {INNER}))"


def _module(entry: str, *computations: str, header: str = "") -> str:
    lines = "\n".join(f"  {line.strip()}" for line in entry.strip().splitlines())
    return "\n".join([f"HloModule m{header}", *computations, "ENTRY e {", lines, "}", ""])


ADD_ONE = "one = f32[] constant(1)\ny = f32[] add(x, one)\n"
TWO = "x = f32[4] parameter({0})\ny = f32[3] parameter({1})\n"
WORK = "n = f32[4] negate(x)\nm = f32[3] add(y, y)\n"

TOKENS = {
    "a token goes through": _module(
        "t = token[] parameter(0)\nx = f32[] parameter(1)\n" + ADD_ONE + "ROOT r = (token[], f32[]) tuple(t, y)"
    ),
    "a token is made": _module(
        "x = f32[] parameter(0)\nt = token[] after-all()\n" + ADD_ONE + "ROOT r = (token[], f32[]) tuple(t, y)"
    ),
    "tokens are last": _module(
        "x = f32[] parameter(0)\nt = token[] parameter(1)\n" + ADD_ONE + "ROOT r = (f32[], token[]) tuple(y, t)"
    ),
    "tokens are between": _module(
        "a = token[] parameter(0)\nb = token[] parameter(2)\nc = token[] parameter(4)\n"
        + TWO.format(1, 3)
        + WORK
        + "ROOT r = (token[], f32[3], token[], f32[4], token[]) tuple(a, m, b, n, c)"
    ),
    "in nested tuples": _module(
        f"p = {OUTER} parameter(0)\na = token[] get-tuple-element(p), index=0\n"
        f"q = (f32[4], token[], {INNER}) get-tuple-element(p), index=1\nx = f32[4] get-tuple-element(q), index=0\n"
        f"s = {INNER} get-tuple-element(q), index=2\ny = f32[3] get-tuple-element(s), index=1\n"
        + WORK
        + f"i = {PAIR} tuple(a, n)\nROOT r = (f32[3], {PAIR}, {INNER}) tuple(m, i, s)"
    ),
    "inputs and constants are results": _module(
        "t = token[] parameter(0)\n"
        + TWO.format(1, 2)
        + "k = f32[4] constant({1,2,3,4})\n"
        + "ROOT r = (token[], f32[4], f32[4], token[], f32[3], f32[4]) tuple(t, x, k, t, y, x)"
    ),
    "results take over inputs": _module(
        f"t = token[] parameter(0)\nx = f32[4] parameter(1)\np = {INNER} parameter(2)\n"
        "y = f32[3] get-tuple-element(p), index=1\n"
        + WORK
        + "ROOT r = (token[], f32[4], token[], f32[3]) tuple(t, n, t, m)",
        header=", input_output_alias={ {1}: (1, {}, must-alias), {3}: (2, {1}, may-alias) }",
    ),
    "a loop carries one": _module(
        f"t = token[] parameter(0)\nx = f32[4] parameter(1)\nz = s32[] constant(0)\ns = {STATE} tuple(t, z, x)\n"
        f"ROOT w = {STATE} while(s), condition=more, body=next",
        f"more {{ s = {STATE} parameter(0)\n  i = s32[] get-tuple-element(s), index=1\n  n = s32[] constant(3)\n"
        "  ROOT l = pred[] compare(i, n), direction=LT }",
        f"next {{ s = {STATE} parameter(0)\n  t = token[] get-tuple-element(s), index=0\n"
        "  i = s32[] get-tuple-element(s), index=1\n  x = f32[4] get-tuple-element(s), index=2\n"
        "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  y = f32[4] add(x, x)\n  u = token[] after-all(t)\n"
        f"  ROOT r = {STATE} tuple(u, j, y) }}",
    ),
    "branches return one": _module(
        "t = token[] parameter(0)\nx = f32[4] parameter(1)\np = pred[] parameter(2)\n"
        f"s = {PAIR} tuple(t, x)\nROOT c = {PAIR} conditional(p, s, s), true_computation=f, false_computation=g",
        f"f {{ s = {PAIR} parameter(0)\n  t = token[] get-tuple-element(s), index=0\n"
        f"  x = f32[4] get-tuple-element(s), index=1\n  n = f32[4] negate(x)\n  ROOT r = {PAIR} tuple(t, n) }}",
        f"g {{ s = {PAIR} parameter(0)\n  t = token[] after-all()\n"
        f"  x = f32[4] get-tuple-element(s), index=1\n  n = f32[4] add(x, x)\n  ROOT r = {PAIR} tuple(t, n) }}",
    ),
    "another order of memory": _module(
        "t = token[] parameter(0)\nx = f32[2,3]{0,1} parameter(1)\nn = f32[2,3]{0,1} negate(x)\n"
        "ROOT r = (token[], f32[2,3]{0,1}, f32[2,3]{1,0}) tuple(t, n, n)"
    ),
    "the result is one": _module("x = f32[] parameter(0)\nROOT t = token[] after-all()"),
    "nothing else": _module("ROOT t = token[] parameter(0)"),
}

DYNAMIC = _module(
    "t = token[] parameter(0)\nx = f32[<=4] parameter(1)\nn = f32[<=4] negate(x)\n"
    "ROOT r = (token[], f32[<=4]) tuple(t, n)"
)
