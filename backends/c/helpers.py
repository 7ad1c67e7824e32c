"""The runtime of emitted C: helper functions as templates, of which a program gets those that it calls.

In a template, $d is the name of a type (f32), $T its C type, $f libm's suffix; more in the tables below. Each function
is a paragraph; it stands behind those that it calls.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping

from ...hlo.dtypes import COMPLEX, INTEGER, DType
from .complex_helpers import COMPLEX_FUNCTIONS
from .contract import MULTIPLY_ADD
from .float_formats import FORMATS
from .real_helpers import REAL_FUNCTIONS
from .types import NARROW, c_type

PRELUDE = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct { float re, im; } tb_c64;
typedef struct { double re, im; } tb_c128;
"""

BITS = """
static inline float tb_bits_f32(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }

static inline double tb_bits_f64(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }

static inline uint32_t tb_f32_bits(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }

static inline uint64_t tb_f64_bits(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }

static inline uint64_t tb_c64_bits(tb_c64 x) { uint64_t b; memcpy(&b, &x, 8); return b; }

static inline tb_c64 tb_bits_c64(uint64_t b) { tb_c64 x; memcpy(&x, &b, 8); return x; }

static inline uint64_t tb_reduce_precision(uint64_t bits, int e, int m, int exponent, int mantissa) {
  uint64_t magnitude = bits & ((UINT64_C(1) << (e + m)) - 1), sign = bits ^ magnitude;
  uint64_t infinity = ((UINT64_C(1) << e) - 1) << m, bias = (UINT64_C(1) << (e - 1)) - 1, half;
  if (magnitude > infinity) return bits | UINT64_C(1) << (m - 1);
  if (mantissa < m) {
    int dropped = m - mantissa;
    bits += ((bits >> dropped) & 1) + ((UINT64_C(1) << (dropped - 1)) - 1);
    bits &= ~((UINT64_C(1) << dropped) - 1);
    magnitude = bits & ((UINT64_C(1) << (e + m)) - 1);
  }
  if (exponent < e) {
    half = (UINT64_C(1) << (exponent - 1)) - 1;
    if (magnitude >= (bias + half + 1) << m) return sign | infinity;
    if (magnitude < (bias - half + 1) << m) return sign;
  }
  return sign | magnitude;
}
"""

NARROW_FUNCTIONS = """
static inline float tb_decode_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
  if (rest >= 0x7c00) return tb_bits_f32(sign | 0x7f800000 | (rest & 0x3ff) << 13 | (rest > 0x7c00 ? 0x400000 : 0));
  if (rest >= 0x400) return tb_bits_f32(sign | ((rest << 13) + 0x38000000));
  return tb_bits_f32(sign | tb_f32_bits((float)rest * 0x1p-24f));
}

static inline uint16_t tb_encode_f16(float x) {
  uint32_t bits = tb_f32_bits(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x1ff));
  if (rest >= 0x47800000) return (uint16_t)(sign | 0x7c00);
  if (rest < 0x38800000) return (uint16_t)(sign | (tb_f32_bits(tb_bits_f32(rest) + 0.5f) - 0x3f000000));
  rest += 0xfff + (rest >> 13 & 1);
  return (uint16_t)(sign | ((rest >> 13) - 0x1c000));
}

static inline float tb_decode_bf16(uint16_t h) { return tb_bits_f32((uint32_t)h << 16); }

static inline uint16_t tb_encode_bf16(float x) {
  uint32_t bits = tb_f32_bits(x);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + (bits >> 16 & 1) + 0x7fff) >> 16);
}

static inline float tb_odd_f32(double x) {
  float f = (float)x;
  uint32_t bits = tb_f32_bits(f);
  if ((double)f == x || x != x || isinf(f) || (bits & 1)) return f;
  return tb_bits_f32(fabs((double)f) < fabs(x) ? bits + 1 : bits - 1);
}

static inline float tb_decode_f8e8m0fnu(uint8_t b) {
  if (b == 255) return tb_bits_f32(0x7fc00000);
  return tb_bits_f32(b == 0 ? 0x400000 : (uint32_t)b << 23);
}

static inline uint8_t tb_encode_f8e8m0fnu(float x) {
  uint32_t bits = tb_f32_bits(x);
  if (bits == 0 || bits >= 0x7f800000) return 255;
  if (bits < 0x800000) return bits > 0x400000;
  return (uint8_t)((bits + 0x400000) >> 23);
}

static inline double tb_f64_of_e8m0(uint8_t b) {
  return b == 255 ? tb_bits_f64(UINT64_C(0x7ff8000000000000)) : tb_bits_f64((uint64_t)(b + 1023 - 127) << 52);
}

static inline uint8_t tb_e8m0_of_f64(double x) {
  if (x < 0x1p-126) return x > 0x1p-127 ? 1 : x == 0x1p-127 ? 0 : 255;
  return tb_encode_f8e8m0fnu(tb_odd_f32(x));
}
"""

