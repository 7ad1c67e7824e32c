"""Programs that are compiled ahead of time, and their arrays as bytes of memory."""

import numpy as np

from ...formats.text.parser import parse_module

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"

PROGRAMS = {
    "elementwise": "ENTRY e { x = f32[37] parameter(0)\n y = f32[37] tanh(x)\n t = f32[37] atan2(x, y)\n"
    " ROOT r = f32[37] multiply(t, y) }",
    "product": "ENTRY e { x = f32[17,33] parameter(0)\n y = f32[33,29] parameter(1)\n"
    " ROOT d = f32[17,29] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "loop": "more { s = (s32[], f32[9]) parameter(0)\n n = s32[] get-tuple-element(s), index=0\n"
    " k = s32[] constant(300000)\n ROOT c = pred[] compare(n, k), direction=LT }\n"
    "next { s = (s32[], f32[9]) parameter(0)\n n = s32[] get-tuple-element(s), index=0\n"
    " v = f32[9] get-tuple-element(s), index=1\n one = s32[] constant(1)\n m = s32[] add(n, one)\n"
    " w = f32[9] sine(v)\n ROOT t = (s32[], f32[9]) tuple(m, w) }\n"
    "ENTRY e { n = s32[] parameter(0)\n v = f32[9] parameter(1)\n s = (s32[], f32[9]) tuple(n, v)\n"
    " ROOT w = (s32[], f32[9]) while(s), condition=more, body=next }",
    "results": ADD
    + "ENTRY e { x = f32[7,50] parameter(0)\n z = f32[] constant(0)\n"
    " s = f32[7] reduce(x, z), dimensions={1}, to_apply=add\n c = f32[3] constant({1,2.5,-3})\n"
    " ROOT t = (f32[7], f32[7,50], (f32[3], f32[7])) tuple(s, x, u)\n}".replace(
        " ROOT", " u = (f32[3], f32[7]) tuple(c, s)\n ROOT"
    ),
    "constants": "ENTRY e { x = s32[4] parameter(0)\n c = s32[4] constant({7,-8,9,2000000000})\n"
    " ROOT r = s32[4] xor(x, c) }",
    "empty": "ENTRY e { x = f32[0,3] parameter(0)\n y = f64[5] parameter(1)\n n = f64[5] negate(y)\n"
    " m = f32[0,3] negate(x)\n ROOT t = (f32[0,3], f64[5]) tuple(m, n) }",
    "none": "ENTRY e { ROOT t = () tuple() }",
    "layout": "ENTRY e { x = f32[3,5]{0,1} parameter(0)\n ROOT r = f32[3,5]{1,0} negate(x) }",
    "branches": "one { x = f32[5] parameter(0)\n ROOT r = f32[5] cosine(x) }\n"
    "two { x = f32[5] parameter(0)\n ROOT r = f32[5] negate(x) }\n"
    "ENTRY e { p = pred[] parameter(0)\n x = f32[5] parameter(1)\n"
    " ROOT r = f32[5] conditional(p, x, x), true_computation=one, false_computation=two }",
    "half": "ENTRY e { x = f16[40] parameter(0)\n y = f16[40] logistic(x)\n ROOT z = f16[40] add(y, x) }",
    "brain": "ENTRY e { x = bf16[33] parameter(0)\n y = bf16[33] multiply(x, x)\n ROOT z = bf16[33] add(y, x) }",
    "wide": "ENTRY e { x = u64[21] parameter(0)\n y = u64[21] parameter(1)\n d = u64[21] divide(x, y)\n"
    " ROOT r = u64[21] shift-right-logical(d, y) }",
    "complex": "ENTRY e { x = c64[15] parameter(0)\n y = c64[15] exponential(x)\n ROOT m = c64[15] multiply(x, y) }",
    "subnormal": "ENTRY e { x = f32[3] parameter(0)\n c = f32[] constant(1e-39)\n"
    " b = f32[3] broadcast(c), dimensions={}\n"
    " ROOT r = f32[3] multiply(x, b) }",
}


def program(name):
    header = (
        "HloModule m, entry_computation_layout={(f32[3,5]{0,1})->f32[3,5]{1,0}}" if name == "layout" else "HloModule m"
    )
    return parse_module(f"{header}\n{PROGRAMS[name]}")


def physical(inputs, name):
    return [np.asarray(x).T for x in inputs] if name == "layout" else [np.asarray(x) for x in inputs]


def bits(arrays):
    return [np.asarray(a).tobytes() for a in arrays]
