"""Templates of emitted C for f32 and f64; $d, $T and $f are said in helpers.py."""

from __future__ import annotations

REAL_FUNCTIONS = """
static inline $T tb_flushed_$d($T x) { return x == 0 ? copysign$f(0, x) : x; }

static inline $T tb_abs_$d($T x) { return fabs$f(x); }

static inline $T tb_acos_$d($T x) { return ($T)acos((double)x); }

static inline $T tb_acosh_$d($T x) { return ($T)acosh((double)x); }

static inline $T tb_asin_$d($T x) { return ($T)asin((double)x); }

static inline $T tb_asinh_$d($T x) { return ($T)asinh((double)x); }

static inline $T tb_atanh_$d($T x) { return ($T)atanh((double)x); }

static inline $T tb_cbrt_$d($T x) { return ($T)cbrt((double)tb_flushed_$d(x)); }

static inline $T tb_ceil_$d($T x) { return ceil$f(x); }

static inline $T tb_cos_$d($T x) { return cos$f(x); }

static inline $T tb_cosh_$d($T x) { return ($T)cosh((double)x); }

static inline $T tb_erf_$d($T x) { return erf$f(x); }

static inline $T tb_exp_$d($T x) { return exp$f(x); }

static inline $T tb_expm1_$d($T x) { return expm1$f(x); }

static inline $T tb_floor_$d($T x) { return floor$f(x); }

static inline uint8_t tb_is_finite_$d($T x) { return fabs$f(x) < INFINITY; }

static inline $T tb_log_$d($T x) { return log$f(tb_flushed_$d(x)); }

static inline $T tb_log1p_$d($T v) {
  double x = (double)v, top, bottom, square = x * x;
  if (!(fabs(x) < 0.41421356237309504880)) return ($T)log(1.0 + x);
  top = 4.5270000862445199635215e-5;
  top = top * x + 4.9854102823193375972212e-1;
  top = top * x + 6.5787325942061044846969;
  top = top * x + 2.9911919328553073277375e1;
  top = top * x + 6.0949667980987787057556e1;
  top = top * x + 5.7112963590585538103336e1;
  top = top * x + 2.0039553499201281259648e1;
  bottom = x + 1.5062909083469192043167e1;
  bottom = bottom * x + 8.3047565967967209469434e1;
  bottom = bottom * x + 2.2176239823732856465394e2;
  bottom = bottom * x + 3.0909872225312059774938e2;
  bottom = bottom * x + 2.1642788614495947685003e2;
  bottom = bottom * x + 6.0118660497603843919306e1;
  if (x == 0) return v;
  return ($T)(x - 0.5 * square + x * square * (top / bottom));
}

static inline $T tb_logistic_$d($T x) { return ($T)(1 / (1 + exp(-(double)x))); }

static inline $T tb_round_$d($T x) { return round$f(x); }

static inline $T tb_rint_$d($T x) { return rint$f(x); }

static inline $T tb_rsqrt_$d($T x) { return 1 / sqrt$f(x); }

static inline $T tb_sign_$d($T x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

static inline $T tb_sin_$d($T x) { return sin$f(x); }

static inline $T tb_sinh_$d($T x) { return ($T)sinh((double)x); }

static inline $T tb_sqrt_$d($T x) { return sqrt$f(x); }

static inline $T tb_tan_$d($T x) { return ($T)tan((double)x); }

static inline $T tb_tanh_$d($T x) { return tanh$f(x); }

static inline $T tb_atan2_$d($T y, $T x) { return ($T)atan2((double)tb_flushed_$d(y), (double)tb_flushed_$d(x)); }

static inline $T tb_max_$d($T a, $T b) {
  if (a != a) return a;
  if (b != b) return b;
  return a > b ? a : b > a ? b : signbit(a) ? b : a;
}

static inline $T tb_min_$d($T a, $T b) {
  if (a != a) return a;
  if (b != b) return b;
  return a < b ? a : b < a ? b : signbit(a) ? a : b;
}

static inline $T tb_clamp_$d($T low, $T x, $T high) { return tb_min_$d(tb_max_$d(x, low), high); }

static inline $T tb_rem_$d($T a, $T b) { return fmod$f(a, b); }

static inline $T tb_pow_$d($T x, $T y) {
  $B base = tb_$d_bits(x), magnitude = tb_$d_bits(y) & $magnitude;
  double found = pow((double)tb_flushed_$d(x), (double)tb_flushed_$d(y));
  int negative = base > $sign && base <= ($sign | $infinity);
  if (negative && magnitude != 0 && magnitude < $normal) return ($T)NAN;
  if (($T)found == 0 && signbit(x) && fabs(fmod((double)y, 2.0)) == 1) return ($T)-0.0;
  return ($T)found;
}
"""