SMALL_FUNCTIONS = """
static inline float tb_decode_$d(uint8_t b) {
  uint32_t magnitude = b & ($sign - 1), bits;
  if ($unsigned_zero ? b == $sign : $has_nan && magnitude >= $first_nan) return tb_bits_f32(0x7fc00000);
  if ($has_infinity && magnitude == $infinity) bits = 0x7f800000;
  else if (magnitude < (1 << $m)) bits = tb_f32_bits((float)magnitude * $quantum);
  else bits = (magnitude << (23 - $m)) + ((127 - $bias) << 23);
  return tb_bits_f32(bits | (uint32_t)(b & $sign) << $distance);
}

static inline uint8_t tb_encode_$d(float x) {
  uint32_t bits = tb_f32_bits(x), rest = bits & 0x7fffffff, found, sign = bits >> $distance & $sign;
  if (x != x) return $nan;
  if (tb_bits_f32(rest) < $normal) {
    found = tb_f32_bits(tb_bits_f32(rest) + $magic) - tb_f32_bits($magic);
  } else {
    rest += (rest >> (23 - $m) & 1) + ((1u << (22 - $m)) - 1);
    found = (rest >> (23 - $m)) - ((127 - $bias) << $m);
  }
  if (found > $largest) found = $overflow;
  if ($unsigned_zero && found == 0) sign = 0;
  return (uint8_t)(found | sign);
}
"""

NONZERO = """
static inline uint8_t tb_nonzero_$d($T b) { return (b & $mask) != 0; }
"""

ORDER = """
static inline int64_t tb_order_$d($T x) {
  int64_t bits = (int64_t)($bits), magnitude = bits & ($sign - 1);
  return bits & $sign ? -1 - magnitude : magnitude;
}
"""

ORDER_UNSIGNED_ZERO = """
static inline int64_t tb_order_$d($T x) {
  int64_t magnitude = x & 127;
  return x == 128 ? -128 : x & 128 ? -magnitude : magnitude;
}
"""

ORDER_F8E8M0FNU = """
static inline int64_t tb_order_f8e8m0fnu(uint8_t x) { return x; }
"""

ORDER_F64 = """
static inline int64_t tb_order_f64(double x) {
  uint64_t bits = tb_f64_bits(x), magnitude = bits & UINT64_C(0x7fffffffffffffff);
  return bits >> 63 ? -1 - (int64_t)magnitude : (int64_t)magnitude;
}
"""

WRAPS = """
static inline $T tb_wrap_$d(uint64_t x) { return ($T)$wrapped; }
"""

INTEGERS = """
static inline $T tb_abs_$d($T x) { return x < 0 ? $W(0u - ($U)x) : x; }

static inline $T tb_sign_$d($T x) { return ($T)((x > 0) - (x < 0)); }

static inline $T tb_popcnt_$d($T x) {
  uint64_t rest = ($U)x & $mask;
  int n = 0;
  for (; rest; rest &= rest - 1) n++;
  return $W(n);
}

static inline $T tb_clz_$d($T x) {
  uint64_t rest = ($U)x & $mask;
  int n = $bits;
  for (; rest; rest >>= 1) n--;
  return $W(n);
}

static inline $T tb_max_$d($T a, $T b) { return a > b ? a : b; }

static inline $T tb_min_$d($T a, $T b) { return a < b ? a : b; }

static inline $T tb_clamp_$d($T low, $T x, $T high) { return tb_min_$d(tb_max_$d(low, x), high); }

static inline $T tb_shl_$d($T x, $T n) { return (($U)n & $mask) < $bits ? $W(($U)x << (($U)n & $mask)) : 0; }

static inline $T tb_shr_$d($T x, $T n) { return (($U)n & $mask) < $bits ? $W((($U)x & $mask) >> (($U)n & $mask)) : 0; }

static inline $T tb_sar_$d($T x, $T n) {
  uint64_t width = (($U)n & $mask) < $bits ? (($U)n & $mask) : $bits - 1, u = ($U)x & $mask;
  if (u >> ($bits - 1)) return $W(~((~u & $mask) >> width));
  return $W(u >> width);
}

static inline $T tb_pow_$d($T x, $T y) {
  $U result = 1, base = ($U)x;
  int k;
  if ((($U)y & $mask) >> ($bits - 1)) {
    if (x == 1) return 1;
    return $W(x == $minus_one ? ((($U)y & 1) ? ($U)$minus_one : 1u) : 0u);
  }
  for (k = 0; k < $power_bits; k++) {
    if ((($U)y >> k) & 1) result = ($U)(result * base);
    base = ($U)(base * base);
  }
  return $W(result);
}
"""

