"""Modules with dynamic dimensions, for every opcode and every role that a dynamic dimension can have in it.

A case is `parameters | lines of HLO`; lines are separated by `;`, and the last one is the root. `n5` in a shape is a
dimension of at most 5 with the actual size n; dimensions with the same letter have the same size. `where` states
relations between sizes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

DIMENSION = re.compile(r"\b([nmk])(\d+)\b")
COLLAPSED = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"
WHOLE = "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, slice_sizes={2,2}"
ROWS = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
BOTH = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1"
PLACES = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
COLUMN = "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1"
PAIRED = "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2"
IMAGES, BACK = "dim_labels=b01f_01io->b01f", "dim_labels=f01b_i01o->b01f"
SAME, VALID = "padding_type=PADDING_SAME", "padding_type=PADDING_VALID"
FORWARD = 'custom_call_target="DynamicConvolutionForward"'
INPUT_GRAD = 'custom_call_target="DynamicConvolutionInputGrad"'
KERNEL_GRAD = 'custom_call_target="DynamicConvolutionKernelGrad"'
REDUCE_WINDOW = 'custom_call_target="DynamicReduceWindowSamePadding"'
SELECT_AND_SCATTER = 'custom_call_target="DynamicSelectAndScatterSamePadding"'
NORM = "epsilon=0.01, feature_index=1"
INNER = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
RAGGED = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
SOLVE = "lower=true, unit_diagonal=false, transpose_a="
MATRIX = (
    "c = f32[4,4] constant({{4,1,0,1},{1,5,1,0},{0,1,6,2},{1,0,2,7}}); q = s32[] get-dimension-size(x), "
    "dimensions={0}; "
    "c1 = f32[n4,4] set-dimension-size(c, q), dimensions={0}; "
    "a = f32[n4,n4] set-dimension-size(c1, q), dimensions={1}; "
)


@dataclass(frozen=True)
class Case:
    body: str
    where: str = "True"

    def text(self, regions: str) -> str:
        """The HLO text of the module."""
        head, _, body = DIMENSION.sub(r"<=\2", self.body).partition(" | ")
        named = [p.split(":") for p in head.split()]
        *lines, root = [line.strip() for line in body.split(";") if line.strip()]
        lines = [f"{name} = {shape} parameter({k})" for k, (name, shape) in enumerate(named)] + lines
        return regions + "ENTRY e {\n" + "\n".join([*lines, f"ROOT r = {root}"]) + "\n}\n"

    def sizes(self) -> list[dict[str, int]]:
        """Sizes to test: 0, 1, all but one and all, for each letter."""
        bounds = {letter: int(bound) for letter, bound in DIMENSION.findall(self.body.partition(" | ")[0])}
        choices = [sorted({0, 1, max(b - 1, 0), b}) for b in bounds.values()]
        found = [dict(zip(bounds, chosen, strict=True)) for chosen in product(*choices)]
        return [s for s in found if eval(self.where, {"max": max}, dict(s))]

    def dimensions(self) -> list[list[tuple[int, str]]]:
        """The dynamic dimensions of each parameter, with their letters."""
        shapes = [p.split(":")[1] for p in self.body.partition(" | ")[0].split()]
        dims = [s[s.index("[") + 1 : s.index("]")].split(",") for s in shapes]
        return [[(d, m[1]) for d, n in enumerate(ns) if (m := DIMENSION.fullmatch(n))] for ns in dims]


REGIONS = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
top { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=LT }
ge { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=GE }
second { p = f32[] parameter(0)
  ROOT q = f32[] parameter(1) }
odd { p = f32[] parameter(0)
  q = f32[] parameter(1)
  a = f32[] abs(q)
  ROOT s = f32[] add(p, a) }
argmax { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GE
  v = f32[] select(c, a, b)
  k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k) }
two { a = f32[] parameter(0)
  i = f32[] parameter(1)
  b = f32[] parameter(2)
  j = f32[] parameter(3)
  v = f32[] add(a, b)
  k = f32[] multiply(i, j)
  ROOT t = (f32[], f32[]) tuple(v, k) }
step { x = f32[] parameter(0)
  c = f32[] parameter(1)
  s = f32[] add(x, c)
  ROOT t = (f32[], f32[]) tuple(s, s) }
row { x = f32[3] parameter(0)
  c = f32[3] parameter(1)
  s = f32[3] add(x, c)
  ROOT t = (f32[3], f32[3]) tuple(s, s) }
column { x = f32[5] parameter(0)
  c = f32[5] parameter(1)
  s = f32[5] multiply(x, c)
  ROOT t = (f32[5], f32[5]) tuple(s, s) }
callee { x = f32[<=4] parameter(0)
  ROOT n = f32[<=4] negate(x) }
short { t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
double { t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  d = f32[4] add(x, x)
  ROOT r = (s32[], f32[4]) tuple(j, d) }
shrink { t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = s32[] get-dimension-size(x), dimensions={0}
  m = s32[] subtract(n, one)
  y = f32[<=4] set-dimension-size(x, m), dimensions={0}
  ROOT r = (s32[], f32[<=4]) tuple(j, y) }
swap { t = (s32[], f32[<=4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[<=4] get-tuple-element(t), index=1
  y = f32[4] get-tuple-element(t), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[4], f32[<=4]) tuple(j, y, x) }
three { t = (s32[], f32[<=4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
full { t = (s32[], f32[<=4]) parameter(0)
  x = f32[<=4] get-tuple-element(t), index=1
  n = s32[] get-dimension-size(x), dimensions={0}
  z = s32[] constant(1)
  ROOT c = pred[] compare(n, z), direction=GT }
nested { t = (s32[], f32[<=4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[<=4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = (s32[], f32[<=4]) tuple(i, x)
  w = (s32[], f32[4]) while(u), condition=full, body=shrink
  y = f32[4] get-tuple-element(w), index=1
  ROOT r = (s32[], f32[4]) tuple(j, y) }
same { x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x) }
cut { x = f32[4] parameter(0)
  n = s32[] constant(2)
  ROOT y = f32[<=4] set-dimension-size(x, n), dimensions={0} }
"""

