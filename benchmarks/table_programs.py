"""Loops over a table as data: each step reads some places of the table and writes others (dynamic programming).

A step costs the same however large the table is, if the table is updated in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

import numpy as np

REGIONS = """add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q) }
max { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] maximum(p, q) }
take { p = f32[] parameter(0)
  ROOT q = f32[] parameter(1) }
"""


@dataclass(frozen=True)
class TableLoop:
    """A while loop that counts i from 1 to `last`, or down to it, in HLO text with `$n`, the length of the table.

    leaves: shapes of the state besides i; each is a parameter of the program. body: lines that read i and s1, s2, …
    (the state; zero, one, two and half are constants), then `-> ` and the next state. before: computations.
    """

    name: str
    leaves: str
    body: str
    before: str = ""
    last: str = "$n"
    step: int = 1

    def text(self, n: int) -> str:
        """The program for a table of n places."""
        return Template(self._text()).substitute(n=n, m=n - 1)

    def _text(self) -> str:
        shapes = self.leaves.split("; ")
        state = f"(s32[], {', '.join(shapes)})"
        body, values = self.body.rsplit("->", 1)
        reads = "\n".join(f"  s{k} = {s} get-tuple-element(p), index={k}" for k, s in enumerate(shapes, 1))
        given = "\n".join(f"  x{k} = {s} parameter({k - 1})" for k, s in enumerate(shapes, 1))
        inits = ", ".join(f"x{k}" for k in range(1, len(shapes) + 1))
        first, end, test = ("1", self.last, "LT") if self.step > 0 else ("$m", "0", "GE")
        return f"""HloModule {self.name.replace(" ", "_")}
{REGIONS}{self.before}
condition {{ p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  last = s32[] constant({end})
  ROOT r = pred[] compare(i, last), direction={test} }}
body {{ p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
{reads}
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  half = f32[] constant(0.5)
  by = s32[] constant({self.step})
  j = s32[] add(i, by)
  b1 = s32[] subtract(i, one)
  b2 = s32[] subtract(i, two)
{body}
  ROOT t = {state} tuple(j, {values}) }}
ENTRY e {{
{given}
  first = s32[] constant({first})
  t = {state} tuple(first, {inits})
  ROOT w = {state} while(t), condition=condition, body=body }}
