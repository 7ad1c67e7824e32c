"""Modules reduced from random programs that once revealed a bug, named by the bug."""

FUZZED = {
    "a kernel of several results whose tuple is the result as it is": """HloModule m
most { a = f16[] parameter(0)
  b = f16[] parameter(1)
  ROOT r = f16[] maximum(a, b) }
two { a = f16[] parameter(0)
  b = f16[] parameter(1)
  c = f16[] parameter(2)
  d = f16[] parameter(3)
  ROOT r = (f16[], f16[]) tuple(a, a) }
ENTRY e { x = f16[8] parameter(0)
  y = f16[8] parameter(1)
  k = f16[] parameter(2)
  m = f16[] reduce(x, k), dimensions={0}, to_apply=most
  s = f16[8] broadcast(m), dimensions={}
  i = f16[] parameter(3)
  j = f16[] parameter(4)
  t = (f16[], f16[]) reduce(s, y, i, j), dimensions={0}, to_apply=two
  p = f16[] get-tuple-element(t), index=0
  q = f16[] get-tuple-element(t), index=1
  ROOT r = (f16[], f16[]) tuple(p, q) }
""",
    "a number all over an array, whose elements become several": """HloModule m
ENTRY e { z = s64[] constant(5)
  x = s64[3,2] broadcast(z), dimensions={}
  ROOT r = s8[3,2,8] bitcast-convert(x) }
""",
    "a fusion of several results, one of them empty": """HloModule m
fused { x = bf16[1,0,2] parameter(0)
  z = s8[] constant(0)
  y = s8[4,1]{0,1} broadcast(z), dimensions={}
  ROOT r = (s8[4,1]{0,1}, bf16[1,0,2]) tuple(y, x) }
ENTRY e { x = bf16[1,0,2] parameter(0)
  c = bf16[1,0,2]{1,2,0} copy(x)
  d = bf16[1,0,2] copy(c)
  ROOT t = (s8[4,1]{0,1}, bf16[1,0,2]) fusion(d), kind=kLoop, calls=fused }
""",
    "what waits for a parameter of its computation, inlined": """HloModule m
callee { x = pred[4,3] parameter(0)
  n = pred[4,3] not(x), control-predecessors={x}
  ROOT r = (pred[4,3], pred[4,3]) tuple(n, x) }
ENTRY e { p = pred[4,3] parameter(0)
  ROOT t = (pred[4,3], pred[4,3]) call(p), to_apply=callee }
""",
    "what waits for a view of a kernel that is merged": """HloModule m
least { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] minimum(a, b) }
ENTRY e { x = s32[4,4,2] parameter(0)
  y = s32[4,4,2] parameter(1)
  s = s32[4,4,2] shift-right-arithmetic(x, x)
  v = s32[1,4,4,1,2,1] reshape(s)
  k = s32[] parameter(2)
  m = s32[] reduce(s, k), dimensions={0,1,2}, to_apply=least
  n = s32[4,4,2] negate(y), control-predecessors={v}
  ROOT r = (s32[4,4,2], s32[]) tuple(n, m) }
""",
    "an order by control within a fusion that is merged": """HloModule m
times { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] multiply(a, b) }
fused { x = s32[2,3] parameter(0)
  y = s32[2,3] parameter(1)
  n = s32[2,3] negate(y), control-predecessors={x}
  ROOT r = s32[2,3] add(n, x) }
ENTRY e { x = s32[2,3] parameter(0)
  f = s32[2,3] fusion(x, x), kind=kLoop, calls=fused
  k = s32[] parameter(1)
  ROOT r = s32[] reduce(f, k), dimensions={0,1}, to_apply=times }
""",
    "the largest of narrow integers": """HloModule m
ENTRY e { x = s4[4,3]{0,1} parameter(0)
  y = u2[13] parameter(1)
  a = (s4[4,2], s32[4,2]) topk(x), k=2, largest=true
  b = (s4[4,2], s32[4,2]) topk(x), k=2, largest=false
  c = (u2[5], s32[5]) topk(y), k=5, largest=true
  ROOT r = ((s4[4,2], s32[4,2]), (s4[4,2], s32[4,2]), (u2[5], s32[5])) tuple(a, b, c) }
""",
    "the sign of a product without a sum, when it is zero": """HloModule m
ENTRY e { x = f32[5] parameter(0)
  y = f32[1,5,2] parameter(1)
  p = f32[5,1,2] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={1}
  z = f32[5,1,2] parameter(2)
  ROOT r = f32[5,1,2] atan2(p, z) }
""",
    "random bits, none of them": """HloModule m
ENTRY e { s = u64[3] parameter(0)
  ROOT t = (u64[3], s32[0,2]) rng-bit-generator(s), algorithm=rng_philox }
""",
    "collectives, copies and annotations within fusions": """HloModule m
add { a = f16[] parameter(0)
  b = f16[] parameter(1)
  ROOT r = f16[] add(a, b) }
fused { x = f16[6,6] parameter(0)
  s = f16[6,6] all-reduce(x), replica_groups={}, to_apply=add
  t = (f16[6,6], f16[6,6], u32[]) copy-start(s)
  d = f16[6,6] copy-done(t)
  c = f16[6,6] custom-call(x), custom_call_target="LayoutConstraint", custom_call_has_side_effect=true
  ROOT r = (f16[6,6], f16[6,6]) tuple(d, c) }
ENTRY e { x = f16[6,6] parameter(0)
  ROOT r = (f16[6,6], f16[6,6]) fusion(x), kind=kLoop, calls=fused }
""",
    "barriers and tokens within fusions": """HloModule m
fused { x = f64[16] parameter(0)
  y = f64[16] parameter(1)
  t = (f64[16], f64[16]) tuple(y, x)
  b = (f64[16], f64[16]) opt-barrier(t)
  k = token[] after-all()
  d = f64[16] get-tuple-element(b), index=0
  ROOT r = f64[16] add-dependency(d, k) }
ENTRY e { x = f64[16] parameter(0)
  ROOT r = f64[16] fusion(x, x), kind=kLoop, calls=fused }
""",
    "bits of narrow integers as narrower and as wider ones": """HloModule m
ENTRY e { x = u4[8] parameter(0)
  y = s2[8,2] bitcast-convert(x)
  z = s4[8] bitcast-convert(y)
  w = u8[4] parameter(1)
  a = s2[4,4] bitcast-convert(w)
  b = u8[4] bitcast-convert(a)
  c = u4[4,2] bitcast-convert(w)
  ROOT r = (s2[8,2], s4[8], s2[4,4], u8[4], u4[4,2]) tuple(y, z, a, b, c) }
""",
    "an update that is two results, and what it is updated with": """HloModule m
fused { x = f16[16] parameter(0)
  k = s32[] constant(2147483647)
  c = f16[] constant(-0)
  u = f16[1] broadcast(c), dimensions={}
  d = f16[16] dynamic-update-slice(x, u, k)
  ROOT r = (f16[16], f16[16], f16[1]) tuple(d, d, u) }
ENTRY e { x = f16[16] parameter(0)
  ROOT t = (f16[16], f16[16], f16[1]) fusion(x), kind=kInput, calls=fused }
""",
    "a reduce of an empty constant": """HloModule m
two { a = f64[] parameter(0)
  b = f64[] parameter(1)
  c = f64[] parameter(2)
  d = f64[] parameter(3)
  x = f64[] add(a, c)
  y = f64[] add(b, d)
  ROOT r = (f64[], f64[]) tuple(x, y) }
fused { x = f64[1,0] parameter(0)
  z = f64[] constant(0)
  e = f64[1,0]{0,1} constant({{}})
  k = f64[] constant(-inf)
  t = (f64[1], f64[1]) reduce(x, e, z, k), dimensions={1}, to_apply=two
  g = f64[1] get-tuple-element(t), index=0
  ROOT r = (f64[1,0], f64[1], f64[1,0]{0,1}) tuple(x, g, e) }
ENTRY e { x = f64[1,0] parameter(0)
  ROOT t = (f64[1,0], f64[1], f64[1,0]{0,1}) fusion(x), kind=kCustom, calls=fused }
""",
    "a fusion that gives sums of windows twice, and a sort": """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
windows { p = (f32[4,3], f32[5]) parameter(0)
  x = f32[4,3] get-tuple-element(p), index=0
  k = f32[] constant(0)
  w = f32[4,3]{0,1} reduce-window(x, k), window={size=4x1 pad=3_0x0_0}, to_apply=add
  ROOT r = (f32[4,3]{0,1}, f32[4,3]{0,1}, f32[4,3]) tuple(w, w, x) }
sorts { x = f32[5] parameter(0)
  s = f32[5] sort(x), dimensions={0}, to_apply=less
  ROOT r = (f32[5], f32[5]) tuple(s, s) }
ENTRY e { x = f32[4,3] parameter(0)
  y = f32[5] parameter(1)
  t = (f32[4,3], f32[5]) tuple(x, y)
  a = (f32[4,3]{0,1}, f32[4,3]{0,1}, f32[4,3]) fusion(t), kind=kOutput, calls=windows
  b = (f32[5], f32[5]) fusion(y), kind=kInput, calls=sorts
  ROOT r = ((f32[4,3]{0,1}, f32[4,3]{0,1}, f32[4,3]), (f32[5], f32[5])) tuple(a, b) }
""",
    "a pad of nothing, reshaped": """HloModule m
ENTRY e { x = s64[0] parameter(0)
  y = s64[1,0] broadcast(x), dimensions={1}
  k = s64[] parameter(1)
  ROOT r = s64[3,3]{0,1} pad(y, k), padding=2_0_0x1_2_1 }
""",
    "a product that sums nothing": """HloModule m
ENTRY e { x = s32[0,3]{0,1} parameter(0)
  y = s32[3,3,5,0] parameter(1)
  z = f32[4,0] parameter(2)
  w = f32[0,16] parameter(3)
  p = s32[3,3,5] dot(x, y), lhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_batch_dims={0}, rhs_contracting_dims={3}
  q = f32[4,16] dot(z, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[3,3,5], f32[4,16]) tuple(p, q) }
""",
    "what waits for a size that is known": """HloModule m
ENTRY e { x = s8[3,8] parameter(0)
  y = s8[3,3]{0,1} parameter(1)
  n = s32[] get-dimension-size(y), dimensions={1}
  ROOT r = s8[3,8] negate(x), control-predecessors={n} }
""",
    "a gather of elements that an array has not": """HloModule m
ENTRY e { x = f32[0,3] parameter(0)
  i = u32[2] parameter(1)
  n = f32[0,3] negate(x)
  ROOT r = f32[2] gather(n, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={0,1} }
""",
    "a dot that sums nothing up and is not row-major lost the sign of zero": """HloModule m
ENTRY e { x = f32[5] parameter(0)
  k = f32[] constant(-0)
  z = f32[5,3] broadcast(k), dimensions={}
  d = f32[5,3]{0,1} dot(x, z), lhs_batch_dims={0}, lhs_contracting_dims={}, rhs_batch_dims={0}, rhs_contracting_dims={}
  ROOT r = s32[5,3]{0,1} bitcast-convert(d) }
""",
    "a concatenate that takes over what another result reads": """HloModule m,
  input_output_alias={ {0}: (0, {}, may-alias) }
fused { x = f32[9] parameter(0)
  y = f32[9] parameter(1)
  n = f32[9] negate(y)
  a = f32[8] slice(n), slice={[1:9]}
  b = f32[1] slice(y), slice={[0:1]}
  c = f32[9] concatenate(a, b), dimensions={0}
  m = f32[9] abs(x)
  ROOT r = (f32[9], f32[9]) tuple(c, m) }
ENTRY e { x = f32[9] parameter(0)
  y = f32[9] parameter(1)
  ROOT r = (f32[9], f32[9]) fusion(x, y), kind=kLoop, calls=fused }
""",
    "a power of one half of -0, folded as a scalar": """HloModule m
ENTRY e { z = f16[] constant(-0)
  h = f16[] constant(0.5)
  x = f16[33] broadcast(z), dimensions={}
  y = f16[33] broadcast(h), dimensions={}
  ROOT r = f16[33] power(x, y) }
""",
    "an integer that became another one by way of a float, which is clamped": """HloModule m
ENTRY e { x = s8[64] parameter(0)
  f = f32[64] convert(x)
  u = u32[64] convert(f)
  i = s2[64] convert(f)
  ROOT r = (u32[64], s2[64]) tuple(u, i) }
""",
    "a constant that starts a loop, and waits for a kernel beside its own": """HloModule m
running { p = c64[] parameter(0)
  q = c64[] parameter(1)
  s = c64[] subtract(q, p)
  ROOT t = (c64[], c64[]) tuple(q, s) }
ENTRY e { i = c64[1] iota(), iota_dimension=0
  v = c64[] parameter(0)
  scan = (c64[1], c64[]) scan(i, v), dimensions={0}, num_carries=1, is_reverse=false, to_apply=running
  a = c64[] get-tuple-element(scan), index=1
  one = f32[] constant(1)
  x = f32[4,3] broadcast(one), dimensions={}
  y = f32[2,3,4] broadcast(one), dimensions={}
  n = s32[2] constant({1, 1})
  d = f32[4,4] ragged-dot(x, y, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0},
    rhs_group_dims={0}, control-predecessors={a}
  ROOT r = (f32[4,4], c64[]) tuple(d, a) }
""",
    "a remainder by a subnormal": """HloModule m
ENTRY e { x = bf16[8] parameter(0)
  t = bf16[] constant(9.2e-41)
  y = bf16[8] broadcast(t), dimensions={}
  ROOT r = bf16[8] remainder(x, y) }
""",
}
