"""Complex functions of the runtime, by the formulas of XLA:CPU, which determine overflow, NaN and signs of zero.

$C is the type, $T that of a part, $r its name in helpers, $L a wider one with libm's suffix $l.
"""

COMPLEX_FUNCTIONS = """
static inline $C tb_make_$d($T re, $T im) { $C z; z.re = re; z.im = im; return z; }

static inline $C tb_add_$d($C x, $C y) { return tb_make_$d(x.re + y.re, x.im + y.im); }

static inline $C tb_sub_$d($C x, $C y) { return tb_make_$d(x.re - y.re, x.im - y.im); }

static inline $C tb_negate_$d($C x) { return tb_make_$d(-x.re, -x.im); }

static inline $C tb_mul_$d($C x, $C y) {
  return tb_make_$d(fma$f(x.re, y.re, -(x.im * y.im)), fma$f(x.im, y.re, x.re * y.im));
}

static inline $C tb_div_$d($C x, $C y) {
  $T a = x.re, b = x.im, c = y.re, d = y.im, ratio, bottom, re, im;
  if (fabs$f(c) < fabs$f(d)) {
    ratio = c / d, bottom = fma$f(ratio, c, d);
    re = fma$f(a, ratio, b) / bottom, im = fma$f(b, ratio, -a) / bottom;
  } else {
    ratio = d / c, bottom = fma$f(ratio, d, c);
    re = fma$f(b, ratio, a) / bottom, im = fma$f(-a, ratio, b) / bottom;
  }
  if (re == re || im == im) return tb_make_$d(re, im);
  if (c == 0 && d == 0 && (a == a || b == b)) {
    return tb_make_$d(($T)copysign(INFINITY, c) * a, ($T)copysign(INFINITY, c) * b);
  }
  if ((isinf(a) || isinf(b)) && isfinite(c) && isfinite(d)) {
    $T p = ($T)copysign(isinf(a) ? 1 : 0, a), q = ($T)copysign(isinf(b) ? 1 : 0, b);
    return tb_make_$d(($T)INFINITY * (p * c + q * d), ($T)INFINITY * (q * c - p * d));
  }
  if (isfinite(a) && isfinite(b) && (isinf(c) || isinf(d))) {
    $T p = ($T)copysign(isinf(c) ? 1 : 0, c), q = ($T)copysign(isinf(d) ? 1 : 0, d);
    return tb_make_$d(0 * (a * p + b * q), 0 * (b * p - a * q));
  }
  return tb_make_$d(re, im);
}

static inline uint8_t tb_eq_$d($C x, $C y) { return x.re == y.re && x.im == y.im; }

static inline uint8_t tb_ne_$d($C x, $C y) { return x.re != y.re || x.im != y.im; }

static inline uint8_t tb_lt_$d($C x, $C y) { return x.re < y.re || (x.re == y.re && x.im < y.im); }

static inline uint8_t tb_le_$d($C x, $C y) { return x.re < y.re || (x.re == y.re && x.im <= y.im); }

static inline uint8_t tb_gt_$d($C x, $C y) { return tb_lt_$d(y, x); }

static inline uint8_t tb_ge_$d($C x, $C y) { return tb_le_$d(y, x); }

static inline $C tb_max_$d($C x, $C y) { return tb_ge_$d(x, y) ? x : y; }

static inline $C tb_min_$d($C x, $C y) { return tb_le_$d(x, y) ? x : y; }

static inline $C tb_clamp_$d($C low, $C x, $C high) { return tb_min_$d(tb_max_$d(low, x), high); }

static inline $L tb_wide_abs_$d($C x) {
  if (x.re != x.re || x.im != x.im) return NAN;
  return hypot$l(($L)x.re, ($L)x.im);
}

static inline $T tb_abs_$d($C x) { return ($T)tb_wide_abs_$d(x); }

static inline $C tb_sign_$d($C x) {
  $T size = tb_abs_$d(x);
  return x.re == 0 && x.im == 0 ? x : tb_make_$d(x.re / size, x.im / size);
}

static inline $L tb_log_abs_$d($C x) {
  $L a = fabs$l(($L)x.re), b = fabs$l(($L)x.im), large = a > b ? a : b, small = a > b ? b : a;
  if (a != a || b != b) return NAN;
  if (large > 0.5 && large < 2) return log1p$l((large - 1) * (large + 1) + small * small) / 2;
  return log$l(hypot$l(a, b));
}

static inline $C tb_log_$d($C x) {
  return tb_make_$d(($T)tb_log_abs_$d(x), ($T)atan2((double)x.im, (double)x.re));
}

static inline $C tb_log1p_$d($C x) {
  $T a = x.re, b = x.im, re;
  $L wide = a;
  if (fabs$f(a) > 0x1p55 || fabs$f(b) > 0x1p55) re = ($T)tb_log_abs_$d(x);
  else if (fabs$f(a + 1) + fabs$f(b) < ($T)0.2) re = log$f(fma$f(a + 1, a + 1, b * b)) / 2;
  else re = ($T)(log1p$l(wide * (wide + 2) + ($L)b * b) / 2);
  return tb_make_$d(re, ($T)atan2((double)b, (double)(a + 1)));
}

static inline $C tb_exp_$d($C x) {
  $T whole = exp$f(x.re), half = exp$f(x.re * ($T)0.5), c = cos$f(x.im), s = sin$f(x.im);
  $T re = isinf(whole) ? half * c * half : whole * c, im = isinf(whole) ? half * s * half : whole * s;
  return tb_make_$d(re, x.im == 0 ? 0 : im);
}

static inline $C tb_expm1_$d($C x) {
  $T less = expm1$f(x.re), b = x.im, square = b * b, half = sin$f(b / 2), near;
  near = square >= ($T)0.61685 ? cos$f(b) - 1 : square == 0 ? 0 : -2 * (half * half);
  if (b != b) near = b;
  return tb_make_$d(fma$f(less, near + 1, near), b == 0 ? 0 : (less + 1) * sin$f(b));
}

static inline $C tb_sin_$d($C x) {
  $T e = exp$f(x.im), plus = ($T)0.5 * e, minus = ($T)0.5 / e;
  return tb_make_$d(sin$f(x.re) * (plus + minus), cos$f(x.re) * (plus - minus));
}

static inline $C tb_cos_$d($C x) {
  $T e = exp$f(x.im), plus = ($T)0.5 * e, minus = ($T)0.5 / e;
  return tb_make_$d(cos$f(x.re) * (minus + plus), sin$f(x.re) * (minus - plus));
}

static inline double _Complex tb_to_c99_$d($C x) {
  double parts[2];
  double _Complex z;
  parts[0] = (double)x.re * 1.0, parts[1] = (double)x.im * 1.0;
  memcpy(&z, parts, sizeof z);
  return z;
}

static inline $C tb_of_c99_$d(double _Complex z) {
  double parts[2];
  memcpy(parts, &z, sizeof z);
  return tb_make_$d(($T)parts[0], ($T)parts[1]);
}

static inline $C tb_sinh_$d($C x) { return tb_of_c99_$d(csinh(tb_to_c99_$d(x))); }

static inline $C tb_cosh_$d($C x) { return tb_of_c99_$d(ccosh(tb_to_c99_$d(x))); }

static inline $C tb_acos_$d($C x) { return tb_of_c99_$d(cacos(tb_to_c99_$d(x))); }

static inline $C tb_acosh_$d($C x) { return tb_of_c99_$d(cacosh(tb_to_c99_$d(x))); }

static inline $C tb_asin_$d($C x) { return tb_of_c99_$d(casin(tb_to_c99_$d(x))); }

static inline $C tb_asinh_$d($C x) { return tb_of_c99_$d(casinh(tb_to_c99_$d(x))); }

static inline $C tb_atanh_$d($C x) { return tb_of_c99_$d(catanh(tb_to_c99_$d(x))); }

static inline $C tb_tanh_$d($C x) {
  $C z = tb_of_c99_$d(ctanh(tb_to_c99_$d(x)));
  if (isfinite(x.re) && !isfinite(x.im)) return tb_make_$d(NAN, NAN);
  if (x.im == 0 || (isinf(x.re) && !isfinite(x.im))) z.im = 0;
  return z;
}

static inline $C tb_tan_$d($C x) {
  $C z = tb_tanh_$d(tb_make_$d(-x.im, x.re));
  return tb_make_$d(z.im, -z.re);
}

static inline $C tb_sqrt_$d($C x) {
  $C z;
  if (x.re != x.re || x.im != x.im) return tb_make_$d(NAN, NAN);
  z = tb_of_c99_$d(csqrt(tb_to_c99_$d(x)));
  if (x.im == 0) z.im = fabs$f(z.im);
  return z;
}

static inline $C tb_rsqrt_$d($C x) {
  $T a = x.re, b = x.im, size, angle;
  if (a == 0 && b == 0) return tb_make_$d(INFINITY, NAN);
  if (isinf(a) || (isinf(b) && a != a)) return tb_make_$d(copysign$f(0, a), -copysign$f(0, b));
  size = ($T)(1 / sqrt$l(tb_wide_abs_$d(x)));
  angle = ($T)atan2((double)b, (double)a) * ($T)-0.5;
  return tb_make_$d(size * cos$f(angle), size * sin$f(angle));
}

static inline $C tb_pow_$d($C x, $C y) {
  $T a = x.re, b = x.im, c = y.re, d = y.im, size, angle, scale, turn;
  if ((c == 0 && d == 0) || (a == 1 && b == 0)) return tb_make_$d(1, 0);
  size = tb_abs_$d(x);
  if ((size == 0 && d == 0 && c > 0) || (a == INFINITY && b == 0 && d == 0 && c < 0)) return tb_make_$d(0, 0);
  if (a == INFINITY && b == 0 && d == 0 && c > 0) return tb_make_$d(INFINITY, 0);
  angle = ($T)atan2((double)b, (double)a);
  scale = ($T)pow((double)size, (double)c) * ($T)exp((double)(-d * angle));
  turn = fma$f(c, angle, d * ($T)log((double)size));
  return tb_make_$d(scale * ($T)cos((double)turn), scale * ($T)sin((double)turn));
}

static inline $C tb_cbrt_$d($C x) { return tb_pow_$d(x, tb_make_$d(($T)(1.0 / 3), 0)); }

static inline $C tb_logistic_$d($C x) {
  $C power = tb_exp_$d(tb_negate_$d(x));
  return tb_div_$d(tb_make_$d(1, 0), tb_make_$d(power.re + 1, power.im));
}

static inline $C tb_square_$d($C x) {
  return tb_make_$d(fma$f(x.re, x.re, -(x.im * x.im)), x.im * x.re + x.im * x.re);
}

static inline $C tb_polar_sqrt_$d($C x) {
  $T a = x.re, b = x.im, p = fabs$f(a), q = fabs$f(b), large = p > q ? p : q, small = p > q ? q : p, size, half, s;
  if (p != p || q != q) large = small = NAN;
  size = small / large;
  size = sqrt$f(large) * ($T)pow((double)fma$f(size, size, 1), 0.25);
  if (size != size) size = small;
  if (size == 0) return tb_make_$d(0, 0);
  half = ($T)atan2((double)b, (double)a) * ($T)0.5, s = ($T)sin((double)half);
  return tb_make_$d(
      isinf(b) || a == INFINITY ? ($T)INFINITY : a == -INFINITY ? 0 : size * ($T)cos((double)half),
      isinf(b) || a == -INFINITY ? copysign$f(($T)INFINITY, b) : size != size ? ($T)NAN : s == 0 ? 0 : size * s);
}

static inline $C tb_atan2_$d($C y, $C x) {
  $C u = tb_square_$d(x), v = tb_square_$d(y), z;
  $T p, q, large, small, size, angle, log_size;
  z = tb_make_$d(x.re + (0 * y.re - y.im), x.im + (y.re + y.im * 0));
  z = tb_div_$d(z, tb_polar_sqrt_$d(tb_add_$d(u, v)));
  p = fabs$f(z.re), q = fabs$f(z.im), large = p > q ? p : q, small = p > q ? q : p;
  if (p != p || q != q) large = small = NAN;
  size = small / large;
  size = large * sqrt$f(fma$f(size, size, 1));
  if (size != size) size = small;
  log_size = ($T)log((double)size), angle = ($T)atan2((double)z.im, (double)z.re);
  return tb_make_$d(0 * log_size + angle, 0 * angle - log_size);
}
"""