"""


def inputs_of(loop: TableLoop, n: int, seed: int = 0) -> list[np.ndarray]:
    """Arrays for the program: floats in [0, 1), and places of the table, a few of them beside it."""
    draw = np.random.default_rng(seed)
    made = []
    for shape in Template(loop.leaves).substitute(n=n, m=n - 1).split("; "):
        kind, _, rest = shape.partition("[")
        dims = tuple(int(d) for d in rest.partition("]")[0].split(",") if d)
        integers = kind == "s32"
        made.append(draw.integers(-2, n + 2, dims, np.int32) if integers else draw.random(dims, np.float32))
    return made


_HALVES = "h = f32[1,64] broadcast(half), dimensions={}"

TABLE_LOOPS = (
    TableLoop(
        "row from the row before",
        "f32[$n,64]",
        f"""r = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={{1,64}}
  {_HALVES}
  v = f32[1,64] multiply(r, h)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u""",
    ),
    TableLoop(
        "element from the one before",
        "f32[$n]",
        """r = f32[1] dynamic-slice(s1, b1), dynamic_slice_sizes={1}
  h = f32[1] broadcast(half), dimensions={}
  v = f32[1] multiply(r, h)
  u = f32[$n] dynamic-update-slice(s1, v, i) -> u""",
    ),
    TableLoop(
        "element from two before it",
        "f32[$n]",
        """r = f32[1] dynamic-slice(s1, b1), dynamic_slice_sizes={1}
  q = f32[1] dynamic-slice(s1, b2), dynamic_slice_sizes={1}
  h = f32[1] broadcast(half), dimensions={}
  y = f32[1] add(r, q)
  v = f32[1] multiply(y, h)
  u = f32[$n] dynamic-update-slice(s1, v, i) -> u""",
    ),
    TableLoop(
        "row from three rows",
        "f32[$n,64]; s32[$n]",
        f"""k = s32[1] dynamic-slice(s2, i), dynamic_slice_sizes={{1}}
  k0 = s32[] reshape(k)
  r = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={{1,64}}
  q = f32[1,64] dynamic-slice(s1, b2, zero), dynamic_slice_sizes={{1,64}}
  o = f32[1,64] dynamic-slice(s1, k0, zero), dynamic_slice_sizes={{1,64}}
  {_HALVES}
  y = f32[1,64] add(r, q)
  m = f32[1,64] maximum(y, o)
  v = f32[1,64] multiply(m, h)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u, s2""",
    ),
    TableLoop(
        "column from the column before",
        "f32[64,$n]",
        """r = f32[64,1] dynamic-slice(s1, zero, b1), dynamic_slice_sizes={64,1}
  h = f32[64,1] broadcast(half), dimensions={}
  v = f32[64,1] multiply(r, h)
  u = f32[64,$n] dynamic-update-slice(s1, v, zero, i) -> u""",
    ),
    TableLoop(
        "plane from the plane before",
        "f32[$n,8,8]",
        """r = f32[1,8,8] dynamic-slice(s1, b1, zero, zero), dynamic_slice_sizes={1,8,8}
  t0 = f32[1,8,8] transpose(r), dimensions={0,2,1}
  h = f32[1,8,8] broadcast(half), dimensions={}
  v = f32[1,8,8] multiply(t0, h)
  u = f32[$n,8,8] dynamic-update-slice(s1, v, i, zero, zero) -> u""",
    ),
    TableLoop(
        "row from a row that data names",
        "f32[$n,64]; s32[$n]",
        f"""k = s32[1] dynamic-slice(s2, i), dynamic_slice_sizes={{1}}
  k0 = s32[] reshape(k)
  r = f32[1,64] dynamic-slice(s1, k0, zero), dynamic_slice_sizes={{1,64}}
  {_HALVES}
  v = f32[1,64] multiply(r, h)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u, s2""",
    ),
    TableLoop(
        "own row and the row before",
        "f32[$n,64]",
        """r = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={1,64}
  o = f32[1,64] dynamic-slice(s1, i, zero), dynamic_slice_sizes={1,64}
  y = f32[1,64] add(r, o)
  v = f32[1,64] tanh(y)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u""",
    ),
    TableLoop(
        "a scattered element",
        "f32[$n]",
        """r = f32[1] dynamic-slice(s1, b1), dynamic_slice_sizes={1}
  r0 = f32[] reshape(r)
  v = f32[] multiply(r0, half)
  k = s32[1] reshape(i)
  u = f32[$n] scatter(s1, k, v), to_apply=take, update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=0 -> u""",
    ),
    TableLoop(
        "two writes to one table",
        "f32[$n,64]; s32[$n]",
        """k = s32[1] dynamic-slice(s2, i), dynamic_slice_sizes={1}
  k0 = s32[] reshape(k)
  r = f32[1,64] dynamic-slice(s1, k0, zero), dynamic_slice_sizes={1,64}
  q = f32[1,64] dynamic-slice(s1, i, zero), dynamic_slice_sizes={1,64}
  u = f32[$n,64] dynamic-update-slice(s1, r, i, zero)
  w = f32[$n,64] dynamic-update-slice(u, q, k0, zero) -> w, s2""",
    ),
    TableLoop(
        "two tables that read each other",
        "f32[$n,64]; f32[$n,64]",
        f"""r = f32[1,64] dynamic-slice(s2, b1, zero), dynamic_slice_sizes={{1,64}}
  q = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={{1,64}}
  {_HALVES}
  v = f32[1,64] multiply(r, h)
  y = f32[1,64] add(q, r)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero)
  w = f32[$n,64] dynamic-update-slice(s2, y, i, zero) -> u, w""",
    ),
    TableLoop(
        "a branch that writes",
        "f32[$n,64]",
        """three = s32[] constant(3)
  m = s32[] remainder(i, three)
  c = pred[] compare(m, zero), direction=NE
  o = (f32[$n,64], s32[]) tuple(s1, i)
  u = f32[$n,64] conditional(c, o, o), true_computation=yes, false_computation=no -> u""",
        before="""yes { o = (f32[$n,64], s32[]) parameter(0)
  a = f32[$n,64] get-tuple-element(o), index=0
  i = s32[] get-tuple-element(o), index=1
  one = s32[] constant(1)
  zero = s32[] constant(0)
  b1 = s32[] subtract(i, one)
  r = f32[1,64] dynamic-slice(a, b1, zero), dynamic_slice_sizes={1,64}
  v = f32[1,64] tanh(r)
  ROOT u = f32[$n,64] dynamic-update-slice(a, v, i, zero) }
no { o = (f32[$n,64], s32[]) parameter(0)
  ROOT a = f32[$n,64] get-tuple-element(o), index=0 }