SIGNED = """
static inline $T tb_div_$d($T a, $T b) {
  if (b == 0) return -1;
  if (b == -1) return $W(0u - ($U)a);
  return ($T)(a / b);
}

static inline $T tb_rem_$d($T a, $T b) { return b == 0 ? a : b == -1 ? 0 : ($T)(a % b); }
"""

UNSIGNED = """
static inline $T tb_div_$d($T a, $T b) { return b == 0 ? ($T)$mask : ($T)(a / b); }

static inline $T tb_rem_$d($T a, $T b) { return b == 0 ? a : ($T)(a % b); }
"""

MULHI = """
static inline $T tb_mulhi_$d($T a, $T b) { return $W((uint64_t)((int64_t)a * (int64_t)b) >> $bits); }
"""

MULHI_U32 = """
static inline $T tb_mulhi_$d($T a, $T b) { return ($T)((uint64_t)a * (uint64_t)b >> 32); }
"""

MULHI_U64 = """
static inline uint64_t tb_mulhi_u64(uint64_t a, uint64_t b) {
  uint64_t al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
  uint64_t low = al * bl, one = ah * bl + (low >> 32), two = al * bh + (one & 0xffffffff);
  return ah * bh + (one >> 32) + (two >> 32);
}

static inline int64_t tb_mulhi_s64(int64_t a, int64_t b) {
  uint64_t high = tb_mulhi_u64((uint64_t)a, (uint64_t)b);
  if (a < 0) high -= (uint64_t)b;
  if (b < 0) high -= (uint64_t)a;
  return (int64_t)high;
}
"""

TO_INTEGER = """
static inline $T tb_$d_of_f32(float x) {
  if (x != x) return 0;
  if (x < $low.0f) return ($T)($least);
  return x >= $highf ? ($T)$most : ($T)x;
}

static inline $T tb_$d_of_f64(double x) {
  if (x != x) return 0;
  if (x < $low.0) return ($T)($least);
  return x >= $high ? ($T)$most : ($T)x;
}
"""

BETWEEN_COMPLEX = """
static inline tb_c64 tb_c64_of_c128(tb_c128 x) { return tb_make_c64((float)x.re, (float)x.im); }

static inline tb_c128 tb_c128_of_c64(tb_c64 x) { return tb_make_c128(x.re, x.im); }
"""


def _filled(text: str, **values: object) -> str:
    for name, value in sorted(values.items(), key=lambda item: -len(item[0])):
        text = text.replace(f"${name}", str(value))
    assert "$" not in text, text
    return text


def _integer(dtype: DType) -> str:
    width, signed = dtype.bits, dtype.is_signed
    most = (1 << (width - signed)) - 1
    mask = f"UINT64_C({(1 << width) - 1})"
    wrap = f"tb_wrap_{dtype.value}"
    if signed and width == 64:
        wrapped = "x"
    elif signed:
        half = 1 << (width - 1)
        wrapped = f"((int64_t)((x & {mask}) ^ {half}) - {half})"
    else:
        wrapped = f"(x & {mask})"
    words = {
        "T": c_type(dtype),
        "U": "uint64_t",
        "d": dtype.value,
        "bits": width,
        "mask": mask,
        "W": wrap,
        "wrapped": wrapped,
        "minus_one": "-1" if signed else mask,
        "power_bits": min(6, width),
        "low": -(1 << (width - 1)) if signed else 0,
        "high": f"0x1p{width - signed}",
        "most": f"UINT64_C({most})",
        "least": "0" if not signed else f"-INT64_C({most}) - 1",
    }
    text = WRAPS + INTEGERS + (SIGNED if signed else UNSIGNED) + TO_INTEGER
    if width < 64:
        text += MULHI_U32 if dtype is DType.U32 else MULHI
    return _filled(text, **words)


