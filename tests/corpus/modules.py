"""Modules of the small corpus: control flow, fusions, layouts, tuples and regions that single ops do not show."""

from collections.abc import Iterator

import numpy as np

from ...differential.fake_inputs import fake_inputs
from ...formats.text.parser import parse_module
from .one_op import coarse

ADD = """add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
"""

MODULES = {
    "while_tuple": """below {
  s = (s32[], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  h = f32[] constant(0.5)
  hs = f32[4,6] broadcast(h), dimensions={}
  y = f32[4,6] multiply(x, hs)
  z = f32[4,6] subtract(y, x)
  ROOT t = (s32[], f32[4,6]) tuple(j, z)
}
ENTRY e {
  x = f32[4,6] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[4,6]) tuple(zero, x)
  ROOT w = (s32[], f32[4,6]) while(t), condition=below, body=step
}
""",
    "while_of_unknown_length": """most {
  s = (s32[], s32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(100)
  ROOT r = pred[] compare(i, n), direction=LT
}
largest {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT z = s32[] maximum(x, y)
}
step {
  s = (s32[], s32[9]) parameter(0)
  x = s32[9] get-tuple-element(s), index=1
  two = s32[] constant(2)
  twos = s32[9] broadcast(two), dimensions={}
  i = s32[9] iota(), iota_dimension=0
  y = s32[9] multiply(x, twos)
  z = s32[9] add(y, i)
  least = s32[] constant(0)
  m = s32[] reduce(z, least), dimensions={0}, to_apply=largest
  ROOT t = (s32[], s32[9]) tuple(m, z)
}
ENTRY e {
  x = s32[9] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], s32[9]) tuple(zero, x)
  w = (s32[], s32[9]) while(t), condition=most, body=step
  ROOT r = s32[9] get-tuple-element(w), index=1
}
""",
    "conditional_of_three": """negative {
  x = f32[5] parameter(0)
  ROOT y = f32[5] negate(x)
}
squared {
  x = f32[5] parameter(0)
  ROOT y = f32[5] multiply(x, x)
}
same {
  ROOT x = f32[5] parameter(0)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[5] parameter(1)
  c = f32[5] conditional(i, x, x, x), branch_computations={negative, squared, same}
  ROOT r = f32[5] add(c, x)
}
""",
    "softmax": """largest {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] maximum(x, y)
}
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
ENTRY e {
  x = f32[7,33] parameter(0)
  low = f32[] constant(-inf)
  m = f32[7] reduce(x, low), dimensions={1}, to_apply=largest
  ms = f32[7,33] broadcast(m), dimensions={0}
  d = f32[7,33] subtract(x, ms)
  e = f32[7,33] exponential(d)
  zero = f32[] constant(0)
  s = f32[7] reduce(e, zero), dimensions={1}, to_apply=add
  ss = f32[7,33] broadcast(s), dimensions={0}
  ROOT r = f32[7,33] divide(e, ss)
}
""",
    "fusion": ADD
    + """body {
  p = f32[6,8] parameter(0)
  q = f32[6,8] parameter(1)
  s = f32[6,8] add(p, q)
  t = f32[6,8] tanh(s)
  zero = f32[] constant(0)
  ROOT r = f32[6] reduce(t, zero), dimensions={1}, to_apply=add
}
ENTRY e {
  x = f32[6,8] parameter(0)
  y = f32[6,8] parameter(1)
  f = f32[6] fusion(x, y), kind=kLoop, calls=body
  b = f32[6,8] broadcast(f), dimensions={0}
  ROOT r = f32[6,8] multiply(b, y)
}
""",
    "layouts": """ENTRY e {
  x = f32[3,4,5]{0,1,2} parameter(0)
  y = f32[3,4,5]{1,2,0} parameter(1)
  s = f32[3,4,5]{2,0,1} add(x, y)
  t = f32[5,3,4]{0,2,1} transpose(s), dimensions={2,0,1}
  r = f32[15,4]{0,1} reshape(t)
  ROOT out = (f32[15,4]{0,1}, f32[3,4,5]{2,0,1}) tuple(r, s)
}
""",
    "nested_tuples": """ENTRY e {
  p = (f32[3], (s32[2,2], pred[])) parameter(0)
  x = f32[3] get-tuple-element(p), index=0
  q = (s32[2,2], pred[]) get-tuple-element(p), index=1
  i = s32[2,2] get-tuple-element(q), index=0
  b = pred[] get-tuple-element(q), index=1
  f = f32[2,2] convert(i)
  n = f32[3] negate(x)
  c = f32[3] select(b, x, n)
  inner = (f32[2,2], s32[2,2]) tuple(f, i)
  ROOT r = ((f32[2,2], s32[2,2]), f32[3], f32[3]) tuple(inner, c, x)
}
""".replace("c = f32[3] select(b, x, n)", "bs = pred[3] broadcast(b), dimensions={}\n  c = f32[3] select(bs, x, n)"),
    "argmax": """larger {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  eq = pred[] compare(a, b), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  first = pred[] or(gt, tie)
  v = f32[] select(first, a, b)
  k = s32[] select(first, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}
ENTRY e {
  x = f32[5,17] parameter(0)
  i = s32[5,17] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[5], s32[5]) reduce(x, i, low, zero), dimensions={1}, to_apply=larger
}
""",
    "sort_of_pairs": """before {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  x = f32[] parameter(2)
  y = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  k = s32[4,23] parameter(0)
  v = f32[4,23] parameter(1)
  ROOT s = (s32[4,23], f32[4,23]) sort(k, v), dimensions={1}, is_stable=true, to_apply=before
}
""",
    "dot_of_bf16_with_bias": """ENTRY e {
  x = bf16[6,16] parameter(0)
  w = bf16[16,10] parameter(1)
  b = f32[10] parameter(2)
  d = f32[6,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bs = f32[6,10] broadcast(b), dimensions={1}
  s = f32[6,10] add(d, bs)
  z = f32[] constant(0)
  zs = f32[6,10] broadcast(z), dimensions={}
  ROOT r = f32[6,10] maximum(s, zs)
}
""",
    "running_sum": ADD
    + """ENTRY e {
  x = f32[3,20] parameter(0)
  z = f32[] constant(0)
  c = f32[3,20] reduce-window(x, z), window={size=1x20 pad=0_0x19_0}, to_apply=add
  i = s32[] parameter(1)
  o = s32[] constant(0)
  part = f32[3,4] dynamic-slice(c, o, i), dynamic_slice_sizes={3,4}
  ROOT r = f32[3,20] dynamic-update-slice(x, part, o, o)
}
""",
    "random_bits": """ENTRY e {
  s = u64[2] parameter(0)
  g = (u64[2], u32[3,5]) rng-bit-generator(s), algorithm=rng_three_fry
  t = u64[2] get-tuple-element(g), index=0
  b = u32[3,5] get-tuple-element(g), index=1
  h = (u64[2], u8[11]) rng-bit-generator(t), algorithm=rng_three_fry
  nine = u32[] constant(9)
  nines = u32[3,5] broadcast(nine), dimensions={}
  m = u32[3,5] shift-right-logical(b, nines)
  f = f32[3,5] convert(m)
  ROOT r = (f32[3,5], (u64[2], u8[11])) tuple(f, h)
}
""",
    "largest_of_rows": """ENTRY e {
  x = f32[4,21] parameter(0)
  t = (f32[4,5], s32[4,5]) topk(x), k=5, largest=true
  v = f32[4,5] get-tuple-element(t), index=0
  i = s32[4,5] get-tuple-element(t), index=1
  n = f32[4,5] negate(v)
  ROOT r = (f32[4,5], s32[4,5]) tuple(n, i)
}
""",
    "words_of_bits": """ENTRY e {
  x = u32[16] parameter(0)
  a = u8[16,4] bitcast-convert(x)
  b = s8[16,4] convert(a)
  n = u32[16] not(x)
  five = u32[] constant(5)
  fives = u32[16] broadcast(five), dimensions={}
  l = u32[16] shift-left(x, fives)
  r = u32[16] shift-right-logical(n, fives)
  m = u32[16] xor(l, r)
  ROOT t = (s8[16,4], u32[16]) tuple(b, m)
}
""",
}


def cases() -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """id, text of the module, and inputs."""
    for name, text in MODULES.items():
        whole = f"HloModule {name}\n\n" + text.replace("}\n", "}\n\n").rstrip() + "\n"
        yield name, whole, coarse(fake_inputs(parse_module(whole), seed=len(name)))