""",
    ),
    TableLoop(
        "a write that is selected",
        "f32[$n,64]",
        """three = s32[] constant(3)
  m = s32[] remainder(i, three)
  c = pred[] compare(m, zero), direction=NE
  r = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={1,64}
  v = f32[1,64] tanh(r)
  d = f32[$n,64] dynamic-update-slice(s1, v, i, zero)
  cs = pred[$n,64] broadcast(c), dimensions={}
  u = f32[$n,64] select(cs, d, s1) -> u""",
    ),
    TableLoop(
        "a loop over the row",
        "f32[$n,64]",
        """o = (s32[], s32[], f32[$n,64]) tuple(one, i, s1)
  w = (s32[], s32[], f32[$n,64]) while(o), condition=along, body=inner
  u = f32[$n,64] get-tuple-element(w), index=2 -> u""",
        before="""along { p = (s32[], s32[], f32[$n,64]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  last = s32[] constant(8)
  ROOT r = pred[] compare(k, last), direction=LT }
inner { p = (s32[], s32[], f32[$n,64]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  a = f32[$n,64] get-tuple-element(p), index=2
  one = s32[] constant(1)
  half = f32[] constant(0.5)
  k1 = s32[] subtract(k, one)
  i1 = s32[] subtract(i, one)
  left = f32[1,1] dynamic-slice(a, i, k1), dynamic_slice_sizes={1,1}
  up = f32[1,1] dynamic-slice(a, i1, k), dynamic_slice_sizes={1,1}
  y = f32[1,1] add(left, up)
  h = f32[1,1] broadcast(half), dimensions={}
  v = f32[1,1] multiply(y, h)
  u = f32[$n,64] dynamic-update-slice(a, v, i, k)
  j = s32[] add(k, one)
  ROOT t = (s32[], s32[], f32[$n,64]) tuple(j, i, u) }
""",
    ),
    TableLoop(
        "the new row is read",
        "f32[$n,64]; f32[64]; s32[$n]",
        f"""k = s32[1] dynamic-slice(s3, i), dynamic_slice_sizes={{1}}
  k0 = s32[] reshape(k)
  v = f32[1,64] reshape(s2)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero)
  r = f32[1,64] dynamic-slice(u, k0, zero), dynamic_slice_sizes={{1,64}}
  {_HALVES}
  y = f32[1,64] multiply(r, h)
  z = f32[64] reshape(y) -> u, z, s3""",
    ),
    TableLoop(
        "the old and the new row are read",
        "f32[$n,64]; f32[64]; s32[$n]",
        """k = s32[1] dynamic-slice(s3, i), dynamic_slice_sizes={1}
  k0 = s32[] reshape(k)
  v = f32[1,64] reshape(s2)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero)
  r = f32[1,64] dynamic-slice(u, k0, zero), dynamic_slice_sizes={1,64}
  q = f32[1,64] dynamic-slice(s1, k0, zero), dynamic_slice_sizes={1,64}
  d = f32[1,64] add(r, q)
  y = f32[1,64] tanh(d)
  z = f32[64] reshape(y) -> u, z, s3""",
    ),
    TableLoop(
        "a softmax of the row before",
        "f32[$n,64]",
        """r = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={1,64}
  low = f32[] constant(-inf)
  nil = f32[] constant(0)
  m = f32[1] reduce(r, low), dimensions={1}, to_apply=max
  ms = f32[1,64] broadcast(m), dimensions={0}
  d = f32[1,64] subtract(r, ms)
  x = f32[1,64] exponential(d)
  z = f32[1] reduce(x, nil), dimensions={1}, to_apply=add
  zs = f32[1,64] broadcast(z), dimensions={0}
  v = f32[1,64] divide(x, zs)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u""",
    ),
    TableLoop(
        "a product with the row before",
        "f32[$n,64]; f32[64,64]",
        """r = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={1,64}
  y = f32[1,64] dot(r, s2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[1,64] tanh(y)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u, s2""",
    ),
    TableLoop(
        "a sum of four rows",
        "f32[$n,64]; s32[$n]",
        """k = s32[1] dynamic-slice(s2, i), dynamic_slice_sizes={1}
  k0 = s32[] reshape(k)
  r = f32[4,64] dynamic-slice(s1, k0, zero), dynamic_slice_sizes={4,64}
  nil = f32[] constant(0)
  y = f32[64] reduce(r, nil), dimensions={0}, to_apply=add
  x = f32[64] tanh(y)
  v = f32[1,64] reshape(x)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u, s2""",
    ),
    TableLoop(
        "downwards from the row behind",
        "f32[$n,64]",
        f"""b = s32[] add(i, one)
  r = f32[1,64] dynamic-slice(s1, b, zero), dynamic_slice_sizes={{1,64}}
  {_HALVES}
  v = f32[1,64] multiply(r, h)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u""",
        step=-1,
    ),
    TableLoop(
        "a knapsack",
        "f32[$n,64]; f32[$n]",
        """r = f32[1,64] dynamic-slice(s1, b1, zero), dynamic_slice_sizes={1,64}
  e = f32[1] dynamic-slice(s2, i), dynamic_slice_sizes={1}
  nil = f32[] constant(0)
  cut = f32[1,61] slice(r), slice={[0:1], [0:61]}
  moved = f32[1,64] pad(cut, nil), padding=0_0x3_0
  es = f32[1,64] broadcast(e), dimensions={0}
  y = f32[1,64] add(moved, es)
  v = f32[1,64] maximum(r, y)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u, s2""",
    ),
    TableLoop(
        "a gathered set of rows",
        "f32[$n,64]; s32[$n,4]",
        """k = s32[1,4] dynamic-slice(s2, i, zero), dynamic_slice_sizes={1,4}
  k0 = s32[4] reshape(k)
  r = f32[4,64] gather(s1, k0), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,64}
  low = f32[] constant(0)
  y = f32[64] reduce(r, low), dimensions={0}, to_apply=max
  x = f32[64] tanh(y)
  v = f32[1,64] reshape(x)
  u = f32[$n,64] dynamic-update-slice(s1, v, i, zero) -> u, s2""",
    ),
)