def _small(dtype: DType) -> str:
    f = FORMATS[dtype]
    return _filled(
        SMALL_FUNCTIONS,
        d=dtype.value,
        sign=f.sign,
        m=f.mantissa,
        bias=f.bias,
        largest=f.largest,
        overflow=f.overflow,
        nan=f.sign if f.nan is None else f.nan,
        has_nan=int(f.nan is not None),
        first_nan=(f.infinity or f.largest) + 1,
        has_infinity=int(f.infinity is not None),
        infinity=f.infinity or 0,
        unsigned_zero=int(f.unsigned_zero),
        distance=31 - f.sign.bit_length() + 1,
        quantum=f"{(2.0 ** (1 - f.bias - f.mantissa)).hex()}f",
        normal=f"{(2.0 ** (1 - f.bias)).hex()}f",
        magic=f"{(2.0 ** (1 - f.bias) * 2.0 ** (23 - f.mantissa)).hex()}f",
    )


def _of_narrow(dtype: DType) -> str:
    if dtype is DType.F8E8M0FNU:
        return ORDER_F8E8M0FNU
    free = dtype in FORMATS and FORMATS[dtype].unsigned_zero
    sign = 1 << (dtype.bits - 1)
    mask = 255 if free else sign - 1
    order = ORDER_UNSIGNED_ZERO if free else ORDER
    words = {"d": dtype.value, "T": c_type(dtype)}
    bits = f"x & {2 * sign - 1}"
    more = {} if free else {"sign": sign, "bits": bits}
    return _filled(NONZERO, mask=mask, **words) + _filled(order, **words, **more)


REAL_WORDS: dict[DType, dict[str, str]] = {
    DType.F32: {
        "T": "float", "f": "f", "d": "f32", "B": "uint32_t", "magnitude": "0x7fffffffu", "sign": "0x80000000u",
        "infinity": "0x7f800000u", "normal": "0x800000u",
    },
    DType.F64: {
        "T": "double", "f": "", "d": "f64", "B": "uint64_t", "magnitude": "UINT64_C(0x7fffffffffffffff)",
        "sign": "UINT64_C(0x8000000000000000)", "infinity": "UINT64_C(0x7ff0000000000000)",
        "normal": "UINT64_C(0x10000000000000)",
    },
}  # fmt: skip


def _paragraphs() -> Iterator[str]:
    texts = [
        BITS,
        MULTIPLY_ADD,
        NARROW_FUNCTIONS,
        *map(_small, FORMATS),
        *map(_of_narrow, sorted(NARROW, key=lambda d: d.value)),
    ]
    texts += [ORDER_F64, _filled(ORDER, d="f32", T="float", bits="tb_f32_bits(x)", sign="INT64_C(0x80000000)")]
    texts += [_integer(d) for d in sorted(INTEGER, key=lambda d: d.value)]
    texts.append(MULHI_U64)
    texts += [_filled(REAL_FUNCTIONS, **words) for words in REAL_WORDS.values()]
    for dtype in sorted(COMPLEX, key=lambda d: d.value):
        wide = {"L": "double", "l": ""} if dtype is DType.C64 else {"L": "long double", "l": "l"}
        real = {k: REAL_WORDS[dtype.component][k] for k in ("T", "f")}
        words = {"C": c_type(dtype), "d": dtype.value, "r": dtype.component.value, **real, **wide}
        texts.append(_filled(COMPLEX_FUNCTIONS, **words))
    texts.append(BETWEEN_COMPLEX)
    for text in texts:
        yield from text.strip().split("\n\n")


_NAME = re.compile(r"\btb_\w+")
_DEFINED = re.compile(r"(tb_\w+)\(")


@functools.cache
def _functions() -> Mapping[str, tuple[str, frozenset[str]]]:
    """Name → (text, names that it uses), in an order in which each stands behind those that it calls."""
    found = {}
    for paragraph in _paragraphs():
        defined = _DEFINED.search(paragraph)
        assert defined is not None, paragraph
        found[defined.group(1)] = paragraph, frozenset(_NAME.findall(paragraph))
    return found


def runtime(body: str) -> str:
    """The head of a C file for functions with this text."""
    functions = _functions()
    wanted, open_ = set[str](), {n for n in _NAME.findall(body) if n in functions}
    while open_:
        wanted |= open_
        open_ = {n for name in open_ for n in functions[name][1] if n in functions} - wanted
    chosen = "".join(f"\n{text}\n" for name, (text, _) in functions.items() if name in wanted)
    headers = (("complex", "_Complex", chosen), ("stdlib", "malloc(", body))
    return "".join(f"#include <{name}.h>\n" for name, word, text in headers if word in text) + PRELUDE + chosen