BIT = "z = f32[] constant(0); "
TWO = "o = f32[] constant(2); "
STATE = "i = s32[] constant(0); t = (s32[], f32[n4]) tuple(i, x); "

CASES = {
    # one element for one
    "binary": Case("x:f32[n5,3] y:f32[m5,3] | f32[n5,3] add(x, y)"),
    "compare": Case("x:f32[4,n5] y:f32[4,m5] | pred[4,n5] compare(x, y), direction=LT"),
    "select": Case("p:pred[n5] x:f32[n5] y:f32[n5] | f32[n5] select(p, x, y)"),
    "clamp": Case(f"x:f32[n5,3] | {TWO}{BIT}f32[n5,3] clamp(z, x, o)"),
    "copy": Case("x:f32[n5,3] | f32[n5,3]{0,1} copy(x)"),
    "stochastic-convert": Case("x:f32[n5,3] u:u32[n5,3] | f16[n5,3] stochastic-convert(x, u)"),
    "bitcast-convert": Case("x:f32[n5,3] | u8[n5,3,4] bitcast-convert(x)"),
    "bitcast": Case("x:f32[n5,3] | s32[n5,3] bitcast(x)"),
    "map": Case("x:f32[n5,3] y:f32[n5,3] | f32[n5,3] map(x, y), dimensions={0,1}, to_apply=odd"),
    "iota": Case("x:f32[n5] | i = f32[n5] iota(), iota_dimension=0; f32[n5] add(x, i)"),
    "broadcast": Case(f"x:f32[n5] | {TWO}i = f32[n5] broadcast(o), dimensions={{}}; f32[n5] add(x, i)"),
    "broadcast, of what is full": Case(
        f"x:f32[n5] | {TWO}i = f32[n5] broadcast(o), dimensions={{}}; j = f32[n5] negate(i); f32[n5] add(j, x)"
    ),
    "broadcast, static": Case("x:f32[n5] | f32[2,5] broadcast(x), dimensions={1}"),
    "twice": Case("x:f32[n5,3] | (f32[n5,3], f32[n5,3]) tuple(x, x)"),
    # reductions and windows
    "reduce": Case("x:f32[n5,3] | o = f32[] constant(3); f32[3] reduce(x, o), dimensions={0}, to_apply=odd"),
    "reduce, two": Case(
        "x:f32[n5,3] | i = s32[n5,3] iota(), iota_dimension=0; o = f32[] constant(-9); k = s32[] constant(7); "
        "(f32[3], s32[3]) reduce(x, i, o, k), dimensions={0}, to_apply=argmax"
    ),
    "reduce, two kept": Case(
        "x:f32[n5,3] y:f32[n5,3] | o = f32[] constant(3); "
        "(f32[n5], f32[n5]) reduce(x, y, o, o), dimensions={1}, to_apply=two"
    ),
    "reduce-window": Case(
        f"x:f32[n5,3] | {BIT}f32[n5,3] reduce-window(x, z), window={{size=3x1 pad=1_1x0_0}}, to_apply=odd"
    ),
    "reduce-window, dilated": Case(
        f"x:f32[n5,3] | {BIT}f32[n7,3] reduce-window(x, z), window={{size=3x1 lhs_dilate=2x1}}, to_apply=add"
    ),
    "reduce-window, reach": Case(
        f"x:f32[n5,3] | {BIT}f32[n5,3] reduce-window(x, z), window={{size=2x1 pad=1_1x0_0 rhs_dilate=2x1}}, "
        f"to_apply=add"
    ),
    "reduce-window, two": Case(
        "x:f32[n5,3] | i = s32[n5,3] iota(), iota_dimension=0; o = f32[] constant(-9); k = s32[] constant(7); "
        "(f32[n3,3], "
        "s32[n3,3]) reduce-window(x, i, o, k), window={size=3x1 stride=2x1 pad=1_1x0_0}, to_apply=argmax"
    ),
    "reduce-window beside": Case(
        f"x:f32[n5,3] | {BIT}f32[n5,2] reduce-window(x, z), window={{size=1x2}}, to_apply=odd"
    ),
    "select-and-scatter": Case(
        f"x:f32[n5,3] s:f32[m2,3] | {BIT}f32[n5,3] select-and-scatter(x, s, z), window={{size=2x1 stride=2x1}}, "
        "select=ge, scatter=add", "m == max((n - 2) // 2 + 1, 0)"
    ),
    "select-and-scatter, overlapping": Case(
        "x:f32[n6] s:f32[n6] | o = f32[] constant(1); f32[n6] select-and-scatter(x, s, o), window={size=3 pad=1_1}, "
        "select=ge, scatter=odd"
    ),
    "select-and-scatter beside": Case(
        f"x:f32[n5,4] s:f32[n5,2] | {BIT}f32[n5,4] select-and-scatter(x, s, z), window={{size=1x2 stride=1x2}}, "
        "select=ge, scatter=add"
    ),
    "sort": Case("x:f32[n5,3] | f32[n5,3] sort(x), dimensions={1}, is_stable=true, to_apply=less"),
    "topk": Case("x:f32[2,n5] | (f32[2,2], s32[2,2]) topk(x), k=2, largest=true"),
    "topk, smallest": Case("x:s32[n5] | (s32[3], s32[3]) topk(x), k=3, largest=false"),
    "topk, rows": Case("x:f32[n5,3] | (f32[n5,2], s32[n5,2]) topk(x), k=2, largest=true"),
    "topk, call": Case('x:f32[2,n5] | (f32[2,2], s32[2,2]) custom-call(x), custom_call_target="TopK"'),
    "scan": Case(f"x:f32[n5] | {TWO}(f32[n5], f32[]) scan(x, o), dimensions={{0}}, num_carries=1, to_apply=step"),
    "scan, reverse": Case(
        "x:f32[3,n5] c:f32[3] | (f32[3,n5], f32[3]) scan(x, c), dimensions={1}, num_carries=1, is_reverse=true, "
        "to_apply=row"
    ),
    "scan beside": Case(
        "x:f32[n5,3] c:f32[n5] | (f32[n5,3], f32[n5]) scan(x, c), dimensions={1}, num_carries=1, to_apply=column"
    ),
    # convolutions
    "convolution, batch": Case(
        f"x:f32[n3,5,6,2] k:f32[3,2,2,4] | f32[n3,3,5,4] convolution(x, k), window={{size=3x2}}, {IMAGES}"
    ),
    "convolution, features": Case(
        f"x:f32[2,5,6,n2] k:f32[3,2,m2,k4] | f32[2,3,5,k4] convolution(x, k), window={{size=3x2}}, {IMAGES}"
    ),
    "convolution, space": Case(
        f"x:f32[2,n5,m6,2] k:f32[3,2,2,4] | f32[2,n3,m6,4] convolution(x, k), "
        f"window={{size=3x2 stride=2x1 pad=1_1x1_0}}, {IMAGES}"
    ),
    "convolution, input gradient": Case(
        f"x:f32[n2,m5,6,2] k:f32[3,2,2,4] | f32[n2,m11,6,4] convolution(x, k), "
        f"window={{size=3x2 pad=2_2x1_0 lhs_dilate=2x1 rhs_reversal=1x1}}, {IMAGES}"
    ),
    "convolution, filter gradient": Case(
        f"x:f32[n4,5,6,2] g:f32[n4,3,5,3] | f32[2,3,2,3] convolution(x, g), window={{size=3x5}}, {BACK}"
    ),
    "convolution, filter gradient of space": Case(
        f"x:f32[4,n7,6,2] g:f32[4,m5,5,3] | f32[2,3,2,3] convolution(x, g), window={{size=5x5}}, {BACK}", "n == m + 2"
    ),
    "convolution, filter gradient with strides": Case(
        f"x:f32[4,n7,6,2] g:f32[4,m3,5,3] | f32[2,3,2,3] convolution(x, g), window={{size=3x5 rhs_dilate=2x1}}, {BACK}",
        "m and n == 2 * m + 1",
    ),
    "convolution, groups": Case(
        f"x:f32[n3,5,6,4] k:f32[3,2,2,4] | f32[n3,3,5,4] convolution(x, k), window={{size=3x2}}, {IMAGES}, "
        "feature_group_count=2"
    ),
    # custom calls that pad windows by the present sizes
    "DynamicConvolutionForward": Case(
        "x:f32[k2,n6,m5,2] k:f32[3,2,2,4] | "
        f"f32[k2,n3,m5,4] custom-call(x, k), {FORWARD}, window={{size=3x2 stride=2x1}}, {IMAGES}, {SAME}"
    ),
    "DynamicConvolutionForward, valid": Case(
        "x:f32[2,n6,5,m2] k:f32[3,2,2,4] | "
        f"f32[2,n2,4,4] custom-call(x, k), {FORWARD}, window={{size=3x2 stride=2x1}}, {IMAGES}, {VALID}"
    ),
    "DynamicConvolutionInputGrad": Case(
        "g:f32[2,m3,5,4] k:f32[3,2,4,2] x:f32[n6] | q = s32[] get-dimension-size(x), dimensions={0}; "
        "a = s32[1] reshape(q); c = s32[1] constant({2}); v = s32[4] concatenate(c, a, c, c), dimensions={0}; "
        f"f32[2,n6,6,2] custom-call(v, g, k), {INPUT_GRAD}, "
        f"window={{size=3x2 pad=2_1x1_1 lhs_dilate=2x1 rhs_reversal=1x1}}, {IMAGES}, {SAME}", "m == (n + 1) // 2"
    ),
    "DynamicConvolutionInputGrad, valid": Case(
        "g:f32[2,m2,5,4] k:f32[3,2,4,2] x:f32[n6] | q = s32[] get-dimension-size(x), dimensions={0}; "
        "a = s32[1] reshape(q); c = s32[1] constant({2}); v = s32[4] concatenate(c, a, c, c), dimensions={0}; "
        f"f32[2,n6,6,2] custom-call(v, g, k), {INPUT_GRAD}, "
        f"window={{size=3x2 pad=2_1x1_1 lhs_dilate=2x1 rhs_reversal=1x1}}, {IMAGES}, "
        f"{VALID}", "m == max((n - 1) // 2, 0)"
    ),
    "DynamicConvolutionKernelGrad": Case(
        "x:f32[4,n6,6,2] g:f32[4,m3,5,3] | "
        f"f32[2,3,2,3] custom-call(x, g), {KERNEL_GRAD}, window={{size=3x5 rhs_dilate=2x1}}, {BACK}, {SAME}",
        "m == (n + 1) // 2"
    ),
    "DynamicReduceWindowSamePadding": Case(
        f"x:f32[n6,3] | {BIT}f32[n3,3] custom-call(x, z), {REDUCE_WINDOW}, "
        "window={size=3x1 stride=2x1}, to_apply=odd"
    ),
    "DynamicSelectAndScatterSamePadding": Case(
        f"x:f32[n6,3] s:f32[m3,3] | {TWO}f32[n6,3] custom-call(x, s, o), {SELECT_AND_SCATTER}, "
        "window={size=3x1 stride=2x1}, called_computations={ge, add}", "m == (n + 1) // 2"
    ),
    # batch normalisation
    "batch-norm-training": Case(
        "x:f32[n4,3,m5] s:f32[3] o:f32[3] | "
        f"(f32[n4,3,m5], f32[3], f32[3]) batch-norm-training(x, s, o), {NORM}"
    ),
    "batch-norm-training, features": Case(
        f"x:f32[4,n3] s:f32[n3] o:f32[n3] | (f32[4,n3], f32[n3], f32[n3]) batch-norm-training(x, s, o), {NORM}"
    ),
    "batch-norm-training, f16": Case(
        f"x:f16[n4,3] s:f16[3] o:f16[3] | (f16[n4,3], f16[3], f16[3]) batch-norm-training(x, s, o), {NORM}"
    ),
    "batch-norm-inference": Case(
        "x:f32[n4,3,m5] s:f32[3] m:f32[3] w:f32[3] | v = f32[3] abs(w); "
        f"f32[n4,3,m5] batch-norm-inference(x, s, s, m, v), {NORM}"
    ),
    "batch-norm-grad": Case(
        "x:f32[n4,3] s:f32[3] w:f32[3] g:f32[n4,3] | v = f32[3] abs(w); "
        f"(f32[n4,3], f32[3], f32[3]) batch-norm-grad(x, s, s, v, g), {NORM}"
    ),
    # slices and updates
    "dynamic-slice": Case(
        "x:f32[n6,3] i:s32[] | j = s32[] constant(0); f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}"
    ),
    "dynamic-slice, s8": Case(
        "x:f32[n200] | i = s8[] constant(120); f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}"
    ),
    "dynamic-slice, u64": Case(
        "x:f32[n6] | i = u64[] constant(18446744073709551615); f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}"
    ),
    "dynamic-update-slice": Case(
        "x:f32[6,3] u:f32[n3,3] | i = s32[] constant(4); j = s32[] constant(0); "
        "f32[6,3] dynamic-update-slice(x, u, i, j)"
    ),
    "dynamic-update-slice, before": Case(
        "x:f32[6,3] u:f32[n3,3] | i = s32[] constant(-2); j = s32[] constant(0); "
        "f32[6,3] dynamic-update-slice(x, u, i, j)"
    ),
    "dynamic-update-slice, both": Case(
        "x:f32[n6,3] u:f32[m3,k2] | i = u8[] constant(250); j = u8[] constant(1); "
        "f32[n6,3] dynamic-update-slice(x, u, i, j)", "n >= m"
    ),
    "dynamic-update-slice, a vector": Case(
        "x:f32[n6,3] u:f32[m3,2] | i = s32[2] constant({2,1}); f32[n6,3] dynamic-update-slice(x, u, i)", "n >= m"
    ),
    "gather": Case(f"x:f32[n5,3] | i = u8[4] constant({{0,4,200,2}}); f32[4,3] gather(x, i), {COLLAPSED}"),
    "gather, indices": Case(f"x:f32[n5,3] i:s32[m4] | f32[m4,3] gather(x, i), {COLLAPSED}"),
    "gather, slices": Case(
        f"x:f32[n5,3] | i = s32[2,3] constant({{{{0,4,2}},{{1,0,2}}}}); f32[3,2,2] gather(x, i), {WHOLE}, "
        f"index_vector_dim=0"
    ),
    "gather, batching": Case(
        "x:f32[n4,5] i:s32[n4,2] | f32[n4,2] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, "
        "start_index_map={1}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}"
    ),
    "scatter": Case(f"x:f32[n5,3] i:s32[m4] u:f32[m4,3] | f32[n5,3] scatter(x, i, u), {ROWS}, to_apply=second"),
    "scatter, windows": Case(
        "x:f32[n5,3] u:f32[4,2,2] | i = s32[4,2] constant({{0,1},{4,0},{2,2},{3,0}}); "
        f"f32[n5,3] scatter(x, i, u), {BOTH}, to_apply=add"
    ),
    "scatter, windows with sizes": Case(
        "x:f32[n5,3] i:s32[m2,2] u:f32[m2,k3,1] | "
        f"f32[n5,3] scatter(x, i, u), {BOTH}, to_apply=second"
    ),
    "scatter, windows first": Case(
        f"x:f32[5,3] i:s32[n2,1] u:f32[m3,n2] | f32[5,3] scatter(x, i, u), {COLUMN}, to_apply=odd"
    ),
    "scatter, whole windows": Case(
        f"x:f32[3,n5] i:s32[2,1] u:f32[2,n5] | f32[3,n5] scatter(x, i, u), {ROWS}, to_apply=odd"
    ),
    "scatter, batching": Case(
        "x:f32[n4,5] i:s32[n4,2,1] u:f32[n4,2,m2] | f32[n4,5] scatter(x, i, u), update_window_dims={2}, "
        f"inserted_window_dims={{}}, scatter_dims_to_operand_dims={{1}}, {PAIRED}, to_apply=add"
    ),
    "scatter, two": Case(
        "x:f32[4] y:f32[4] i:s32[n3] u:f32[n3] v:f32[n3] | "
        f"(f32[4], f32[4]) scatter(x, y, i, u, v), {PLACES}, to_apply=two"
    ),
    # linear algebra
    "dot": Case(
        "x:f32[n4,3,m5] y:f32[n4,m5,2] | f32[n4,3,2] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    ),
    "dot, one side": Case(f"x:s8[3,5] y:s8[n5,m2] | s32[3,m2] dot(x, y), {INNER}"),
    "ragged-dot": Case(f"x:f32[n6,4] y:f32[3,4,2] g:u8[3] | f32[n6,2] ragged-dot(x, y, g), {RAGGED}"),
    "ragged-dot, groups": Case(f"x:f32[6,n4] y:f32[m3,n4,k2] g:u8[m3] | f32[6,k2] ragged-dot(x, y, g), {RAGGED}"),
    "ragged-dot, contracting": Case(
        f"x:f32[5,n6] y:f32[n6,2] g:u8[m3] | f32[m3,5,2] ragged-dot(x, y, g), {INNER}, lhs_ragged_dims={{1}}"
    ),
    "scaled-dot": Case(
        "x:f32[n4,m8] y:f32[m8,2] v:f32[n4,4] w:f32[2,2] | p = f8e8m0fnu[n4,4] convert(v); q = f8e8m0fnu[2,2] "
        "convert(w); "
        f"f32[n4,2] scaled-dot(x, y, p, q), {INNER}"
    ),
    "cholesky": Case(f"x:f32[n4] | {MATRIX}f32[n4,n4] cholesky(a), lower=true"),
    "cholesky, upper": Case(f"x:f32[n4] | {MATRIX}f32[n4,n4] cholesky(a), lower=false"),
    "triangular-solve": Case(
        f"x:f32[n4,3] | {MATRIX}f32[n4,3] triangular-solve(a, x), left_side=true, {SOLVE}TRANSPOSE"
    ),
    "triangular-solve, right": Case(
        f"x:f32[n4] y:f32[m3,n4] | {MATRIX}f32[m3,n4] triangular-solve(a, y), left_side=false, {SOLVE}NO_TRANSPOSE"
    ),
    "fft": Case("x:c64[n3,4] | c64[n3,4] fft(x), fft_type=FFT, fft_length={4}"),
    # reshapes and sizes
    "reshape": Case("x:f32[n6,2] | f32[n3,2,2] reshape(x)", "n % 2 == 0"),
    "reshape, together": Case("x:f32[2,n3] | f32[n6] reshape(x)"),
    "reshape, both": Case("x:f32[n2,m3] | f32[n6] reshape(x)"),
    "reshape, two groups": Case("x:f32[n2,3,m4,2] | f32[6,m8] reshape(x)"),
    "reshape, inferred": Case("x:f32[n2,3] | f32[n6,1] reshape(x), inferred_dimension=0"),
    "reshape, ones": Case("x:f32[1,n4,1] | f32[n4] reshape(x)"),
    "reshape, none": Case("x:f32[0,n4] | f32[0,n4] reshape(x)"),
    "set-dimension-size": Case(
        "x:f32[n5,3] | n = s32[] constant(2); m = s32[] constant(-1); "
        "y = f32[n5,3] set-dimension-size(x, n), dimensions={0}; f32[n5,m3] set-dimension-size(y, m), dimensions={1}"
    ),
    # one device
    "custom-call": Case('x:f32[n5,3] | f32[n5,3] custom-call(x), custom_call_target="Sharding"'),
    "all-reduce": Case("x:f32[n5,3] | f32[n5,3] all-reduce(x), replica_groups={{0}}, to_apply=add"),
    "all-to-all": Case("x:f32[n5,3] | f32[n5,3] all-to-all(x), replica_groups={{0}}, dimensions={0}"),
    "collective-permute": Case("x:f32[n5,3] | f32[n5,3] collective-permute(x), source_target_pairs={}"),
    "copy-start": Case("x:f32[n5,3] | s = (f32[n5,3], f32[n5,3], u32[]) copy-start(x); f32[n5,3] copy-done(s)"),
    "async-start": Case(
        "x:f32[n4] | s = ((f32[n4]), f32[n4], u32[]) async-start(x), calls=callee; f32[n4] async-done(s)"
    ),
    "opt-barrier": Case(
        "x:f32[n5] | t = (f32[n5]) tuple(x); u = (f32[n5]) opt-barrier(t); f32[n5] get-tuple-element(u), index=0"
    ),
    # control flow: sizes are carried where the shapes do not say so, too
    "call": Case("x:f32[n4] | f32[n4] call(x), to_apply=callee"),
    "while": Case(f"x:f32[n4] | {STATE}(s32[], f32[4]) while(t), condition=short, body=double"),
    "while, shrinking": Case(
        "x:f32[4] y:f32[n4] | i = s32[] constant(0); t = (s32[], f32[4]) tuple(i, x); "
        "(s32[], f32[4]) while(t), condition=short, body=shrink"
    ),
    "while, by size": Case(f"x:f32[n4] | {STATE}(s32[], f32[n4]) while(t), condition=full, body=shrink"),
    "while, swapping": Case(
        "x:f32[n4] y:f32[4] | i = s32[] constant(0); t = (s32[], f32[n4], f32[4]) tuple(i, x, y); "
        "(s32[], f32[n4], f32[4]) while(t), condition=three, body=swap"
    ),
    "while, nested": Case(f"x:f32[n4] | {STATE}(s32[], f32[n4]) while(t), condition=short, body=nested", "n"),
    "conditional": Case(
        "x:f32[n4] p:pred[] | f32[4] conditional(p, x, x), true_computation=same, false_computation=cut", "n > 1"
    ),
    "conditional, index": Case(
        "x:f32[n4] | p = s32[] constant(1); f32[4] conditional(p, x, x, x), branch_computations={cut, same, cut}"
    ),
}  # fmt: skip
