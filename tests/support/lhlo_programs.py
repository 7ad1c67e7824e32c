"""Runs plans that were read from LHLO, and a module with control flow, tuples and complex numbers."""

from __future__ import annotations

import numpy as np

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...migration import Flags
from ...migration.choose import emit_for
from ...planning.plan import Plan


def run(program: Plan, stack: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    compiled = HostCompiler().compile(program, emit_for(Flags.parse(stack)), CompileOptions(cache=None))
    return compiled.execute(inputs)


LOOP = """HloModule loop
body { s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  e = f32[4] sine(x)
  z = f32[4] add(y, e)
  ROOT r = (s32[], f32[4], f32[4]) tuple(next, z, e) }
condition { s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT p = pred[] compare(i, n), direction=LT }
a { x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x) }
b { x = f32[4] parameter(0)
  ROOT y = f32[4] abs(x) }
ENTRY e { k = s32[] parameter(0)
  x = f32[4] parameter(1)
  c = c64[2] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[4], f32[4]) tuple(zero, x, x)
  w = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body
  v = f32[4] get-tuple-element(w), index=1
  u = f32[4] conditional(k, v, v), branch_computations={a, b}
  q = c64[2] multiply(c, c)
  inner = (c64[2], s32[]) tuple(q, k)
  ROOT r = (f32[4], (c64[2], s32[]), f32[4], f32[4]) tuple(u, inner, x, u) }"""

SMALL_LOOP = """HloModule loop
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] cosine(x)
  ROOT t = (s32[], f32[8]) tuple(j, y) }
condition { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e { n = s32[] parameter(0)
  x = f32[8] parameter(1)
  t = (s32[], f32[8]) tuple(n, x)
  ROOT w = (s32[], f32[8]) while(t), condition=condition, body=body }"""

BRANCH = """HloModule branch
a { x = f32[64,64] parameter(0)
  ROOT y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
b { x = f32[64,64] parameter(0)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT z = f32[64,64] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
ENTRY e { k = s32[] parameter(0)
  x = f32[64,64] parameter(1)
  ROOT u = f32[64,64] conditional(k, x, x), branch_computations={a, b} }"""
